/** Formats the text around the position of a syntax error, and what was expected there. */
import { shorten } from './shorten.ts'

/** Limits on the text shown at the position, and on the part of a long line around it. */
const FOUND_SHOWN_MAX = 40
const LINE_SHOWN_MAX = 100

/** The text at which a parser stopped, for messages. */
export function foundText(text: string): string {
  return displayed(shorten(text, FOUND_SHOWN_MAX))
}

export interface Excerpt {
  /** The line, shortened around the place where it is long, control characters shown as `�`. */
  readonly line: string
  /** The line, and below it a caret at the place; both indented. */
  readonly lines: readonly [string, string]
}

/** The line around an offset of a text; it ends with LF, CR or both. */
export function excerptAt(text: string, at: number): Excerpt {
  const lineStart = at === 0 ? 0 : Math.max(text.lastIndexOf('\n', at - 1), text.lastIndexOf('\r', at - 1)) + 1
  const lineEnd = endOfLine(text, at)
  const isLong = lineEnd - lineStart > LINE_SHOWN_MAX
  const start = isLong ? Math.max(lineStart, at - LINE_SHOWN_MAX / 2) : lineStart
  const end = isLong ? Math.min(lineEnd, start + LINE_SHOWN_MAX) : lineEnd
  const before = displayed(`${start > lineStart ? '…' : ''}${text.slice(start, at)}`)
  const line = `${before}${displayed(text.slice(at, end).trimEnd())}${end < lineEnd ? '…' : ''}`
  return { line, lines: [`  ${line}`, `  ${before.replace(/[^\t]/gu, ' ')}^`] }
}

function endOfLine(text: string, from: number): number {
  const ending = /[\r\n]/g
  ending.lastIndex = from
  return ending.exec(text)?.index ?? text.length
}

/**
 * Safe for a terminal and for every encoding: no control characters but the tab, no halves of surrogate
 * pairs.
 */
function displayed(text: string): string {
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f-\x9f]|\p{Surrogate}/gu, '\ufffd')
}

/** Expected items that name a kind of thing; the others are literals. */
const KIND = /^(a|an|the) /

/** `"on", "as" or a table`; no more than `max`. */
export function alternatives(expected: readonly string[], max: number = Number.POSITIVE_INFINITY): string {
  const shown = expected.slice(0, max).map(item => (KIND.test(item) ? item : JSON.stringify(item)))
  if (expected.length > max) shown.push('…')
  const last = shown.pop() ?? ''
  return shown.length > 0 ? `${shown.join(', ')} or ${last}` : last
}
