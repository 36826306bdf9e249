/** What the corpus is made of. */

import type { Construct } from './constructs.ts'

/** A query that is understood. */
export interface Example {
  readonly construct: Construct
  readonly query: string
  /** The canonical form, where the query is not written in it. */
  readonly formatted?: string
  /** With literals kept. */
  readonly sql: string
  /** What there is to see, in a line. */
  readonly note: string
}

/** A text that is refused, by the parser or, where it has no SQL, by the printer. */
export interface InvalidExample {
  readonly construct: Construct
  readonly query: string
  /** The problem in one line, without its place. */
  readonly error: string
  /** From 1. */
  readonly line: number
  /** From 1, in characters. */
  readonly column: number
  /** What to write instead, where the parser knows. */
  readonly hint?: string
  /** What is wrong, in a line. */
  readonly note: string
}
