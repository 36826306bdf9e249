/** How texts become an index, and words find them: the same when the package is built and when it is asked. */
import MiniSearch, { type Options, type SearchResult } from 'minisearch'
import type { Entry } from './model.ts'

/** Longer than anything one would type; what a search costs grows with its words. */
export const SEARCH_LENGTH_MAX = 200

/** Words of a few letters are no slips, and begin too many others. */
const PREFIX_LENGTH_MIN = 3
const FUZZY_LENGTH_MIN = 5

export type Index = MiniSearch<Entry>

const OPTIONS: Options<Entry> = {
  fields: ['title', 'markdown'],
  searchOptions: {
    boost: { title: 3 },
    prefix: term => term.length >= PREFIX_LENGTH_MIN,
    fuzzy: term => (term.length >= FUZZY_LENGTH_MIN ? 0.2 : false),
    weights: { fuzzy: 0.2, prefix: 0.4 },
  },
}

export function createIndex(entries: readonly Entry[]): Index {
  const index = new MiniSearch(OPTIONS)
  index.addAll(entries)
  return index
}

/** Of what `toJSON` made. */
export function openIndex(written: object): Index {
  return MiniSearch.loadJS(written as Parameters<typeof MiniSearch.loadJS>[0], OPTIONS)
}

/** The best first. */
export function searchIndex(index: Index, query: string, isWanted: (id: string) => boolean): readonly SearchResult[] {
  return index.search(query, { filter: ({ id }) => isWanted(String(id)) })
}
