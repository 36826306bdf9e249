/** The one error of the language: a tree (later also a text) that cannot be honoured, with the reason and the way out. */

import type { Span } from './ast.ts'

/**
 * A refusal. The message is for the author of the query: what was refused, why, and what to write instead.
 * `span` says where in the text; null where the tree was built and no text stands behind it.
 */
export class LanguageError extends Error {
  readonly span: Span | null

  constructor(message: string, span: Span | null = null) {
    super(message)
    this.name = 'LanguageError'
    this.span = span !== null && span.end > span.start ? span : null
  }
}

/** What the SQL of a query would repeat is longer than it may be. */
export class RepetitionError extends LanguageError {}

/** Ends every `switch` over a union: a kind that is added to the tree and forgotten there does not compile. */
export function unreachable(value: never): never {
  throw new LanguageError(
    `a node of the unknown kind ${JSON.stringify((value as { kind?: unknown }).kind)} is in the tree`,
  )
}
