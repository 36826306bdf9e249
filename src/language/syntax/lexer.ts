/**
 * Splits a text into tokens, on demand: the parser holds the current token, and the lexer has not read beyond
 * it. JSON, which has different string rules, can therefore be read where the grammar allows it. The lexer
 * works on character codes and creates no strings except those that the tree needs.
 */

import type { Span } from '../tree/ast.ts'
import { BINDING } from './binding.ts'
import { QuerySyntaxError } from './syntax-error.ts'
import { extendHash, findWord, type Keyword } from './vocabulary.ts'

/** Maximum length of a text, in bytes of UTF-8. */
export const TEXT_BYTES_MAX = 65_536

/** Maximum number of tokens of a text. Comments do not count. */
export const TOKENS_MAX = 16_384

/** A comment with its delimiters, but without the line break after a line comment. */
export interface Comment {
  readonly text: string
  readonly span: Span
}

/** An operator or punctuation token. */
export type Sign =
  | '('
  | ')'
  | '['
  | ']'
  | '{'
  | '}'
  | ','
  | ';'
  | '.'
  | '.*'
  | ':'
  | '::'
  | '='
  | '<>'
  | '<'
  | '<='
  | '>'
  | '>='
  | '~'
  | '~*'
  | '@>'
  | '<@'
  | '&&'
  | '?'
  | '?|'
  | '?&'
  | '@@'
  | '||'
  | '+'
  | '-'
  | '*'
  | '/'
  | '%'
  | '->'
  | '->>'
  | '#>'
  | '#>>'

/** The type of a token. For a keyword or a sign it is the text in lower case; the others are classes. */
export type TokenType =
  | Keyword
  | Sign
  | '#word'
  | '#quoted'
  | '#text'
  | '#integer'
  | '#decimal'
  | '#duration'
  | '#position'
  | '#dollar'
  | '#unknown'
  | '#end'

/** The state of the lexer. `parser.ts` extends it. */
export interface Lexer {
  readonly text: string
  token: TokenType
  /** The keyword's role, one of `ROLE`; 0 for all other tokens. */
  role: number
  /** True for words, including keywords: tokens that can be names. */
  isWord: boolean
  /** Precedence of an infix operator; 0 for all other tokens. */
  infix: number
  start: number
  end: number
  /** End of the previous token. */
  before: number
  /** The content of a text, of a name in backticks, or of `$name`. */
  value: string
  /** Number of tokens read so far. */
  count: number
  /** The comments read so far; null if they are not collected. */
  comments: Comment[] | null
  commentsEnd: number
}

/** Creates a lexer positioned before the first token. */
export function createLexer(text: string): Lexer {
  return {
    text,
    token: '#end',
    role: 0,
    isWord: false,
    infix: 0,
    start: 0,
    end: 0,
    before: 0,
    value: '',
    count: 0,
    comments: null,
    commentsEnd: 0,
  }
}

const OTHER = 0
const LETTER = 1
const DIGIT = 2

/** The class of each ASCII character. */
const CLASS: Uint8Array = classes()

function classes(): Uint8Array {
  const table = new Uint8Array(128).fill(OTHER)
  for (let code = 48; code < 58; code++) table[code] = DIGIT
  for (let code = 65; code < 91; code++) table[code] = table[code + 32] = LETTER
  table[95] = LETTER
  return table
}

/**
 * Reads the next token. At the end of the text, it stays there.
 *
 * @throws QuerySyntaxError for an invalid token, or if the text has more than `TOKENS_MAX` tokens.
 */
export function advance(lexer: Lexer): void {
  const { text } = lexer
  const { length } = text
  let at = lexer.end
  let code = 0
  lexer.before = at
  lexer.role = 0
  lexer.infix = 0
  lexer.isWord = false
  for (;;) {
    if (at >= length) {
      // The end of the last token, so that an error points there and not after trailing line breaks.
      lexer.start = lexer.before
      lexer.token = '#end'
      return
    }
    code = text.charCodeAt(at)
    if (code === 32 || (code > 8 && code < 14) || (code > 127 && isBlank(text, at))) at++
    else if (code === 45 && text.charCodeAt(at + 1) === 45) at = lineComment(lexer, at)
    else if (code === 47 && text.charCodeAt(at + 1) === 42) at = blockComment(lexer, at)
    else break
  }
  if (++lexer.count > TOKENS_MAX) {
    throw syntaxError(lexer, at, at + 1, `the query has more than ${TOKENS_MAX} tokens`)
  }
  lexer.start = at
  const kind = code < 128 ? CLASS[code] : LETTER
  lexer.token =
    kind === LETTER ? readWord(lexer, at) : kind === DIGIT ? readNumber(lexer, at) : readSign(lexer, at, code)
}

