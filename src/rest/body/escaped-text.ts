/**
 * The bytes of a text that contains quoted texts, nested to any depth. Bytes `inside` n quotes have their
 * quotes and backslashes escaped n times. JSON strings, arrays and composite values of PostgreSQL escape them
 * in the same way (PostgreSQL manual, 8.15.6 and 8.16.6).
 */
import { GatewayError } from '../../errors.ts'
import { BACKSLASH, QUOTE } from '../../json/json-scanner.ts'
import { LIMIT_NAMES } from '../../statement-limits.ts'

const BYTES_AT_FIRST = 1024

const SPACE = 0x20

/** All bytes except quotes, backslashes and control characters. */
const IS_PLAIN_TEXT: Uint8Array = new Uint8Array(256).fill(1, SPACE)
IS_PLAIN_TEXT[QUOTE] = 0
IS_PLAIN_TEXT[BACKSLASH] = 0

const CONTROL = Buffer.from('\\u0000')
const DIGITS = '0123456789abcdef'

export class EscapedText {
  readonly #isJson: boolean
  readonly #bytesMax: number
  #text = Buffer.allocUnsafe(BYTES_AT_FIRST)
  #length = 0

  /**
   * `bytesMax`: limit on the text, because each level of arrays and composite values doubles the backslashes;
   * 0 means no limit.
   */
  constructor(form: 'plain' | 'JSON string', bytesMax: number) {
    this.#isJson = form === 'JSON string'
    this.#bytesMax = bytesMax === 0 ? Number.POSITIVE_INFINITY : bytesMax
  }

  get length(): number {
    return this.#length
  }

  bytes(): Buffer {
    return this.#text.subarray(0, this.#length)
  }

  /** Removes the bytes after `length`. */
  cut(length: number): void {
    this.#length = length
  }

  /** Appends bytes unchanged. */
  copy(bytes: Buffer, start: number, end: number): void {
    this.#reserve(end - start)
    this.#length += bytes.copy(this.#text, this.#length, start, end)
  }

  /** Appends bytes that never need an escape; faster than `copy` for short runs. */
  words(bytes: Buffer, start: number, end: number): void {
    this.#reserve(end - start)
    const text = this.#text
    let length = this.#length
    for (let at = start; at < end; at += 1) {
      text[length] = bytes[at] as number
      length += 1
    }
    this.#length = length
  }

  /** Appends bytes with escapes. The loop has no call per byte, because a body can have two million bytes. */
  escaped(bytes: Buffer, start: number, end: number, inside: number): void {
    this.#reserve(end - start)
    let text = this.#text
    let length = this.#length
    for (let at = start; at < end; at += 1) {
      const byte = bytes[at] as number
      if (inside === 0 || IS_PLAIN_TEXT[byte] === 1) {
        text[length] = byte
        length += 1
        continue
      }
      this.#length = length
      this.character(byte, inside)
      this.#reserve(end - at)
      text = this.#text
      length = this.#length
    }
    this.#length = length
  }

  character(byte: number, inside: number): void {
    if (byte < SPACE && this.#isJson) this.#control(byte)
    else this.byte(byte, inside)
  }

  byte(byte: number, inside: number): void {
    if (inside > 0 && (byte === QUOTE || byte === BACKSLASH)) {
      this.mark(byte, inside)
      return
    }
    this.#reserve(1)
    this.#text[this.#length] = byte
    this.#length += 1
  }

  /** Appends a byte that needs no escape several times. */
  repeat(byte: number, times: number): void {
    if (times <= 0) return
    this.#reserve(times)
    this.#text.fill(byte, this.#length, this.#length + times)
    this.#length += times
  }

  /** Appends a quote or backslash with 2ⁿ − 1 backslashes before it: each level of quotes doubles them. */
  mark(byte: number, inside: number): void {
    const width = 2 ** inside
    this.#reserve(width)
    const text = this.#text
    const end = this.#length + width - 1
    for (let at = this.#length; at < end; at += 1) text[at] = BACKSLASH
    text[end] = byte
    this.#length = end + 1
  }

  /** Appends the escape that JSON requires for a control character. */
  #control(byte: number): void {
    this.#reserve(CONTROL.length)
    this.#length += CONTROL.copy(this.#text, this.#length)
    this.#text[this.#length - 2] = DIGITS.charCodeAt(byte >> 4)
    this.#text[this.#length - 1] = DIGITS.charCodeAt(byte & 0xf)
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed > this.#bytesMax) throw tooLong(this.#bytesMax)
    if (needed > this.#text.length) this.#text = Buffer.concat([this.#text], Math.max(2 * this.#text.length, needed))
  }
}

function tooLong(bytesMax: number): GatewayError {
  const limit = LIMIT_NAMES.maxTextFormBytes
  return new GatewayError(
    'PAYLOAD_TOO_LARGE',
    `the arrays and composite values of the body have more than ${bytesMax} bytes in the text form that ` +
      `PostgreSQL reads (${limit}); send fewer rows or elements at a time`,
    { limit },
  )
}
