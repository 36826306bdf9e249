/**
 * Scans the tokens of a JSON text in its bytes without decoding them, and reports errors (RFC 8259). Every
 * `scan` function takes the offset of a token's first byte and returns the offset after its last; the bytes
 * must be valid UTF-8.
 */
import { GatewayError } from '../errors.ts'
import { shorten } from '../text/shorten.ts'

/** The result of `byteAt` after the last byte. */
export const END = -1

export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const BACKSLASH = 0x5c
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30

export function byteAt(body: Buffer, at: number): number {
  return at < body.length ? (body[at] as number) : END
}

/** ws = *( %x20 / %x09 / %x0A / %x0D ) */
export function skipWhiteSpace(body: Buffer, from: number): number {
  let at = from
  for (;;) {
    const byte = byteAt(body, at)
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at
    at += 1
  }
}

/**
 * string = quotation-mark *char quotation-mark; narrower than the RFC where PostgreSQL's text is: no NUL, no
 * half of a surrogate pair.
 */
export function scanString(body: Buffer, start: number): number {
  let at = start + 1
  for (;;) {
    at = skipPlain(body, at)
    const byte = byteAt(body, at)
    if (byte === QUOTE) return at + 1
    if (byte !== BACKSLASH) refuseInString(body, start, at)
    at = scanEscape(body, at)
  }
}

/** The offset of the next byte with a meaning in a string: its end, an escape, or a control character. */
export function skipPlain(body: Buffer, from: number): number {
  let at = from
  while (at < body.length && IS_PLAIN[body[at] as number] === 1) at += 1
  return at
}

/** unescaped = %x20-21 / %x23-5B / %x5D-10FFFF */
const IS_PLAIN: Uint8Array = new Uint8Array(256).fill(1, 0x20)
IS_PLAIN[QUOTE] = 0
IS_PLAIN[BACKSLASH] = 0

function refuseInString(body: Buffer, start: number, at: number): never {
  const byte = byteAt(body, at)
  if (byte === END) refuseBody(body, start, 'the string that begins here has no closing double quote; add it')
  const written = JSON.stringify(String.fromCharCode(byte)).slice(1, -1)
  const remedy = byte === 0 ? `leave it out, ${NUL_REASON}` : `write it as ${written}`
  refuseBody(body, at, `found the control character ${nameCharacter(byte)} in a string, expected it escaped; ${remedy}`)
}

const NUL_REASON = 'PostgreSQL has no text with the character U+0000'

/** escape = \ ( " / \ / "/" / b / f / n / r / t / uXXXX ), where a surrogate counts only as one of a pair. */
function scanEscape(body: Buffer, start: number): number {
  const letter = byteAt(body, start + 1)
  if (letter !== 0x75) {
    if (letter === END || !ESCAPES.includes(letter)) {
      const found = letter === END ? 'the end of the body' : describeToken(body, start + 1)
      refuseBody(
        body,
        start,
        `found ${found} after a backslash, expected one of ${ESCAPES} or u; write \\\\ for a backslash`,
      )
    }
    return start + 2
  }
  const unit = scanUnit(body, start)
  if (unit === 0) refuseBody(body, start, `found \\u0000; leave it out, ${NUL_REASON}`)
  if (unit < 0xd800 || unit > 0xdfff) return start + 6
  const isPair = unit < 0xdc00 && byteAt(body, start + 6) === BACKSLASH && byteAt(body, start + 7) === 0x75 // u
  const second = isPair ? scanUnit(body, start + 6) : END
  if (second < 0xdc00 || second > 0xdfff) {
    const written = body.toString('latin1', start, start + 6)
    refuseBody(
      body,
      start,
      `found ${written}, one half of a surrogate pair; write both halves, or the character itself`,
    )
  }
  return start + 12
}

const ESCAPES: Buffer = Buffer.from('"\\/bfnrt')

/**
 * Decodes the content of a scanned string. JSON.parse would take several times as long, because it enters
 * short strings into V8's table of all strings.
 */