// ---- words ------------------------------------------------------------------------------------------------

function readWord(lexer: Lexer, start: number): TokenType {
  const { text } = lexer
  const { length } = text
  let at = start
  let hash = 0
  for (; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code > 127 ? !isLetter(lexer, at) : CLASS[code] === OTHER) break
    hash = extendHash(hash, code)
  }
  if (at === start) return unknown(lexer, start)
  lexer.end = at
  lexer.isWord = true
  const word = findWord(text, start, at, hash)
  if (word === null) return '#word'
  lexer.role = word.role
  lexer.infix = word.infix
  return word.text
}

/**
 * Reports whether a non-ASCII character belongs to a word. A low surrogate does if its high surrogate does.
 */
function isLetter(lexer: Lexer, at: number): boolean {
  const { text } = lexer
  const code = text.charCodeAt(at)
  if (isLow(code) && at > lexer.start && isHigh(text.charCodeAt(at - 1))) return true
  assertStorable(lexer, at)
  return /[\p{L}\p{M}\p{N}]/u.test(String.fromCodePoint(text.codePointAt(at) ?? code))
}

function isBlank(text: string, at: number): boolean {
  return /\s/.test(text.charAt(at))
}

// ---- numbers ----------------------------------------------------------------------------------------------

function readNumber(lexer: Lexer, start: number): TokenType {
  const { text } = lexer
  let at = skipDigits(text, start)
  let token: TokenType = '#integer'
  if (text.charCodeAt(at) === 46) {
    token = '#decimal'
    at = skipDigits(text, at + 1)
  }
  const exponent = exponentEnd(text, at)
  if (exponent > at) {
    token = '#decimal'
    at = exponent
  }
  if (isWordAt(text, at)) {
    const unit = token === '#integer' ? unitLength(text, at) : 0
    if (unit === 0) return refuseNumber(lexer, start, at)
    token = '#duration'
    at += unit
  }
  lexer.end = at
  return token
}

/** Length of a duration's unit, `s`, `m`, `h`, `d`, `w`, `mo` or `y`; 0 if absent. */
function unitLength(text: string, at: number): number {
  const length = text.startsWith('mo', at) ? 2 : 'smhdwy'.includes(text.charAt(at)) ? 1 : 0
  return isWordAt(text, at + length) ? 0 : length
}

function isWordAt(text: string, at: number): boolean {
  if (at >= text.length) return false
  const code = text.charCodeAt(at)
  return code < 128 ? CLASS[code] !== OTHER : /[\p{L}\p{M}\p{N}]/u.test(text.charAt(at))
}

function skipDigits(text: string, start: number): number {
  let at = start
  while (at < text.length && isDigit(text.charCodeAt(at))) at++
  return at
}

/** End of an exponent such as `e-10`; the offset itself without an exponent. */
function exponentEnd(text: string, at: number): number {
  if (at >= text.length || (text.charCodeAt(at) | 32) !== 101) return at
  const sign = text.charCodeAt(at + 1)
  const digits = sign === 43 || sign === 45 ? at + 2 : at + 1
  const end = skipDigits(text, digits)
  return end > digits ? end : at
}

function refuseNumber(lexer: Lexer, start: number, at: number): never {
  const end = /[\p{L}\p{M}\p{N}_]*/uy
  end.lastIndex = at
  const tail = end.exec(lexer.text)?.[0].length ?? 0
  throw syntaxError(
    lexer,
    start,
    at + tail,
    'this is neither a number nor a duration',
    'a duration is a whole number and one of s, m, h, d, w, mo, y, as in 24h; ' +
      'put a name that starts with a digit in backticks',
  )
}

function isDigit(code: number): boolean {
  return code > 47 && code < 58
}

// ---- signs ------------------------------------------------------------------------------------------------

function sign(lexer: Lexer, token: Sign, infix: number): Sign {
  lexer.infix = infix
  lexer.end = lexer.start + token.length
  return token
}

