/**
 * Values that PostgreSQL writes as JSON and does not read from it. Objects of `hstore`: it reads the text form only. Arrays whose elements may be arrays
 * themselves: documents of `jsonb[]`, values of a domain over an array. Where JSON is to become an array, PostgreSQL
 * takes every array in it for a dimension, so `[[1], 2]` is no `jsonb[]` and `[["a"]]` has two dimensions. Its text form tells elements from
 * dimensions (PostgreSQL manual, 8.15.2), and a string is read as that: such a value goes into the statement as a string, element by element, bytes of documents as they came.
 */
import { baseOf, isJson } from '../../access/types.ts'
import type { DataType, Table } from '../../catalog/model.ts'
import type { JsonValue } from '../../json/json-body.ts'
import {
  BACKSLASH,
  byteAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  END,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  scanKnown,
  scanString,
  skipPlain,
  skipWhiteSpace,
  unescapeString,
} from '../../json/json-scanner.ts'

export interface ArrayForm {
  readonly of: ElementForm
}

/** A value that PostgreSQL does not read from JSON as it writes it: an array like these, or the object of an `hstore`. */
export type TextForm = ArrayForm | 'hstore'

/**
 * What an element is in JSON: any value, an array of its own, an object of columns, an object of texts, or a value without parts, which the arrays
 * around it are dimensions of.
 */
type ElementForm = 'json' | ArrayForm | 'composite' | 'hstore' | 'plain'

export const JSON_ARRAY: ArrayForm = { of: 'json' }

/** Also documents in it go as they are. */
export const PLAIN_ARRAY: ArrayForm = { of: 'plain' }

/** Null: PostgreSQL reads the JSON of this type by itself. */
export function textFormOf(type: DataType): TextForm | null {
  return isHstore(type) ? 'hstore' : arrayFormOf(type)
}

/** The same of arrays alone. */
export function arrayFormOf(type: DataType): ArrayForm | null {
  const { kind, of: element } = baseOf(type)
  if (kind !== 'array' || element === null) return null
  const of = elementFormOf(element)
  return of === 'plain' || of === 'composite' ? null : { of }
}

function elementFormOf(type: DataType): ElementForm {
  if (isJson(type)) return 'json'
  if (isHstore(type)) return 'hstore'
  const { kind, of } = baseOf(type)
  if (kind === 'array' && of !== null) return { of: elementFormOf(of) }
  return kind === 'composite' ? 'composite' : 'plain'
}

/** The type of the extension. It casts to JSON, and nothing casts back. */
function isHstore(type: DataType): boolean {
  const { kind, name } = baseOf(type)
  return kind === 'base' && name === 'hstore'
}

/** By member. */
type TextForms = ReadonlyMap<string, TextForm>

/** Rows of a table, an object or an array of objects that are known to be JSON; the same bytes where none of the columns asks for more. */
export function withArrayColumns(bytes: Buffer, table: Table, columns: readonly string[]): Buffer {
  const forms = formsOf(table)
  return forms.size > 0 && columns.some(name => forms.has(name)) ? withArrayTexts(bytes, forms) : bytes
}

const formsOfTables = new WeakMap<Table, TextForms>()

function formsOf(table: Table): TextForms {
  let forms = formsOfTables.get(table)
  if (forms === undefined) {
    forms = new Map(
      table.columns.flatMap(({ name, type }) => {
        const form = textFormOf(type)
        return form === null ? [] : [[name, form] as const]
      }),
    )
    formsOfTables.set(table, forms)
  }
  return forms
}

/** The same with texts in place of these members; those that have no text form stay, and have PostgreSQL's error. */
export function withArrayTexts(bytes: Buffer, forms: TextForms): Buffer {
  if (forms.size === 0) return bytes
  const body = new RewrittenBody(bytes, forms)
  const start = skipWhiteSpace(bytes, 0)
  if (byteAt(bytes, start) === OPEN_BRACE) body.row(start)
  if (byteAt(bytes, start) === OPEN_BRACKET) {
    let at = skipWhiteSpace(bytes, start + 1)
    while (byteAt(bytes, at) !== CLOSE_BRACKET && byteAt(bytes, at) !== END) {
      at = skipWhiteSpace(bytes, byteAt(bytes, at) === OPEN_BRACE ? body.row(at) : scanKnown(bytes, at))
      if (byteAt(bytes, at) === COMMA) at = skipWhiteSpace(bytes, at + 1)
    }
  }
  return body.bytes()
}

/** One pass over a body that is known to be JSON. */
class RewrittenBody {
  readonly #body: Buffer
  readonly #forms: TextForms
  #text: ArrayText | null = null
  /** Offset up to which the body has been copied or rewritten. */
  #done = 0

