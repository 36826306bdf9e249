/** Builds and queries the search index, in the same way at build time and at run time. */
import MiniSearch, { type Options, type SearchResult } from 'minisearch'
import type { LibraryEntry } from './model.ts'

/** Longer than anything a person would type. The cost of a search grows with the number of its words. */
export const SEARCH_LENGTH_MAX = 200

/** Short words are unlikely to be typos, and are the beginning of too many others. */
const PREFIX_LENGTH_MIN = 3
const FUZZY_LENGTH_MIN = 5

/** The full-text index of the library. */
export type SearchIndex = MiniSearch<LibraryEntry>

const OPTIONS: Options<LibraryEntry> = {
  fields: ['title', 'markdown'],
  searchOptions: {
    boost: { title: 3 },
    prefix: term => term.length >= PREFIX_LENGTH_MIN,
    fuzzy: term => (term.length >= FUZZY_LENGTH_MIN ? 0.2 : false),
    weights: { fuzzy: 0.2, prefix: 0.4 },
  },
}

/** Creates the index of these entries. */
export function createIndex(entries: readonly LibraryEntry[]): SearchIndex {
  const index = new MiniSearch(OPTIONS)
  index.addAll(entries)
  return index
}

/** Restores an index from the output of `toJSON`. */
export function openIndex(written: object): SearchIndex {
  return MiniSearch.loadJS(written as Parameters<typeof MiniSearch.loadJS>[0], OPTIONS)
}

/** The best first. */
export function searchIndex(
  index: SearchIndex,
  query: string,
  isWanted: (id: string) => boolean,
): readonly SearchResult[] {
  return index.search(query, { filter: ({ id }) => isWanted(String(id)) })
}
