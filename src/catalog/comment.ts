/**
 * Splits a database comment into its description and an example, if its last line declares one
 * (docs/guides/openapi.md).
 */

/** A parsed comment. */
export interface ParsedComment {
  /** The comment without the line of the example; null if it has no other text. */
  readonly comment: string | null
  /** The example as written, trimmed. It is validated elsewhere (openapi/declared-examples.ts). */
  readonly example: string | null
}

/**
 * `comment = { line } [ "@example" [ blank text ] ]`. Except in the last line, the word has no special
 * meaning.
 */
export function readComment(text: string | null): ParsedComment {
  const whole = text?.trimEnd() ?? ''
  const start = whole.lastIndexOf('\n') + 1
  const line = LINE.exec(whole.slice(start))
  if (line === null) return { comment: text, example: null }
  const rest = whole.slice(0, start).trimEnd()
  return { comment: rest === '' ? null : rest, example: line[1] ?? '' }
}

const LINE = /^\s*@example(?:\s+(.*)|$)/s