/** Reads a sign, by its first character. The longest sign matches. */
function readSign(lexer: Lexer, at: number, code: number): TokenType {
  const { text } = lexer
  const next = at + 1 < text.length ? text.charCodeAt(at + 1) : 0
  switch (code) {
    // ( ) [ ] { } , ; start no longer sign and are not infix operators.
    case 40:
    case 41:
    case 91:
    case 93:
    case 123:
    case 125:
    case 44:
    case 59:
      return sign(lexer, text.charAt(at) as Sign, 0)
    case 46:
      if (isDigit(next)) return readNumber(lexer, at)
      return sign(lexer, next === 42 ? '.*' : '.', 0)
    case 58:
      return next === 58 ? sign(lexer, '::', BINDING.cast) : sign(lexer, ':', 0)
    case 61:
      return sign(lexer, '=', BINDING.comparison)
    case 60:
      return sign(lexer, next === 61 ? '<=' : next === 62 ? '<>' : next === 64 ? '<@' : '<', BINDING.comparison)
    case 62:
      return sign(lexer, next === 61 ? '>=' : '>', BINDING.comparison)
    case 33:
      if (next !== 61) return unknown(lexer, at)
      return sign(lexer, '<>', BINDING.comparison)
    case 126:
      return sign(lexer, next === 42 ? '~*' : '~', BINDING.comparison)
    case 64:
      if (next !== 62 && next !== 64) return unknown(lexer, at)
      return sign(lexer, next === 62 ? '@>' : '@@', BINDING.comparison)
    case 38:
      if (next !== 38) return unknown(lexer, at)
      return sign(lexer, '&&', BINDING.comparison)
    case 63:
      return sign(lexer, next === 124 ? '?|' : next === 38 ? '?&' : '?', BINDING.comparison)
    case 124:
      if (next !== 124) return unknown(lexer, at)
      return sign(lexer, '||', BINDING.concatenate)
    case 43:
      return sign(lexer, '+', BINDING.add)
    case 45:
      if (next !== 62) return sign(lexer, '-', BINDING.add)
      return sign(lexer, text.charCodeAt(at + 2) === 62 ? '->>' : '->', BINDING.step)
    case 35:
      if (next !== 62) return unknown(lexer, at)
      return sign(lexer, text.charCodeAt(at + 2) === 62 ? '#>>' : '#>', BINDING.step)
    case 42:
      return sign(lexer, '*', BINDING.multiply)
    case 47:
      return sign(lexer, '/', BINDING.multiply)
    case 37:
      return sign(lexer, '%', BINDING.multiply)
    case 36:
      return readDollar(lexer, at)
    case 39:
    case 34:
      return readText(lexer, at, code)
    case 96:
      return readQuoted(lexer, at)
    default:
      return unknown(lexer, at)
  }
}

/**
 * A character that starts no token. It becomes a token, so that the parser reports what it expected there.
 */
function unknown(lexer: Lexer, at: number): TokenType {
  assertStorable(lexer, at)
  lexer.end = at + (isHigh(lexer.text.charCodeAt(at)) ? 2 : 1)
  return '#unknown'
}

