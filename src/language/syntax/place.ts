/** Where in a text an offset is, as people count. */

export interface Place {
  /** From 1. */
  readonly line: number
  /** From 1, in characters (code points), so that an emoji counts once. */
  readonly column: number
}

/** `offset` counts UTF-16 units from 0, as spans do. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset)
  const lineStart = before.lastIndexOf('\n') + 1
  let line = 1
  for (let at = before.indexOf('\n'); at >= 0; at = before.indexOf('\n', at + 1)) line++
  return { line, column: [...before.slice(lineStart)].length + 1 }
}
