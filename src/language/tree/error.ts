/** The error class of the language: a text or tree that cannot be processed, with the reason and the fix. */

import type { Span } from './ast.ts'

/**
 * Thrown for an invalid text or tree. The message is for the author of the query: what failed, why, and what
 * to write instead. `span` is the location in the text; null if the tree was built without a text.
 */
export class LanguageError extends Error {
  readonly span: Span | null

  constructor(message: string, span: Span | null = null) {
    super(message)
    this.name = 'LanguageError'
    this.span = span !== null && span.end > span.start ? span : null
  }
}

/** Thrown if the SQL of a query would repeat subexpressions beyond the limit. */
export class RepetitionError extends LanguageError {
  /** The exceeded limit: how often, or how many characters. */
  readonly of: 'times' | 'characters'

  constructor(message: string, span: Span, of: RepetitionError['of']) {
    super(message, span)
    this.of = of
  }
}

/**
 * Ends every `switch` over a union. A new kind of node that a `switch` does not handle fails to compile.
 *
 * @throws Error always: only a tree that violates its type gets here.
 */
export function unknownNode(value: never): never {
  throw new LanguageError(
    `the tree has a node of the unknown kind ${JSON.stringify((value as { kind?: unknown }).kind)}`,
  )
}
