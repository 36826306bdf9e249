/**
 * The corpus: examples of the query language, each with its canonical form and SQL; invalid texts, each with
 * its error; and the grammar. The data are the files of `corpus/` in the root of the repository. The tests
 * check the language against them, the reference shows them, and the tool server answers from them. The
 * corpus is not part of `svc-gateway/language`, so that browsers do not load it.
 */

/** The name of a part of the language that examples show, such as `join`. */
export type Construct = string

/** A valid query. */
export interface QueryExample {
  readonly construct: Construct
  readonly query: string
  /** The canonical form, if the query is not written in it. */
  readonly formatted?: string
  /** The SQL with literals kept. */
  readonly sql: string
  /** The point of the example, in one line. */
  readonly note: string
}

/** A text that the parser rejects, or the printer if it has no SQL. */
export interface InvalidQueryExample {
  readonly construct: Construct
  readonly query: string
  /** The problem in one line, without its position. */
  readonly error: string
  /** Line number, from 1. */
  readonly line: number
  /** Column number, from 1, in characters. */
  readonly column: number
  /** What to write instead, if known. */
  readonly hint?: string
  /** What is wrong, in one line. */
  readonly note: string
}

/** A production of the grammar. */
export interface Production {
  readonly name: string
  /** The right side in EBNF: text in double quotes is literal, `[ ]` is optional, `{ }` repeats. */
  readonly text: string
  /** A description in one line. */
  readonly explanation: string
  /** The construct with its examples; null for productions that are used everywhere. */
  readonly construct: Construct | null
}

/** A rule that the productions do not express. */
export interface GrammarNote {
  /** In Markdown. */
  readonly text: string
  /** The constructs that the rule concerns. */
  readonly constructs: readonly Construct[]
}

/** All data of the corpus. */
export interface Corpus {
  /** The title of each construct, in the order in which the reference presents them. */
  readonly constructs: Readonly<Record<Construct, string>>
  /** In the order of their constructs. */
  readonly examples: readonly QueryExample[]
  readonly invalid: readonly InvalidQueryExample[]
  readonly grammar: readonly Production[]
  readonly notes: readonly GrammarNote[]
  /** The SQL that creates the tables of the examples. */
  readonly schema: string
}
