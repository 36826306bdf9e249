/**
 * Expressions in a document: SQL that is stored as text. It is not parsed, but read token by token, so that
 * quotes, dollar quotes, comments and parentheses are respected and its end is certain.
 * In the tree, white space and comments are replaced by one blank, and parentheses around the whole
 * expression are removed.
 */

import { LanguageError } from '../language/tree/error.ts'
import { NESTING_MAX } from '../language/tree/nesting.ts'
import { commentEnd } from '../text/comment-end.ts'
import { shorten } from '../text/shorten.ts'
import {
  BLANKS_IN_LINE,
  type Cursor,
  DOCUMENT_BLANKS,
  dollarTagAt,
  failExpecting,
  keywordAt,
  lineEnd,
  matchEnd,
  refuseAt,
  refuseOpen,
} from './cursor.ts'
import { SchemaSyntaxError } from './syntax-error.ts'

/**
 * The end of an expression, in addition to a comma, an unmatched closing bracket, and the end of the text.
 */
export interface ExpressionEnd {
  /**
   * True if a line break and `#`, as a comment, end it. If false, the expression is in brackets, and `#` is
   * PostgreSQL's operator.
   */
  readonly line: boolean
  readonly keywords: ReadonlySet<string>
}

const NO_KEYWORDS: ReadonlySet<string> = new Set()

/** One expression or a list of them, up to the closing parenthesis. */
export const IN_PARENTHESES: ExpressionEnd = { line: false, keywords: NO_KEYWORDS }
/** The rest of the line, or the text up to a keyword of the document that cannot continue the SQL. */
export const TO_LINE_END: ExpressionEnd = { line: true, keywords: new Set(['table', 'unique']) }

/** Reads an expression and removes parentheses around the whole. */
export function readExpression(cursor: Cursor, end: ExpressionEnd): string {
  return unwrapped(readElement(cursor, end))
}

/**
 * Reads an expression in a list, where parentheses around it can have a meaning (`create index … ((a + b))`).
 */
export function readElement(cursor: Cursor, end: ExpressionEnd): string {
  const { text } = cursor
  const open: string[] = []
  const pieces: string[] = []
  let gap = ''
  for (;;) {
    const start = cursor.at
    const first = text[start]
    const isOutside = open.length === 0
    if (first === undefined || (isOutside && isEnd(cursor, first, end))) break
    const blank = skipBlank(cursor, end.line && isOutside)
    if (blank !== '') {
      if (gap !== '\n') gap = blank
      continue
    }
    bracket(cursor, first, open)
    cursor.at = tokenEnd(text, start)
    const token = text.slice(start, cursor.at)
    if (token === '`') refuseAt(cursor, start, 'expressions are SQL, where an unusual name must be in double quotes')
    if (pieces.length > 0 && gap !== '') {
      // Two string constants separated by a line break are one constant (PostgreSQL manual, 4.1.2.1); without
      // a line break they are an error.
      pieces.push(gap === '\n' && token.startsWith("'") && pieces.at(-1)?.endsWith("'") ? '\n' : ' ')
    }
    pieces.push(token)
    gap = ''
  }
  if (pieces.length === 0) failExpecting(cursor, ['an expression'])
  if (open.length > 0) failExpecting(cursor, [open.at(-1) ?? ''])
  return pieces.join('')
}

/** elements = element { "," element } in parentheses; the cursor is after the opening one. */
export function readElements(cursor: Cursor): readonly string[] {
  const elements: string[] = []
  do {
    elements.push(readElement(cursor, IN_PARENTHESES))
    cursor.at += 1
  } while (cursor.text[cursor.at - 1] === ',')
  if (cursor.text[cursor.at - 1] === ')') return elements
  cursor.at -= 1
  failExpecting(cursor, [',', ')'])
}

/** The text as written in a document: bare if it can be read back unchanged, in parentheses otherwise. */
export function printDocumentExpression(text: string, end: ExpressionEnd): string {
  const canonical = canonicalExpression(text)
  return isWhole(canonical, end) ? canonical : `(${canonical})`
}

/** The text as it is read back from a document. @throws LanguageError if it cannot be read back */
export function canonicalExpression(text: string): string {
  return whole(text, IN_PARENTHESES, readExpression)
}

export function canonicalElement(text: string): string {
  return whole(text, IN_PARENTHESES, readElement)
}

function whole(text: string, end: ExpressionEnd, read: (cursor: Cursor, end: ExpressionEnd) => string): string {
  const cursor: Cursor = { text, at: 0 }
  const found = read(cursor, end)
  if (cursor.at === text.length) return found
  throw new LanguageError(`${JSON.stringify(shorten(text))} is not an expression; it ends too early`)
}

function isWhole(canonical: string, end: ExpressionEnd): boolean {
  const cursor: Cursor = { text: canonical, at: 0 }
  try {
    return readExpression(cursor, end) === canonical && cursor.at === canonical.length
  } catch (error) {
    if (error instanceof SchemaSyntaxError) return false
    throw error
  }
}

