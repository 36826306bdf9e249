/** What is wrong with the text of a schema document, and where: in the shape of the query language's own syntax error. */

import { placeOf } from '../language/syntax/place.ts'
import { LanguageError } from '../language/tree/error.ts'
import { alternatives, caretAfter, displayed, shortened } from '../text/showing.ts'
import { nearestWord } from '../text/spelling.ts'

/** How much of a long line is shown around the place. */
const LINE_SHOWN_MAX = 100

/** What is known where the parser stops. */
export interface Complaint {
  /** Offsets of what stood there, in UTF-16 units; equal at the end of the text. */
  readonly start: number
  readonly end: number
  /** Words and signs as they are written (`on`, `)`), and kinds of things (`a table`). */
  readonly expected: readonly string[]
  /** What is wrong, where that is more than an unexpected word. */
  readonly reason?: string
}

/** `message` has everything in a few lines: the problem and its place, the line with a caret below, and the hint. */
export class SchemaSyntaxError extends LanguageError {
  /** The problem alone, in one line, without its place. */
  readonly problem: string
  /** From 1. */
  readonly line: number
  /** From 1, in characters (code points). */
  readonly column: number
  /** From 0, in UTF-16 units, as spans are. */
  readonly offset: number
  /** The text that stood there, shortened; `end of the line` or `end of the document` where nothing did. */
  readonly found: string
  readonly expected: readonly string[]
  readonly hint: string | null
  /** The line, shortened around the place where it is long, control characters shown as `�`. */
  readonly sourceLine: string

  constructor(text: string, complaint: Complaint) {
    const { start, end, expected, reason } = complaint
    const found = foundIn(text, start, end)
    const problem =
      reason ??
      `expected ${alternatives(expected)}; found ${found.isText ? JSON.stringify(found.text) : `the ${found.text}`}`
    // A line may end with CR alone; to count, all ends of lines are one.
    const before = text.slice(0, start).replaceAll(/\r\n?/g, '\n')
    const { line, column } = placeOf(before, before.length)
    const { shown, shownBefore } = excerpt(text, start)
    const near = found.isText
      ? nearestWord(
          found.text,
          expected.filter(item => /^\w+$/.test(item)),
        )
      : null
    const hint = near === null || near === found.text.toLowerCase() ? null : `did you mean ${JSON.stringify(near)}?`
    const lines = [`${problem} (line ${line}, column ${column})`, `  ${shown}`, `  ${caretAfter(shownBefore)}`]
    super((hint === null ? lines : [...lines, hint]).join('\n'), { start, end: Math.max(end, start + 1) })
    this.name = 'SchemaSyntaxError'
    this.problem = problem
    this.line = line
    this.column = column
    this.offset = start
    this.found = found.text
    this.expected = expected
    this.hint = hint
    this.sourceLine = shown
  }
}

function foundIn(text: string, start: number, end: number): { readonly text: string; readonly isText: boolean } {
  const found = text.slice(start, end)
  if (found === '') return { text: 'end of the document', isText: false }
  if (found === '\n' || found === '\r') return { text: 'end of the line', isText: false }
  return { text: shortened(found), isText: true }
}

/** The line around an offset, and the part of it before the offset. */
function excerpt(text: string, at: number): { readonly shown: string; readonly shownBefore: string } {
  const lineStart = at === 0 ? 0 : Math.max(text.lastIndexOf('\n', at - 1), text.lastIndexOf('\r', at - 1)) + 1
  const start = Math.max(lineStart, at - LINE_SHOWN_MAX / 2)
  const [after = ''] = text.slice(at, start + LINE_SHOWN_MAX).split(/[\r\n]/, 1)
  const end = at + after.length
  const isCut = end < text.length && !/[\r\n]/.test(text[end] ?? '')
  const shownBefore = displayed(`${start > lineStart ? '…' : ''}${text.slice(start, at)}`)
  return { shownBefore, shown: `${shownBefore}${displayed(after.trimEnd())}${isCut ? '…' : ''}` }
}