export function unescapeString(content: string): string {
  let text = ''
  let from = 0
  for (let at = content.indexOf('\\'); at !== -1; at = content.indexOf('\\', from)) {
    text += content.slice(from, at)
    const letter = content.charAt(at + 1)
    from = letter === 'u' ? at + 6 : at + 2
    text +=
      letter === 'u'
        ? String.fromCharCode(Number.parseInt(content.slice(at + 2, from), 16))
        : (MEANING.get(letter) ?? letter)
  }
  return text + content.slice(from)
}

/** The letters with a special meaning after a backslash. */
const MEANING: ReadonlyMap<string, string> = new Map([
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

/** The UTF-16 code unit of the escape `\uXXXX` at this offset. */
function scanUnit(body: Buffer, start: number): number {
  let unit = 0
  for (let at = start + 2; at < start + 6; at += 1) {
    const digit = HEX_VALUE[byteAt(body, at)] ?? END
    if (digit === END) {
      refuseBody(body, start, `found ${describeToken(body, at)} in an escape, expected \\u and four hexadecimal digits`)
    }
    unit = unit * 16 + digit
  }
  return unit
}

const HEX_VALUE: Int8Array = new Int8Array(256).fill(END)
for (let digit = 0; digit < 16; digit += 1) {
  HEX_VALUE[digit.toString(16).charCodeAt(0)] = digit
  HEX_VALUE[digit.toString(16).toUpperCase().charCodeAt(0)] = digit
}

/** number = [ minus ] int [ frac ] [ exp ], of any length. */
export function scanNumber(body: Buffer, start: number): number {
  const first = byteAt(body, start) === MINUS ? start + 1 : start
  let at = skipDigits(body, first)
  if (at === first || (at > first + 1 && byteAt(body, first) === ZERO)) refuseNumber(body, start)
  if (byteAt(body, at) === DOT) {
    const fraction = at + 1
    at = skipDigits(body, fraction)
    if (at === fraction) refuseNumber(body, start)
  }
  if ((byteAt(body, at) | 0x20) === 0x65) {
    const sign = byteAt(body, at + 1)
    const exponent = sign === 0x2b || sign === MINUS ? at + 2 : at + 1
    at = skipDigits(body, exponent)
    if (at === exponent) refuseNumber(body, start)
  }
  return at
}

function skipDigits(body: Buffer, from: number): number {
  let at = from
  for (;;) {
    const byte = byteAt(body, at)
    if (byte < ZERO || byte > 0x39) return at
    at += 1
  }
}

function refuseNumber(body: Buffer, start: number): never {
  refuseBody(body, start, `found ${describeToken(body, start)}, expected a number written like 0, -12.5 or 1e-3`)
}

/** True if the number in these bytes, already scanned, has neither fraction nor exponent. */
function isInteger(body: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = body[at] as number
    if (byte === DOT || (byte | 0x20) === 0x65) return false
  }
  return true
}

const TRUE: Buffer = Buffer.from('true')
const FALSE: Buffer = Buffer.from('false')
const NULL: Buffer = Buffer.from('null')

/** A value that is neither object, array nor string: true, false, null or a number. */
export function scanWord(body: Buffer, start: number, expected: string): number {
  const byte = byteAt(body, start)
  if (byte === MINUS || (byte >= ZERO && byte <= 0x39)) return scanNumber(body, start)
  const word = byte === 0x74 ? TRUE : byte === 0x66 ? FALSE : byte === 0x6e ? NULL : null
  if (word !== null && startsWith(body, start, word)) return start + word.length
  refuseFound(body, start, expected)
}

function startsWith(body: Buffer, start: number, word: Buffer): boolean {
  for (let index = 1; index < word.length; index += 1) {
    if (byteAt(body, start + index) !== word[index]) return false
  }
  return true
}

/** The end of the value that begins there, in bytes that are known to be JSON. */
export function scanKnown(bytes: Buffer, start: number): number {
  let depth = 0
  let at = start
  for (;;) {
    switch (byteAt(bytes, at)) {
      case END:
        return at
      case QUOTE:
        at = scanString(bytes, at)
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1
        at += 1
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth -= 1
        at += 1
        break
      case COMMA:
      case COLON:
        at += 1
        break
      default:
        at = scanWord(bytes, at, 'a JSON value')
    }
    if (depth === 0) return at
    at = skipWhiteSpace(bytes, at)
  }
}

/** True if an array in valid JSON has more than `max` items; reads only that many. */
export function hasMoreItems(array: Buffer, max: number): boolean {
  let at = skipWhiteSpace(array, 1)
  let count = 0
  while (byteAt(array, at) !== CLOSE_BRACKET && byteAt(array, at) !== END) {
    count += 1
    if (count > max) return true
    at = skipWhiteSpace(array, scanKnown(array, at))
    if (byteAt(array, at) === COMMA) at = skipWhiteSpace(array, at + 1)
  }
  return false
}

/**
 * An `integer` is a number written without fraction and exponent, however long; `1.0` and `1e3` are a
 * `number`.
 */
export type JsonType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'

/** The type of the value in these bytes, already scanned. */
export function typeOf(body: Buffer, start: number, end: number): JsonType {
  switch (body[start]) {
    case OPEN_BRACE:
      return 'object'
    case OPEN_BRACKET:
      return 'array'
    case QUOTE:
      return 'string'
    case 0x74: // true
    case 0x66: // false
      return 'boolean'
    case 0x6e: // null
      return 'null'
    default:
      return isInteger(body, start, end) ? 'integer' : 'number'
  }
}

/** Throws the error for an unexpected token; `expected` describes what is accepted. */
export function refuseFound(body: Buffer, at: number, expected: string): never {
  refuseBody(body, at, `found ${describeToken(body, at)}, expected ${expected}${adviceAt(body, at)}`)
}

/** Advice about text that is valid in JavaScript, Python or UTF-16 but not in JSON. */
function adviceAt(body: Buffer, at: number): string {
  switch (byteAt(body, at)) {
    case 0x00:
      return '; encode the body as UTF-8'
    case 0x23: // #
    case 0x2f: // /
      return '; remove the comment'
    case 0x27: // '
      return '; use double quotes'
    default:
      return ''
  }
}

/** Throws the error for an invalid body, with the position in lines and characters, counted from 1. */
export function refuseBody(body: Buffer, at: number, what: string): never {
  const { line, column } = positionOf(body, at)
  throw new GatewayError('PARSE_ERROR', `line ${line}, column ${column} of the body: ${what}`, {
    details: { line, column },
  })
}

function positionOf(body: Buffer, at: number): { readonly line: number; readonly column: number } {
  let line = 1
  let column = 1
  for (let index = 0; index < at; index += 1) {
    const byte = body[index] as number
    if (byte === 0x0a) {
      line += 1
      column = 1
    } else if ((byte & 0xc0) !== 0x80) {
      // Continuation bytes of a character are not counted.
      column += 1
    }
  }
  return { line, column }
}

/** The token at an offset, for messages: a word, a character, or the end. */
export function describeToken(body: Buffer, at: number): string {
  const text = body.toString('utf8', at, at + FOUND_BYTES_MAX)
  const character = text.codePointAt(0)
  if (character === undefined) return 'the end of the body'
  const word = WORD.exec(text)
  if (word !== null) return `"${shorten(word[0])}"`
  if (character === QUOTE) return 'a double quote'
  const shown = String.fromCodePoint(character)
  return VISIBLE.test(shown) ? `"${shown}"` : nameCharacter(character)
}

/** Limit on the bytes examined: more than the message shows. */
const FOUND_BYTES_MAX = 100

const WORD = /^[\w.+-]+/

const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u

function nameCharacter(character: number): string {
  return `U+${character.toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * Throws the error for invalid UTF-8. Up to the invalid byte, the text that Node decodes has the same bytes.
 */
export function refuseUtf8(body: Buffer): never {
  let at = 0
  for (const character of body.toString('utf8')) {
    const isReplaced =
      character === '\ufffd' && body.compare(REPLACEMENT, 0, 3, at, Math.min(at + 3, body.length)) !== 0
    if (isReplaced) break
    at += Buffer.byteLength(character)
  }
  const byte = byteAt(body, at).toString(16).toUpperCase().padStart(2, '0')
  refuseBody(body, at, `found the byte 0x${byte}, expected UTF-8; encode the body as UTF-8`)
}

const REPLACEMENT: Buffer = Buffer.from('\ufffd')