/** SQL expressions contain neither braces nor semicolons. */
const ENDS: ReadonlySet<string> = new Set([')', ']', '{', '}', ',', ';'])

function isEnd(cursor: Cursor, first: string, end: ExpressionEnd): boolean {
  if (ENDS.has(first)) return true
  if (end.line && (first === '\n' || first === '\r')) return true
  return end.keywords.size > 0 && end.keywords.has(keywordAt(cursor))
}

/**
 * Skips one run of white space or one comment and returns its equivalent. A line break that ends the
 * expression is not skipped.
 */
function skipBlank(cursor: Cursor, endsWithLine: boolean): '' | ' ' | '\n' {
  const { text } = cursor
  const start = cursor.at
  cursor.at = matchEnd(endsWithLine ? BLANKS_IN_LINE : DOCUMENT_BLANKS, text, start)
  if (cursor.at > start) {
    return /[\r\n]/.test(text.slice(start, cursor.at)) ? '\n' : ' '
  }
  if (text.startsWith('--', start) || (endsWithLine && text[start] === '#')) cursor.at = lineEnd(text, start)
  else if (text.startsWith('/*', start)) cursor.at = commentEnd(text, start) ?? refuseOpen(text, start, '/*', '*/')
  return cursor.at === start ? '' : ' '
}

const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']' }

/** Tracks open brackets, as the characters that close them. */
function bracket(cursor: Cursor, first: string, open: string[]): void {
  if (first === '{' || first === '}' || first === ';') failExpecting(cursor, [open.at(-1) ?? ''])
  const closing = CLOSING[first]
  if (closing !== undefined) {
    open.push(closing)
    if (open.length > NESTING_MAX) {
      refuseAt(cursor, cursor.at, `the expression nests more than ${NESTING_MAX} brackets`)
    }
  } else if (first === ')' || first === ']') {
    if (open.pop() !== first) failExpecting(cursor, [first === ')' ? ']' : ')'])
  }
}

const WORD_OR_NUMBER = /[\p{L}\p{N}_][\p{L}\p{M}\p{N}_$]*/uy

/** The end of the token that begins here: a text, a quoted name, a word or number, or a single character. */
function tokenEnd(text: string, start: number): number {
  const first = text[start]
  if (first === "'") return quoteEnd(text, start, "'")
  if (first === '"') return quoteEnd(text, start, '"')
  if (first === '$') {
    const tag = dollarTagAt(text, start)
    if (tag !== null) {
      const end = text.indexOf(tag, start + tag.length)
      return end < 0 ? refuseOpen(text, start, tag, tag) : end + tag.length
    }
  }
  const end = matchEnd(WORD_OR_NUMBER, text, start)
  if (end === start) return start + ((text.codePointAt(start) ?? 0) > 0xffff ? 2 : 1)
  const isEscaped = end === start + 1 && (first === 'e' || first === 'E') && text[end] === "'"
  return isEscaped ? escapedEnd(text, end) : end
}

function quoteEnd(text: string, start: number, quote: string): number {
  for (let from = start + 1; ; ) {
    const end = text.indexOf(quote, from)
    if (end < 0) return refuseOpen(text, start, quote, quote)
    if (text[end + 1] !== quote) return end + 1
    from = end + 2
  }
}

/** `E'…'`: a backslash escapes the next character (PostgreSQL manual, 4.1.2.2). */
function escapedEnd(text: string, start: number): number {
  const marks = /\\|'/g
  marks.lastIndex = start + 1
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    if (mark[0] === "'" && text[mark.index + 1] !== "'") return mark.index + 1
    marks.lastIndex = mark.index + 2
  }
  return refuseOpen(text, start, "'", "'")
}

/** Queries and rows need their parentheses. */
const QUERY = /^\(\s*(?:select|with|values|table)\b/i

/** Removes the parentheses around the whole, in one pass. */
function unwrapped(text: string): string {
  if (!text.startsWith('(') || !text.endsWith(')')) return text
  const open: number[] = []
  const closedAt = new Map<number, number>()
  const isRow = new Set<number>()
  for (let at = 0; at < text.length; at = tokenEnd(text, at)) {
    const first = text[at]
    if (first === '(' || first === '[') open.push(at)
    else if (first === ',') isRow.add(open.at(-1) ?? -1)
    else if (first === ')' || first === ']') closedAt.set(open.pop() ?? -1, at)
  }
  let start = 0
  let end = text.length
  while (text[start] === '(' && closedAt.get(start) === end - 1 && !isRow.has(start)) {
    let from = start + 1
    let to = end - 1
    while (text[from] === ' ') from++
    while (text[to - 1] === ' ') to--
    if (from >= to || QUERY.test(text.slice(start, from + 8))) break
    start = from
    end = to
  }
  return text.slice(start, end)
}
