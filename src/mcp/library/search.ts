/** Builds and queries the search index, in the same way at build time and at run time. */
import MiniSearch, { type Options, type SearchResult } from 'minisearch'
import type { LibraryEntry } from './model.ts'
import { isStopWord, isWeak, stemOf } from './words.ts'

/** Longer than anything a person would type. The cost of a search grows with the number of its words. */
export const SEARCH_LENGTH_MAX = 200

/** Short words are unlikely to be typos, and are the beginning of too many others. */
const PREFIX_LENGTH_MIN = 3
const FUZZY_LENGTH_MIN = 5

/** The full-text index of the library. */
export type SearchIndex = MiniSearch<LibraryEntry>

const OPTIONS: Options<LibraryEntry> = {
  fields: ['title', 'lead', 'markdown'],
  extractField: (entry, name) => (name === 'lead' ? leadOf(entry) : entry[name as keyof LibraryEntry]),
  processTerm: term => (isStopWord(term.toLowerCase()) ? null : stemOf(term.toLowerCase())),
  searchOptions: {
    boost: { title: 3, lead: 2 },
    boostDocument: id => weightOf(String(id)),
    prefix: term => term.length >= PREFIX_LENGTH_MIN,
    fuzzy: term => (term.length >= FUZZY_LENGTH_MIN ? 0.2 : false),
    weights: { fuzzy: 0.2, prefix: 0.4 },
  },
}

/**
 * The first paragraph below the heading, in which a page introduces its subject. Empty if code or a table
 * comes first, and for entries of less weight, because the field would be a sixth of the index.
 */
function leadOf({ id, kind, markdown }: LibraryEntry): string {
  if (kind !== 'documentation' || weightOf(id) < 1) return ''
  const [first = ''] = markdown.replace(/^#{1,6} .*\n+/, '').split('\n\n')
  return /^(?:```|~~~|\|)/.test(first) ? '' : first
}

/**
 * Weights by the path that an id begins with; the first that fits counts. Agents ask how to use the gateway,
 * rather than how it works.
 */
const WEIGHTS: readonly (readonly [beginning: string, weight: number])[] = [
  ['docs/decisions/', 0.3],
  ['docs/internals/', 0.4],
  ['docs/reference/glossary.md#', 0.6],
  ['docs/', 1],
  ['example:', 0.6],
  ['grammar:', 0.6],
  ['', 0.4],
]

function weightOf(id: string): number {
  return WEIGHTS.find(([beginning]) => id.startsWith(beginning))?.[1] ?? 1
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
  const words = query.split(/\s+/)
  const telling = words.filter(word => !isWeak(word.toLowerCase()))
  const searched = telling.length > 0 ? telling : words
  return index.search(searched.join(' '), { filter: ({ id }) => isWanted(String(id)) })
}
