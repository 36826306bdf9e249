/**
 * A position in the text of a document. Blanks, words, names and texts are read from it in order, each only
 * once.
 */

import { IDENTIFIER_BYTES_MAX } from '../language/tree/identifier.ts'
import type { Name, Span, TableName } from './model.ts'
import { SchemaSyntaxError } from './syntax-error.ts'

/** Limit on the UTF-16 units of one document; enough for about ten thousand tables. */
export const DOCUMENT_LENGTH_MAX: number = 8 * 1024 * 1024

export interface Cursor {
  readonly text: string
  at: number
}

/**
 * Opens a text. Rejects texts that are too long or contain NUL or an unpaired surrogate. Skips a byte order
 * mark at the start.
 */
export function openCursor(text: string): Cursor {
  const cursor: Cursor = { text, at: text.startsWith('\uFEFF') ? 1 : 0 }
  if (text.length > DOCUMENT_LENGTH_MAX) {
    refuseAt(cursor, DOCUMENT_LENGTH_MAX, `the document has more than ${DOCUMENT_LENGTH_MAX} characters; split it`)
  }
  const unwritable = text.search(/\0|\p{Surrogate}/u)
  if (unwritable >= 0) {
    const found = text[unwritable] === '\0' ? 'a NUL character' : 'half a surrogate pair'
    refuseAt(cursor, unwritable, `the document contains ${found}; PostgreSQL cannot hold it`)
  }
  return cursor
}

// Created once, because each is tried at many thousands of positions of a document.
export const DOCUMENT_BLANKS: RegExp = /[ \t\f\v\r\n]+/y
export const BLANKS_IN_LINE: RegExp = /[ \t\f\v]+/y
const LINE_END = /[\r\n]/g
const WORD = /[\p{L}_][\p{L}\p{M}\p{N}_]*/uy
const TAG = /\$(?:[\p{L}_][\p{L}\p{M}\p{N}_]*)?\$/uy

/** The end of the match of a sticky expression at this position; the position itself if it does not match. */
export function matchEnd(sticky: RegExp, text: string, at: number): number {
  sticky.lastIndex = at
  return sticky.test(text) ? sticky.lastIndex : at
}

export function spanSince(cursor: Cursor, start: number): Span {
  return { start, end: cursor.at }
}

/** Skips white space, line breaks and comments. */
export function skipBlanks(cursor: Cursor): void {
  skip(cursor, DOCUMENT_BLANKS)
}

/** Skips white space and a comment, and stops before the line break. */
export function skipInLine(cursor: Cursor): void {
  skip(cursor, BLANKS_IN_LINE)
}

function skip(cursor: Cursor, blanks: RegExp): void {
  for (;;) {
    const before = cursor.at
    cursor.at = matchEnd(blanks, cursor.text, before)
    if (cursor.text[cursor.at] === '#' || cursor.text.startsWith('--', cursor.at)) {
      cursor.at = lineEnd(cursor.text, cursor.at)
    }
    if (cursor.at === before) return
  }
}

/** The offset of the line break that ends the line, or of the end of the text. */
export function lineEnd(text: string, at: number): number {
  LINE_END.lastIndex = at
  return LINE_END.exec(text)?.index ?? text.length
}

/** The bare word that begins here, as written; empty for none. */
export function wordAt(cursor: Cursor): string {
  return cursor.text.slice(cursor.at, matchEnd(WORD, cursor.text, cursor.at))
}

/** The bare word that begins here as a lower-case keyword. Words longer than any keyword are ignored. */
export function keywordAt(cursor: Cursor): string {
  const word = wordAt(cursor)
  return word.length > IDENTIFIER_BYTES_MAX ? '' : word.toLowerCase()
}

/** Takes the keyword if it is next. */
export function takeKeyword(cursor: Cursor, keyword: string): boolean {
  if (keywordAt(cursor) !== keyword) return false
  cursor.at += keyword.length
  return true
}

export function takeSymbol(cursor: Cursor, symbol: string): boolean {
  if (!cursor.text.startsWith(symbol, cursor.at)) return false
  cursor.at += symbol.length
  return true
}

/** Takes the keyword after blanks, or fails. */
export function expectKeyword(cursor: Cursor, keyword: string): void {
  skipBlanks(cursor)
  if (!takeKeyword(cursor, keyword)) failExpecting(cursor, [keyword])
}

export function expectSymbol(cursor: Cursor, symbol: string): void {
  skipBlanks(cursor)
  if (!takeSymbol(cursor, symbol)) failExpecting(cursor, [symbol])
}

