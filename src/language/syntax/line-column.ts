/** Converts offsets to line and column numbers. */

/** A position in a text by line and column. */
export interface LineColumn {
  /** Line number, from 1. */
  readonly line: number
  /** Column number, from 1, in characters (code points): an emoji counts once. */
  readonly column: number
}

/** The position of an offset, which counts UTF-16 units from 0, as spans do. */
export function lineColumnAt(text: string, offset: number): LineColumn {
  const before = text.slice(0, offset)
  const lineStart = before.lastIndexOf('\n') + 1
  let line = 1
  for (let at = before.indexOf('\n'); at >= 0; at = before.indexOf('\n', at + 1)) line++
  return { line, column: [...before.slice(lineStart)].length + 1 }
}
