/** The shipped documentation, with search. */
import type { Corpus, QueryExample } from '../../corpus/corpus.ts'
import { type EntryKind, KINDS, type LibraryData, type LibraryEntry, type Recipe } from './model.ts'
import { corpusEntries, exampleIds } from './of-corpus.ts'
import { openIndex, searchIndex } from './search.ts'

/** A document found by a search. */
export interface LibraryResult {
  readonly entry: LibraryEntry
  readonly score: number
  /** Words of the texts that the search has found, in lower case. */
  readonly terms: readonly string[]
}

/** The documentation that tools search. */
export interface Library {
  readonly recipes: readonly Recipe[]
  readonly corpus: Corpus
  /** By the id that a search finds it under. */
  example(id: string): QueryExample | null
  /** The best first, at most `limit`. Null: of any kind. */
  search(query: string, kind: EntryKind | null, limit: number): readonly LibraryResult[]
  /** A page whole. */
  page(path: string): LibraryEntry | null
  /** A page by its path, a part with the parts below it, a production or an example, by id. */
  entry(id: string): LibraryEntry | null
  /** The anchors of a page, in its order. */
  slugs(path: string): readonly string[]
  /** Every page, part, production and example. */
  readonly ids: readonly string[]
}

export { KINDS }

/** Opens the library. */
export function openLibrary(data: LibraryData): Library {
  const index = openIndex(data.index)
  const examples = exampleIds(data.corpus)
  const byId = new Map([...data.entries, ...corpusEntries(data.corpus)].map(entry => [entry.id, entry]))
  const pages = new Map<string, readonly LibraryEntry[]>()
  for (const entry of data.entries) {
    if (entry.level === 0) continue
    pages.set(entry.path, [...(pages.get(entry.path) ?? []), entry])
  }

  function page(path: string): LibraryEntry | null {
    const [first, ...others] = pages.get(path) ?? []
    return first === undefined ? null : joined(first, others, path)
  }

  return {
    recipes: data.recipes,
    corpus: data.corpus,
    example: id => examples.get(id) ?? null,
    search(query, kind, limit) {
      const isWanted = (id: string): boolean => kind === null || byId.get(id)?.kind === kind
      return searchIndex(index, query, isWanted)
        .slice(0, limit)
        .flatMap(({ id, score, terms }) => {
          const entry = byId.get(String(id))
          return entry === undefined ? [] : [{ entry, score, terms }]
        })
    },
    page,
    entry(id) {
      const entry = byId.get(id)
      if (entry === undefined) return page(id)
      const parts = pages.get(entry.path) ?? []
      const behind = parts.slice(parts.indexOf(entry) + 1)
      const next = behind.findIndex(({ level }) => level <= entry.level)
      return entry.level === 0 ? entry : joined(entry, next < 0 ? behind : behind.slice(0, next), entry.id)
    },
    slugs: path => (pages.get(path) ?? []).map(({ id }) => id.slice(path.length + 1)),
    ids: [...pages.keys(), ...byId.keys()],
  }
}

function joined(first: LibraryEntry, others: readonly LibraryEntry[], id: string): LibraryEntry {
  return { ...first, id, markdown: [first, ...others].map(({ markdown }) => markdown).join('\n') }
}
