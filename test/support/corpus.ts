/** The query-language corpus in its current state in the repository. */
import type { Corpus } from '../../src/corpus/corpus.ts'
import { readCorpus } from '../../src/corpus/read.ts'
import { ROOT } from '../tidy/tree.ts'

export const CORPUS: Corpus = readCorpus(ROOT)
