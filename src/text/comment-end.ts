/**
 * The end of the comment of SQL that begins with the slash at `start`. Comments nest (PostgreSQL manual,
 * 4.1.5). Null if it is not closed.
 */
export function commentEnd(text: string, start: number): number | null {
  const marks = /\/\*|\*\//g
  marks.lastIndex = start
  let depth = 0
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    depth += mark[0] === '/*' ? 1 : -1
    if (depth === 0) return marks.lastIndex
  }
  return null
}
