/** What a comment tells: words for people, and an example if its last line declares one (docs/guides/openapi.md). */

export interface Told {
  /** Without the line of the example; null where nothing else was said. */
  readonly comment: string | null
  /** As it was written, without blanks around it. Whether it is one, somebody else looks (openapi/declared-examples.ts). */
  readonly example: string | null
}

/** `comment = { line } [ "@example" [ blank text ] ]`. Anywhere but in the last line the word is one like any other. */
export function readComment(text: string | null): Told {
  const whole = text?.trimEnd() ?? ''
  const start = whole.lastIndexOf('\n') + 1
  const line = LINE.exec(whole.slice(start))
  if (line === null) return { comment: text, example: null }
  const rest = whole.slice(0, start).trimEnd()
  return { comment: rest === '' ? null : rest, example: line[1] ?? '' }
}

const LINE = /^\s*@example(?:\s+(.*)|$)/s
