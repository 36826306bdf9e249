/** The error of the parser: where the text stops being a query, what stood there, and what could have. */

import { LanguageError } from './error.ts'

/** How much of a long line is shown around the place, and how many of the possibilities a message lists. */
const LINE_SHOWN_MAX = 100
const EXPECTED_SHOWN_MAX = 12
const FOUND_SHOWN_MAX = 40

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
    const found = end > start ? shortened(text.slice(start, end)) : 'end of the query'
    const problem = reason ?? problemOf(expected, end > start ? JSON.stringify(found) : `the ${found}`)
    const lineStart = start === 0 ? 0 : text.lastIndexOf('\n', start - 1) + 1
    const line = lineNumber(text, lineStart)
    const column = codePoints(text.slice(lineStart, start)) + 1
    const { shown, before } = excerpt(text, lineStart, start)
    const caret = `${[...before].map(character => (character === '\t' ? '\t' : ' ')).join('')}^`
    const lines = [`${problem} (line ${line}, column ${column})`, `  ${shown}`, `  ${caret}`]
    super((hint === null ? lines : [...lines, hint]).join('\n'), { start, end })
    this.name = 'QuerySyntaxError'
    this.problem = problem
    this.line = line
    this.column = column
    this.offset = start
    this.found = found
    this.expected = expected
    this.hint = hint
    this.sourceLine = shown
  }
}

/** Of what is expected some are kinds of things, the others are meant to be written as they are. */
const KIND = /^(a|an|the) /

function problemOf(expected: readonly string[], found: string): string {
  if (expected.length === 0) return `${found} does not belong here`
  const shown = expected.slice(0, EXPECTED_SHOWN_MAX).map(item => (KIND.test(item) ? item : JSON.stringify(item)))
  if (expected.length > EXPECTED_SHOWN_MAX) shown.push('…')
  const last = shown.pop()
  return `expected ${shown.length > 0 ? `${shown.join(', ')} or ${last}` : last}; found ${found}`
}

function shortened(text: string): string {
  return displayed(text.length > FOUND_SHOWN_MAX ? `${text.slice(0, FOUND_SHOWN_MAX)}…` : text)
}

function lineNumber(text: string, lineStart: number): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < lineStart; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** The line around an offset, and the part of it before the offset. */
function excerpt(text: string, lineStart: number, at: number): { readonly shown: string; readonly before: string } {
  const newline = text.indexOf('\n', at)
  const lineEnd = newline < 0 ? text.length : newline
  const isLong = lineEnd - lineStart > LINE_SHOWN_MAX
  const start = isLong ? Math.max(lineStart, at - LINE_SHOWN_MAX / 2) : lineStart
  const end = isLong ? Math.min(lineEnd, start + LINE_SHOWN_MAX) : lineEnd
  const before = displayed(`${start > lineStart ? '…' : ''}${text.slice(start, at)}`)
  return { before, shown: `${before}${displayed(text.slice(at, end).trimEnd())}${end < lineEnd ? '…' : ''}` }
}

/** Safe for a terminal and for every encoding: no control characters but the tab, no halves of surrogate pairs. */
function displayed(text: string): string {
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f-\x9f]|\p{Surrogate}/gu, '\ufffd')
}
