/** The data of the tool server: created when the package is built, and shipped with it. */
import type { Corpus } from '../../corpus/corpus.ts'

/** The kinds of entries. */
export const KINDS = ['documentation', 'readme', 'grammar', 'example'] as const

/** The kind of an entry. */
export type EntryKind = (typeof KINDS)[number]

/** A part of a page, a production of the grammar, or an example of the language. */
export interface LibraryEntry {
  /** `docs/reference/limits.md#behind-proxies`, `grammar:join`, `example:join-3`. */
  readonly id: string
  /** From the root of the repository. */
  readonly path: string
  readonly kind: EntryKind
  readonly title: string
  /** The level of the entry's heading; 0 if the entry is not a part of a page. */
  readonly level: number
  readonly markdown: string
}

/** A recipe of the builder's guide. */
export interface Recipe {
  /** The section of the guide that it belongs to. */
  readonly topic: string
  readonly title: string
  /** TypeScript. */
  readonly code: string
  /** Its content: the text and the SQL. */
  readonly query: string
  readonly sql: string
}

/** The data of the library. */
export interface LibraryData {
  /** Parts of a page follow each other as in the page. */
  readonly entries: readonly LibraryEntry[]
  readonly corpus: Corpus
  readonly recipes: readonly Recipe[]
  /** The search index of both, as `minisearch` writes it. */
  readonly index: object
}
