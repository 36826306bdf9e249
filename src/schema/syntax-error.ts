/**
 * A syntax error in a schema document with its position, in the form of the query language's syntax error.
 */

import { lineColumnAt } from '../language/syntax/line-column.ts'
import { LanguageError } from '../language/tree/error.ts'
import { alternatives, excerptAt, foundText } from '../text/excerpt.ts'
import { nearest, WORDS } from '../text/nearest.ts'

/** The position and reason of a syntax error. */
export interface Complaint {
  /** Offsets of the unexpected text, in UTF-16 units; equal at the end of the text. */
  readonly start: number
  readonly end: number
  /** Words and signs as they are written (`on`, `)`), and kinds of things (`a table`). */
  readonly expected: readonly string[]
  /** The reason, if it is more than an unexpected word. */
  readonly reason?: string
}

/** A syntax error. `message` has the problem with its position, the line with a caret below, and the hint. */
export class SchemaSyntaxError extends LanguageError {
  /** The problem in one line, without its position. */
  readonly problem: string
  /** From 1. */
  readonly line: number
  /** From 1, in characters (code points). */
  readonly column: number
  /** From 0, in UTF-16 units, as spans are. */
  readonly offset: number
  /** The unexpected text, shortened; `end of the line` or `end of the document` if there is no text. */
  readonly found: string
  readonly expected: readonly string[]
  readonly hint: string | null
  /** The line, shortened around the position if it is long, with control characters as `�`. */
  readonly sourceLine: string

  constructor(text: string, complaint: Complaint) {
    const { start, end, expected, reason } = complaint
    const found = foundIn(text, start, end)
    const problem =
      reason ??
      `expected ${alternatives(expected)}; found ${found.isText ? JSON.stringify(found.text) : `the ${found.text}`}`
    // A line can end with CR alone, so all line ends are normalized for counting.
    const before = text.slice(0, start).replaceAll(/\r\n?/g, '\n')
    const { line, column } = lineColumnAt(before, before.length)
    const { line: sourceLine, lines: excerpt } = excerptAt(text, start)
    const near = found.isText
      ? nearest(
          found.text,
          expected.filter(item => /^\w+$/.test(item)),
          WORDS,
        )
      : null
    const hint = near === null || near === found.text.toLowerCase() ? null : `did you mean ${JSON.stringify(near)}?`
    const lines = [`${problem} (line ${line}, column ${column})`, ...excerpt]
    super((hint === null ? lines : [...lines, hint]).join('\n'), { start, end: Math.max(end, start + 1) })
    this.name = 'SchemaSyntaxError'
    this.problem = problem
    this.line = line
    this.column = column
    this.offset = start
    this.found = found.text
    this.expected = expected
    this.hint = hint
    this.sourceLine = sourceLine
  }
}

function foundIn(text: string, start: number, end: number): { readonly text: string; readonly isText: boolean } {
  const found = text.slice(start, end)
  if (found === '') return { text: 'end of the document', isText: false }
  if (found === '\n' || found === '\r') return { text: 'end of the line', isText: false }
  return { text: foundText(found), isText: true }
}