  constructor(body: Buffer, forms: TextForms) {
    this.#body = body
    this.#forms = forms
  }

  /** The same buffer where nothing was rewritten. */
  bytes(): Buffer {
    if (this.#text === null) return this.#body
    this.#text.copy(this.#body, this.#done, this.#body.length)
    return this.#text.bytes()
  }

  /** Reads the object that begins at `start` and returns where it ends. */
  row(start: number): number {
    const body = this.#body
    let at = skipWhiteSpace(body, start + 1)
    while (byteAt(body, at) === QUOTE) {
      const keyEnd = scanString(body, at)
      const key = unescapeString(body.toString('utf8', at + 1, keyEnd - 1))
      const valueStart = skipWhiteSpace(body, skipWhiteSpace(body, keyEnd) + 1)
      const form = this.#forms.get(key)
      // A string is a text form already, and null is one value of every type.
      const isRewritten =
        form !== undefined && byteAt(body, valueStart) === (form === 'hstore' ? OPEN_BRACE : OPEN_BRACKET)
      const valueEnd = isRewritten ? this.#rewrite(valueStart, form) : scanKnown(body, valueStart)
      at = skipWhiteSpace(body, valueEnd)
      if (byteAt(body, at) === COMMA) at = skipWhiteSpace(body, at + 1)
    }
    return at + 1
  }

  /** Returns where the value ends. */
  #rewrite(start: number, form: TextForm): number {
    this.#text ??= new ArrayText('JSON string')
    const text = this.#text
    text.copy(this.#body, this.#done, start)
    const written = text.wrapped(this.#body, start, form)
    this.#done = written === NO_TEXT ? scanKnown(this.#body, start) : written
    if (written === NO_TEXT) text.copy(this.#body, start, this.#done)
    return this.#done
  }
}

/** The JSON string for an array of these elements; null where it has no text form. */
export function printListed(elements: readonly JsonValue[], form: ArrayForm): Buffer | null {
  const text = new ArrayText('JSON string')
  return text.wrappedList(elements, form) === NO_TEXT ? null : text.bytes()
}

/** PostgreSQL's text form for a JSON object as `hstore`: `"a"=>"1","b"=>NULL`. */
export function printHstore(bytes: Buffer): string {
  const text = new ArrayText('plain')
  text.hstore(bytes, skipWhiteSpace(bytes, 0), 0)
  return text.toString()
}

/** PostgreSQL's MAXDIM. What has more is refused by it, and is not worth walking through. */
const DIMENSIONS_MAX = 6

/**
 * PostgreSQL's text form for a JSON array, which is known to be JSON: `{"[1]","2",NULL}`. Null where it has none, as with more than `dimensions`.
 */
export function printArray(bytes: Buffer, form: ArrayForm, dimensions: number = DIMENSIONS_MAX): string | null {
  const start = skipWhiteSpace(bytes, 0)
  if (byteAt(bytes, start) !== OPEN_BRACKET) return null
  const text = new ArrayText('plain')
  return text.array(bytes, start, form, 0, dimensions) === NO_TEXT ? null : text.toString()
}

/** What the methods of `ArrayText` return where a value has no text form. */
const NO_TEXT = -1

/**
 * Writes the text form byte by byte: an array may have a million elements, and other requests wait in the meantime. What is written `inside` of n
 * quotes has its quotes and backslashes escaped n times; a JSON string around the whole text escapes them in the same way. `array` and `value`
 * answer the offset behind what they read.
 */
class ArrayText {
  readonly #isJson: boolean
  #text = Buffer.allocUnsafe(TEXT_BYTES_AT_FIRST)
  #length = 0

  constructor(form: 'plain' | 'JSON string') {
    this.#isJson = form === 'JSON string'
  }

  /** The text as a JSON string. Nothing is written where the value has no text form. */
  wrapped(bytes: Buffer, start: number, form: TextForm): number {
    return this.#wrap(() =>
      form === 'hstore' ? this.hstore(bytes, start, 1) : this.array(bytes, start, form, 1, DIMENSIONS_MAX),
    )
  }

  /** The same of an array of these elements. */
  wrappedList(elements: readonly JsonValue[], form: ArrayForm): number {
    return this.#wrap(() => {
      this.#byte(OPEN_BRACE, 1)
      for (const [index, { bytes }] of elements.entries()) {
        if (index > 0) this.#byte(COMMA, 1)
        if (this.value(bytes, 0, form.of, 1, DIMENSIONS_MAX) === NO_TEXT) return NO_TEXT
      }
      this.#byte(CLOSE_BRACE, 1)
      return elements.length
    })
  }

