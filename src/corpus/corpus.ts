/**
 * The corpus: what the query language can say, by example, each with its canonical form and its SQL; what it
 * refuses, each with the error; and its grammar. The data are the files of `corpus/` at the root of the
 * repository. The tests hold the language to them, the reference shows them, and the tool server answers from
 * them. No part of `svc-gateway/language`, so that no browser loads them.
 */

/** The name of a part of the language that examples show: `join`. */
export type Construct = string

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

export interface Production {
  readonly name: string
  /**
   * The right side in EBNF: texts in double quotes are written as they are, `[ ]` is optional, `{ }` repeats.
   */
  readonly text: string
  /** In a line. */
  readonly explanation: string
  /** Where its examples are; null for what stands everywhere. */
  readonly construct: Construct | null
}

/** What the productions do not say. */
export interface Note {
  /** In Markdown. */
  readonly text: string
  /** Where it matters. */
  readonly constructs: readonly Construct[]
}

export interface Corpus {
  /** With a title each, in the order in which one learns them. */
  readonly constructs: Readonly<Record<Construct, string>>
  /** In the order of their constructs. */
  readonly examples: readonly Example[]
  readonly invalid: readonly InvalidExample[]
  readonly grammar: readonly Production[]
  readonly notes: readonly Note[]
  /** SQL that makes the tables of the examples. */
  readonly schema: string
}