/** name = word | "`" { any | "``" } "`" ; */
export function readName(cursor: Cursor, what: string): Name {
  const start = cursor.at
  const text = cursor.text[start] === '`' ? readQuoted(cursor, '`') : takeWord(cursor)
  if (text === '') {
    cursor.at = start
    failExpecting(cursor, cursor.text[start] === '"' ? [`${what} in back-ticks: \`name\``] : [what])
  }
  if (isTooLong(text)) {
    refuseAt(cursor, start, `a name has at most ${IDENTIFIER_BYTES_MAX} bytes; PostgreSQL would truncate this one`)
  }
  return { kind: 'name', text, span: spanSince(cursor, start) }
}

function takeWord(cursor: Cursor): string {
  const word = wordAt(cursor)
  cursor.at += word.length
  return word
}

/** table = name [ "." name ] ; */
export function readTableName(cursor: Cursor, what: string): TableName {
  const start = cursor.at
  const first = readName(cursor, what)
  const second = takeSymbol(cursor, '.') ? readName(cursor, 'a name') : null
  return {
    kind: 'table',
    schema: second === null ? null : first.text,
    name: (second ?? first).text,
    span: spanSince(cursor, start),
  }
}

/** names = name { "," name } in parentheses. */
export function readNames(cursor: Cursor): readonly Name[] {
  expectSymbol(cursor, '(')
  const names: Name[] = []
  do {
    skipBlanks(cursor)
    names.push(readName(cursor, 'a name'))
    skipBlanks(cursor)
  } while (takeSymbol(cursor, ','))
  if (!takeSymbol(cursor, ')')) failExpecting(cursor, [',', ')'])
  return names
}

export function readMethod(cursor: Cursor): string {
  skipBlanks(cursor)
  return readName(cursor, 'an access method').text
}

/** Reads a separator: a comma, a line break, both in either order, or the brace that ends the list. */
export function expectSeparator(cursor: Cursor): void {
  skipInLine(cursor)
  const next = cursor.text[cursor.at]
  if (next === '}') return
  const isEnded = next === '\n' || next === '\r'
  if (isEnded) skipBlanks(cursor)
  if (!takeSymbol(cursor, ',') && !isEnded) failExpecting(cursor, [',', 'the end of the line', '}'])
}

/** text = "'" { any | "''" } "'" ; */
export function readTextLiteral(cursor: Cursor, what: string): string {
  if (cursor.text[cursor.at] !== "'") failExpecting(cursor, [what])
  return readQuoted(cursor, "'")
}

/** The cursor is at the opening quote; a doubled quote represents the quote itself. */
function readQuoted(cursor: Cursor, quote: string): string {
  const start = cursor.at
  for (let from = start + 1; ; ) {
    const end = cursor.text.indexOf(quote, from)
    if (end < 0) refuseOpen(cursor.text, start, quote, quote)
    if (cursor.text[end + 1] !== quote) {
      cursor.at = end + 1
      return cursor.text.slice(start + 1, end).replaceAll(quote + quote, quote)
    }
    from = end + 2
  }
}

/** Reads a body in `$$ … $$` or `$tag$ … $tag$`, unchanged. */
export function readBody(cursor: Cursor, what: string): string {
  const open = dollarTagAt(cursor.text, cursor.at)
  if (open === null) failExpecting(cursor, [what])
  const start = cursor.at + open.length
  const end = cursor.text.indexOf(open, start)
  if (end < 0) refuseOpen(cursor.text, cursor.at, open, open)
  cursor.at = end + open.length
  return cursor.text.slice(start, end)
}

/** The opening of a dollar-quoted text (PostgreSQL manual, 4.1.2.4) that begins here. */
export function dollarTagAt(text: string, at: number): string | null {
  const end = matchEnd(TAG, text, at)
  return end > at ? text.slice(at, end) : null
}

/** @throws SchemaSyntaxError for an unexpected token */
export function failExpecting(cursor: Cursor, expected: readonly string[]): never {
  const { text, at } = cursor
  throw new SchemaSyntaxError(text, { start: at, end: tokenEnd(text, at), expected })
}

/** @throws SchemaSyntaxError for a token that is possible there but not allowed, with the reason */
export function refuseAt(cursor: Cursor, at: number, reason: string): never {
  throw new SchemaSyntaxError(cursor.text, { start: at, end: tokenEnd(cursor.text, at), expected: [], reason })
}

/** @throws SchemaSyntaxError for an opening that is never closed */
export function refuseOpen(text: string, at: number, opened: string, closing: string): never {
  const reason = `${opened} is not closed; expected ${closing}`
  throw new SchemaSyntaxError(text, { start: at, end: at + opened.length, expected: [closing], reason })
}

function tokenEnd(text: string, at: number): number {
  const end = Math.max(matchEnd(WORD, text, at), matchEnd(TAG, text, at))
  return end > at ? end : Math.min(text.length, at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1))
}

function isTooLong(name: string): boolean {
  if (name.length > IDENTIFIER_BYTES_MAX) return true
  let bytes = 0
  for (const character of name) {
    const point = character.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes > IDENTIFIER_BYTES_MAX
}