  #wrap(write: () => number): number {
    const before = this.#length
    this.#byte(QUOTE, 0)
    const written = write()
    if (written === NO_TEXT) this.#length = before
    else this.#byte(QUOTE, 0)
    return written
  }

  array(bytes: Buffer, start: number, { of }: ArrayForm, inside: number, dimensions: number): number {
    this.#byte(OPEN_BRACE, inside)
    let at = start + 1
    for (;;) {
      // Numbers, true, false and null are the same words in the text form, and so are the commas between them.
      const words = at
      while (IS_WORD[bytes[at] as number] === 1) at += 1
      if (at > words) this.#words(bytes, words, at)
      const first = byteAt(bytes, at)
      if (first === CLOSE_BRACKET) break
      at = first <= SPACE ? at + 1 : this.value(bytes, at, of, inside, dimensions)
      if (at === NO_TEXT) return NO_TEXT
    }
    this.#byte(CLOSE_BRACE, inside)
    return at + 1
  }

  value(bytes: Buffer, start: number, form: ElementForm, inside: number, dimensions: number): number {
    const first = byteAt(bytes, start)
    // Also for documents: JSON has one null, as for a column of them.
    if (first === LETTER_N) {
      this.#bytes(NULL, 0, NULL.length, inside)
      return start + NULL.length
    }
    if (form === 'json') return this.#quoted(bytes, start, scanKnown(bytes, start), inside)
    switch (first) {
      case QUOTE:
        return this.#string(bytes, start, inside)
      case OPEN_BRACKET: {
        if (typeof form === 'string') {
          return dimensions > 1 ? this.array(bytes, start, { of: form }, inside, dimensions - 1) : NO_TEXT
        }
        this.#byte(QUOTE, inside)
        const end = this.array(bytes, start, form, inside + 1, DIMENSIONS_MAX)
        this.#byte(QUOTE, inside)
        return end
      }
      case OPEN_BRACE:
        if (form === 'hstore') {
          this.#byte(QUOTE, inside)
          const end = this.hstore(bytes, start, inside + 1)
          this.#byte(QUOTE, inside)
          return end
        }
        // Which columns it has, and in which order, the catalogue does not say.
        return form === 'composite' ? NO_TEXT : this.#quoted(bytes, start, scanKnown(bytes, start), inside)
      default: {
        const end = scanKnown(bytes, start)
        this.#bytes(bytes, start, end, inside)
        return end
      }
    }
  }

  /** Values that are no strings are kept as their JSON. */
  hstore(bytes: Buffer, start: number, inside: number): number {
    let at = skipWhiteSpace(bytes, start + 1)
    while (byteAt(bytes, at) === QUOTE) {
      const keyEnd = this.#string(bytes, at, inside)
      this.#bytes(ARROW, 0, ARROW.length, inside)
      const valueStart = skipWhiteSpace(bytes, skipWhiteSpace(bytes, keyEnd) + 1)
      const valueEnd = this.#hstoreValue(bytes, valueStart, inside)
      at = skipWhiteSpace(bytes, valueEnd)
      if (byteAt(bytes, at) !== COMMA) break
      this.#byte(COMMA, inside)
      at = skipWhiteSpace(bytes, at + 1)
    }
    return at + 1
  }

  #hstoreValue(bytes: Buffer, start: number, inside: number): number {
    switch (byteAt(bytes, start)) {
      case LETTER_N:
        this.#bytes(NULL, 0, NULL.length, inside)
        return start + NULL.length
      case QUOTE:
        return this.#string(bytes, start, inside)
      default:
        return this.#quoted(bytes, start, scanKnown(bytes, start), inside)
    }
  }

  #string(bytes: Buffer, start: number, inside: number): number {
    const plainEnd = skipPlain(bytes, start + 1)
    if (byteAt(bytes, plainEnd) === QUOTE) {
      this.#quoted(bytes, start + 1, plainEnd, inside)
      return plainEnd + 1
    }
    this.#mark(QUOTE, inside)
    let at = start + 1
    for (;;) {
      const next = skipPlain(bytes, at)
      this.#bytes(bytes, at, next, inside + 1)
      if (byteAt(bytes, next) !== BACKSLASH) {
        this.#mark(QUOTE, inside)
        return next + 1
      }
      at = this.#unescaped(bytes, next, inside + 1)
    }
  }

  /** What an escape of JSON stands for. Byte by byte, as a body may be nothing but escapes. */
  #unescaped(bytes: Buffer, start: number, inside: number): number {
    const letter = bytes[start + 1] as number
    if (letter !== LETTER_U) {
      this.#character(MEANING_OF[letter] as number, inside)
      return start + 2
    }
    const unit = unitAt(bytes, start)
    if (unit < 0x80) {
      this.#character(unit, inside)
      return start + 6
    }
    if (unit < 0x800) {
      this.#character(0xc0 | (unit >> 6), inside)
      this.#character(0x80 | (unit & 0x3f), inside)
      return start + 6
    }
    const isPair = unit >= 0xd800 && unit <= 0xdfff
    const code = isPair ? 0x10000 + ((unit - 0xd800) << 10) + (unitAt(bytes, start + 6) - 0xdc00) : unit
    if (isPair) {
      this.#character(0xf0 | (code >> 18), inside)
      this.#character(0x80 | ((code >> 12) & 0x3f), inside)
    } else this.#character(0xe0 | (code >> 12), inside)
    this.#character(0x80 | ((code >> 6) & 0x3f), inside)
    this.#character(0x80 | (code & 0x3f), inside)
    return start + (isPair ? 12 : 6)
  }

  #quoted(bytes: Buffer, start: number, end: number, inside: number): number {
    this.#mark(QUOTE, inside)
    this.#bytes(bytes, start, end, inside + 1)
    this.#mark(QUOTE, inside)
    return end
  }

  /** What needs no escape, wherever it stands. */
  #words(bytes: Buffer, start: number, end: number): void {
    this.#reserve(end - start)
    const text = this.#text
    let length = this.#length
    for (let at = start; at < end; at += 1) {
      text[length] = bytes[at] as number
      length += 1
    }
    this.#length = length
  }

  /** A byte at a time, without a call for each: an array may be two million of them, and other requests wait. */
  #bytes(bytes: Buffer, start: number, end: number, inside: number): void {
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
      this.#character(byte, inside)
      this.#reserve(end - at)
      text = this.#text
      length = this.#length
    }
    this.#length = length
  }

  #character(byte: number, inside: number): void {
    if (byte < SPACE && this.#isJson) this.#control(byte)
    else this.#byte(byte, inside)
  }

  /** A JSON string can only have it escaped. */
  #control(byte: number): void {
    this.#reserve(CONTROL.length)
    this.#length += CONTROL.copy(this.#text, this.#length)
    this.#text[this.#length - 2] = DIGITS.charCodeAt(byte >> 4)
    this.#text[this.#length - 1] = DIGITS.charCodeAt(byte & 0xf)
  }

  #byte(byte: number, inside: number): void {
    if (inside > 0 && (byte === QUOTE || byte === BACKSLASH)) {
      this.#mark(byte, inside)
      return
    }
    this.#reserve(1)
    this.#text[this.#length] = byte
    this.#length += 1
  }

  /** A quote or a backslash: each level of quotes doubles the backslashes, so it stands behind 2ⁿ - 1 of them. */
  #mark(byte: number, inside: number): void {
    const width = 1 << inside
    this.#reserve(width)
    const text = this.#text
    const end = this.#length + width - 1
    for (let at = this.#length; at < end; at += 1) text[at] = BACKSLASH
    text[end] = byte
    this.#length = end + 1
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed > this.#text.length) this.#text = Buffer.concat([this.#text], Math.max(2 * this.#text.length, needed))
  }

  copy(bytes: Buffer, start: number, end: number): void {
    this.#reserve(end - start)
    this.#length += bytes.copy(this.#text, this.#length, start, end)
  }

  bytes(): Buffer {
    return this.#text.subarray(0, this.#length)
  }

  toString(): string {
    return this.#text.toString('utf8', 0, this.#length)
  }
}

