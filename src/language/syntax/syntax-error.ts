/** The error of the parser: where the text stops being a query, what stood there, and what could have. */

import { alternatives, excerptAt, foundText } from '../../text/excerpt.ts'
import { LanguageError } from '../tree/error.ts'
import { placeOf } from './place.ts'

/** How many of the possibilities a message lists. */
const EXPECTED_SHOWN_MAX = 12

/** What is known where the parser stops. */
interface Complaint {
  /** Offsets of what stood there, in UTF-16 units; equal at the end of the text. */
  readonly start: number
  readonly end: number
  /** Words and signs of the grammar as they are written (`where`, `)`), and kinds of them (`a table name`). */
  readonly expected: readonly string[]
  /** What is wrong, where that is more than an unexpected word; null: it is not one of `expected`. */
  readonly reason: string | null
  readonly hint: string | null
}

/**
 * A text that is no query. `message` has everything in a few lines: the problem and its place, the line of the source with a caret below,
 * and the hint.
 */
export class QuerySyntaxError extends LanguageError {
  /** The problem alone, in one line, without its place. */
  readonly problem: string
  /** From 1. */
  readonly line: number
  /** From 1, in characters (code points), so that an emoji counts once. */
  readonly column: number
  /** From 0, in UTF-16 units, as spans are. */
  readonly offset: number
  /** The text that stood there, shortened; `end of the query` where nothing did. */
  readonly found: string
  readonly expected: readonly string[]
  readonly hint: string | null
  /** The line of the source, shortened around the place where it is long, control characters shown as `�`. */
  readonly sourceLine: string

  constructor(text: string, complaint: Complaint) {
    const { start, end, reason, hint } = complaint
    const expected = [...new Set(complaint.expected)]
    const found = end > start ? foundText(text.slice(start, end)) : 'end of the query'
    const problem = reason ?? problemOf(expected, end > start ? JSON.stringify(found) : `the ${found}`)
    const { line, column } = placeOf(text, start)
    const { line: sourceLine, lines: excerpt } = excerptAt(text, start)
    const lines = [`${problem} (line ${line}, column ${column})`, ...excerpt]
    super((hint === null ? lines : [...lines, hint]).join('\n'), { start, end })
    this.name = 'QuerySyntaxError'
    this.problem = problem
    this.line = line
    this.column = column
    this.offset = start
    this.found = found
    this.expected = expected
    this.hint = hint
    this.sourceLine = sourceLine
  }
}

function problemOf(expected: readonly string[], found: string): string {
  if (expected.length === 0) return `${found} does not belong here`
  return `expected ${alternatives(expected, EXPECTED_SHOWN_MAX)}; found ${found}`
}