const DOLLAR_NAME = /[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*/y

/** `$1`; or `$name` and `$claims.name`, which are allowed only in the conditions of a policy. */
function readDollar(lexer: Lexer, at: number): TokenType {
  const { text } = lexer
  const digits = skipDigits(text, at + 1)
  if (digits > at + 1) {
    lexer.end = digits
    return '#position'
  }
  DOLLAR_NAME.lastIndex = at + 1
  const name = DOLLAR_NAME.exec(text)?.[0]
  if (name === undefined) return unknown(lexer, at)
  lexer.value = name
  lexer.end = at + 1 + name.length
  return '#dollar'
}

// ---- texts, quoted names, comments ------------------------------------------------------------------------

/**
 * `'text'` and `"text"`, with doubled quotes for the quote itself. Three quotes start a raw text, which ends
 * at the next three.
 */
function readText(lexer: Lexer, at: number, quote: number): TokenType {
  const { text } = lexer
  if (text.charCodeAt(at + 1) === quote && text.charCodeAt(at + 2) === quote) {
    const mark = text.slice(at, at + 3)
    const end = text.indexOf(mark, at + 3)
    if (end < 0) throw syntaxError(lexer, at, at + 3, 'unterminated raw text', `close it with ${mark}`, mark)
    refuseUnwritables(lexer, at + 3, end)
    lexer.value = text.slice(at + 3, end)
    lexer.end = end + 3
    return '#text'
  }
  readDelimited(lexer, at, quote, 'text')
  return '#text'
}

/** A name in backticks, with a doubled backtick for the backtick itself. */
function readQuoted(lexer: Lexer, at: number): TokenType {
  readDelimited(lexer, at, 96, 'name')
  if (lexer.value === '') throw syntaxError(lexer, at, lexer.end, 'a name is empty', null, 'a name')
  return '#quoted'
}

function readDelimited(lexer: Lexer, start: number, mark: number, what: 'text' | 'name'): void {
  const { text } = lexer
  const { length } = text
  let isDoubled = false
  let at = start + 1
  for (; ; at++) {
    if (at >= length) {
      const sign = text.charAt(start)
      throw syntaxError(lexer, start, start + 1, `unterminated ${what}`, `close it with ${sign}`, sign)
    }
    const code = text.charCodeAt(at)
    if (code === mark) {
      if (text.charCodeAt(at + 1) !== mark) break
      isDoubled = true
      at++
    } else if (code > 127 || code === 0) assertStorable(lexer, at)
  }
  const content = text.slice(start + 1, at)
  const sign = text.charAt(start)
  lexer.value = isDoubled ? content.replaceAll(sign + sign, sign) : content
  lexer.end = at + 1
}

/** Reads up to the line break or the end of the text. */
function lineComment(lexer: Lexer, start: number): number {
  const newline = lexer.text.indexOf('\n', start)
  const end = newline < 0 ? lexer.text.length : newline
  // The CR of a CRLF does not belong to the comment.
  keepComment(lexer, start, lexer.text.charCodeAt(end - 1) === 13 ? end - 1 : end)
  return end
}

/** Block comments can be nested, as in SQL, so that a block that contains a comment can be commented out. */
function blockComment(lexer: Lexer, start: number): number {
  const { text } = lexer
  let depth = 0
  for (let at = start; at < text.length - 1; ) {
    const code = text.charCodeAt(at)
    const next = text.charCodeAt(at + 1)
    if (code === 47 && next === 42) {
      depth++
      at += 2
    } else if (code === 42 && next === 47) {
      depth--
      at += 2
      if (depth === 0) {
        keepComment(lexer, start, at)
        return at
      }
    } else at++
  }
  throw syntaxError(lexer, start, start + 2, 'unterminated comment', 'close it with */', '*/')
}

/** Records a comment once. The parser sometimes looks ahead and then reads the same comment again. */
function keepComment(lexer: Lexer, start: number, end: number): void {
  if (start < lexer.commentsEnd) return
  refuseUnwritables(lexer, start, end)
  lexer.commentsEnd = end
  lexer.comments?.push({ text: lexer.text.slice(start, end), span: { start, end } })
}

// ---- errors -----------------------------------------------------------------------------------------------

function syntaxError(
  lexer: Lexer,
  start: number,
  end: number,
  reason: string,
  hint: string | null = null,
  expected: string | null = null,
): QuerySyntaxError {
  return new QuerySyntaxError(lexer.text, { start, end, expected: expected === null ? [] : [expected], reason, hint })
}

/**
 * Checks the length of a text. The bytes are counted only if the text could be too long.
 *
 * @throws QuerySyntaxError if it has more than `TEXT_BYTES_MAX` bytes.
 */
export function assertTextLength(text: string): void {
  // A UTF-16 unit takes at most three bytes.
  if (text.length * 3 <= TEXT_BYTES_MAX) return
  let bytes = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    // Each surrogate accounts for two of the pair's four bytes.
    bytes += code < 0x80 ? 1 : code < 0x800 || isHigh(code) || isLow(code) ? 2 : 3
    if (bytes > TEXT_BYTES_MAX) {
      const reason = `the query has more than ${TEXT_BYTES_MAX} bytes`
      const hint = 'pass long values as parameters'
      throw new QuerySyntaxError(text, { start: at, end: at + 1, expected: [], reason, hint })
    }
  }
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000
}

function refuseUnwritables(lexer: Lexer, start: number, end: number): void {
  for (let at = start; at < end; at++) assertStorable(lexer, at)
}

/**
 * Rejects characters that PostgreSQL cannot store: NUL, and unpaired surrogates, which would arrive as a
 * different character.
 */
function assertStorable(lexer: Lexer, at: number): void {
  const code = lexer.text.charCodeAt(at)
  const isLone =
    (isHigh(code) && !isLow(lexer.text.charCodeAt(at + 1))) || (isLow(code) && !isHigh(lexer.text.charCodeAt(at - 1)))
  if (isLone || code === 0) {
    throw syntaxError(
      lexer,
      at,
      at + 1,
      isLone ? 'an unpaired surrogate is not a character' : 'a text cannot contain NUL',
    )
  }
}