const TEXT_BYTES_AT_FIRST = 1024

const SPACE = 0x20

/** Of numbers, true, false and null, and what stands between them. */
const IS_WORD: Uint8Array = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eEtruefalsn,')) IS_WORD[byte] = 1

/** All but quotes, backslashes and control characters. */
const IS_PLAIN_TEXT: Uint8Array = new Uint8Array(256).fill(1, SPACE)
IS_PLAIN_TEXT[QUOTE] = 0
IS_PLAIN_TEXT[BACKSLASH] = 0

const NULL = Buffer.from('NULL')
const ARROW = Buffer.from('=>')
const LETTER_N = 0x6e
const LETTER_U = 0x75
const CONTROL = Buffer.from('\\u0000')
const DIGITS = '0123456789abcdef'

/** Of the letter behind a backslash of JSON. */
const MEANING_OF: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => byte)
for (const pair of ['b\b', 'f\f', 'n\n', 'r\r', 't\t']) MEANING_OF[pair.charCodeAt(0)] = pair.charCodeAt(1)

/** The UTF-16 code unit of the escape `\\uXXXX` at this offset, which is known to be one. */
function unitAt(bytes: Buffer, at: number): number {
  let unit = 0
  for (let digit = at + 2; digit < at + 6; digit += 1) {
    const byte = bytes[digit] as number
    unit = unit * 16 + (byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57)
  }
  return unit
}
