/** The corpus of the query language, as it is in the repository now. */
import type { Corpus } from '../../src/corpus/corpus.ts'
import { readCorpus } from '../../src/corpus/read.ts'
import { ROOT } from '../tidy/tree.ts'

export const CORPUS: Corpus = readCorpus(ROOT)
