/**
 * Reads the corpus from the repository, for the build and the tests. Only the structure of the files is
 * checked here; the tests check the rest.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Corpus, GrammarNote, InvalidQueryExample, Production, QueryExample } from './corpus.ts'

/**
 * Reads the corpus; `root` is the root of the repository.
 *
 * @throws Error if a file has no construct.
 */
export function readCorpus(root: string): Corpus {
  const folder = join(root, 'corpus')
  const textOf = (name: string): string => readFileSync(join(folder, name), 'utf8').replaceAll('\r\n', '\n')
  const dataOf = (name: string): unknown => parse(textOf(name))

  const constructs = dataOf('constructs.yaml') as Corpus['constructs']
  const names = Object.keys(constructs)
  const listed = <T>(kind: string): readonly T[] => {
    const others = readdirSync(join(folder, kind)).filter(file => !names.includes(file.replace(/\.yaml$/, '')))
    if (others.length > 0) throw new Error(`corpus/${kind}/${others[0]} has no construct in corpus/constructs.yaml`)
    return names
      .filter(construct => existsSync(join(folder, kind, `${construct}.yaml`)))
      .flatMap(construct => {
        const items = dataOf(join(kind, `${construct}.yaml`)) as readonly object[]
        return items.map(item => ({ construct, ...item }) as T)
      })
  }
  const { productions, notes } = dataOf('grammar.yaml') as {
    readonly productions: readonly Production[]
    readonly notes: readonly GrammarNote[]
  }
  return {
    constructs,
    examples: listed<QueryExample>('examples'),
    invalid: listed<InvalidQueryExample>('invalid'),
    grammar: productions,
    notes,
    schema: textOf('schema.sql').replace(/^--.*\n+/, ''),
  }
}
