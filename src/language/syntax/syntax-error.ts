/** The parser's error: its position, what was found there, and what was expected. */

import { alternatives, excerptAt, foundText } from '../../text/excerpt.ts'
import { LanguageError } from '../tree/error.ts'
import { lineColumnAt } from './line-column.ts'

/** Maximum number of expected items that a message lists. */
const EXPECTED_SHOWN_MAX = 12

/** The details of a syntax error. */
interface SyntaxErrorDetails {
  /** Offsets of the text found, in UTF-16 units; equal at the end of the text. */
  readonly start: number
  readonly end: number
  /**
   * Words and signs of the grammar as they are written (`where`, `)`), and kinds of items (`a table name`).
   */
  readonly expected: readonly string[]
  /** The specific reason; null if the text found is simply not among `expected`. */
  readonly reason: string | null
  readonly hint: string | null
}

/**
 * Thrown for an invalid text. `message` has several lines: the problem and its position, the source line with
 * a caret, and the hint.
 */
export class QuerySyntaxError extends LanguageError {
  /** The problem in one line, without its position. */
  readonly problem: string
  /** Line number, from 1. */
  readonly line: number
  /** Column number, from 1, in characters (code points): an emoji counts once. */
  readonly column: number
  /** Offset from 0, in UTF-16 units, as in spans. */
  readonly offset: number
  /** The text found, shortened; `end of the query` at the end. */
  readonly found: string
  readonly expected: readonly string[]
  readonly hint: string | null
  /** The source line, shortened around the position if it is long, with control characters shown as `�`. */
  readonly sourceLine: string

  constructor(text: string, complaint: SyntaxErrorDetails) {
    const { start, end, reason, hint } = complaint
    const expected = [...new Set(complaint.expected)]
    const found = end > start ? foundText(text.slice(start, end)) : 'end of the query'
    const problem = reason ?? problemOf(expected, end > start ? JSON.stringify(found) : `the ${found}`)
    const { line, column } = lineColumnAt(text, start)
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
  if (expected.length === 0) return `unexpected ${found}`
  return `expected ${alternatives(expected, EXPECTED_SHOWN_MAX)}; found ${found}`
}
