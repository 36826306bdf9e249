/** Productions and examples of the language as entries that a search finds. */
import type { Corpus, QueryExample } from '../../corpus/corpus.ts'
import { printExample, printProduction } from '../../corpus/markdown.ts'
import type { EntryKind, LibraryEntry } from './model.ts'

/** The kind of entries that are examples. */
export const EXAMPLE_KIND: EntryKind = 'example'

const GRAMMAR_PATH = 'corpus/grammar.yaml'
/** The page that documents the query language. */
export const LANGUAGE_PAGE = 'docs/reference/language.md'

/** The entries for the language's grammar and examples. */
export function corpusEntries(corpus: Corpus): readonly LibraryEntry[] {
  return [
    ...corpus.grammar.map(production => ({
      id: `grammar:${production.name}`,
      path: GRAMMAR_PATH,
      kind: 'grammar' as const,
      title: production.name,
      level: 0,
      markdown: printProduction(production),
    })),
    ...[...exampleIds(corpus)].map(([id, example]) => ({
      id,
      path: LANGUAGE_PAGE,
      kind: EXAMPLE_KIND,
      title: example.note,
      level: 0,
      markdown: printExample(example),
    })),
  ]
}

/** `example:join-3`: the third one of joins. */
export function exampleIds({ examples }: Corpus): ReadonlyMap<string, QueryExample> {
  const counts = new Map<string, number>()
  return new Map(
    examples.map(example => {
      const count = (counts.get(example.construct) ?? 0) + 1
      counts.set(example.construct, count)
      return [`example:${example.construct}-${count}`, example]
    }),
  )
}
