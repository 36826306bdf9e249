/**
 * Converts JSON values that PostgreSQL writes but does not read: objects of `hstore`, and arrays whose
 * elements can be arrays, such as documents in `jsonb[]` and values of a domain over an array. When
 * PostgreSQL converts JSON to an array, it treats every nested array as a dimension, so `[[1], 2]` is not a
 * valid `jsonb[]` and `[["a"]]` has two dimensions. The text form of an array distinguishes elements from
 * dimensions (PostgreSQL manual, 8.15.2), and PostgreSQL reads a JSON string as that text form. Such a value
 * therefore becomes a JSON string in the statement; documents keep their bytes.
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

/** The structure of an array that needs the text form. */
export interface ArrayForm {
  readonly of: ElementForm
}

/**
 * The text form of a value whose JSON PostgreSQL cannot read: an array of this structure, or an `hstore`
 * object.
 */
export type TextForm = ArrayForm | 'hstore'

/**
 * The JSON of an element: any value, a nested array, an object of columns, an object of texts, or a value
 * without parts. The arrays around a value without parts are its dimensions.
 */
type ElementForm = 'json' | ArrayForm | 'composite' | 'hstore' | 'plain'

/** An array of JSON documents. */
export const JSON_ARRAY: ArrayForm = { of: 'json' }

/** An array of values without parts; documents in it also keep their bytes. */
export const PLAIN_ARRAY: ArrayForm = { of: 'plain' }

/** The text form of a type, or null if PostgreSQL reads its JSON. */
export function textFormOf(type: DataType): TextForm | null {
  return isHstore(type) ? 'hstore' : arrayFormOf(type)
}

/** The text form of an array type, or null if PostgreSQL reads its JSON. */
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

/** Reports whether this is the type of the hstore extension. It has a cast to JSON but none from JSON. */
function isHstore(type: DataType): boolean {
  const { kind, name } = baseOf(type)
  return kind === 'base' && name === 'hstore'
}

/** The text form of each member of an object. */
type TextForms = ReadonlyMap<string, TextForm>

/**
 * Converts rows of a table: an object or an array of objects, known to be valid JSON. Returns the same buffer
 * if none of the columns needs a text form.
 */
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

/**
 * Replaces the values of these members by their text forms. A value without a text form is unchanged, so
 * PostgreSQL reports the error.
 */
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

/** Converts a body, which is known to be valid JSON, in one pass. */
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

  /** The converted body; the same buffer if nothing was converted. */
  bytes(): Buffer {
    if (this.#text === null) return this.#body
    this.#text.copy(this.#body, this.#done, this.#body.length)
    return this.#text.bytes()
  }

  /** Converts the object that begins at `start` and returns the offset of its end. */
  row(start: number): number {
    const body = this.#body
    let at = skipWhiteSpace(body, start + 1)
    while (byteAt(body, at) === QUOTE) {
      const keyEnd = scanString(body, at)
      const key = unescapeString(body.toString('utf8', at + 1, keyEnd - 1))
      const valueStart = skipWhiteSpace(body, skipWhiteSpace(body, keyEnd) + 1)
      const form = this.#forms.get(key)
      // A string already is a text form, and null is valid for every type.
      const isRewritten =
        form !== undefined && byteAt(body, valueStart) === (form === 'hstore' ? OPEN_BRACE : OPEN_BRACKET)
      const valueEnd = isRewritten ? this.#rewrite(valueStart, form) : scanKnown(body, valueStart)
      at = skipWhiteSpace(body, valueEnd)
      if (byteAt(body, at) === COMMA) at = skipWhiteSpace(body, at + 1)
    }
    return at + 1
  }

  /** Converts a value and returns the offset of its end. */
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

/** The JSON string of an array of these elements, or null if it has no text form. */
export function printListed(elements: readonly JsonValue[], form: ArrayForm): Buffer | null {
  const text = new ArrayText('JSON string')
  return text.wrappedList(elements, form) === NO_TEXT ? null : text.bytes()
}

/** PostgreSQL's text form of a JSON object as `hstore`: `"a"=>"1","b"=>NULL`. */
export function printHstore(bytes: Buffer): string {
  const text = new ArrayText('plain')
  text.hstore(bytes, skipWhiteSpace(bytes, 0), 0)
  return text.toString()
}

/**
 * PostgreSQL's limit on the dimensions of an array, MAXDIM. Arrays with more dimensions are not converted;
 * PostgreSQL rejects them.
 */
const DIMENSIONS_MAX = 6

/**
 * PostgreSQL's text form of a JSON array, which is known to be valid: `{"[1]","2",NULL}`. Null if there is
 * none, for example with more than `dimensions` dimensions.
 */
export function printArray(bytes: Buffer, form: ArrayForm, dimensions: number = DIMENSIONS_MAX): string | null {
  const start = skipWhiteSpace(bytes, 0)
  if (byteAt(bytes, start) !== OPEN_BRACKET) return null
  const text = new ArrayText('plain')
  return text.array(bytes, start, form, 0, dimensions) === NO_TEXT ? null : text.toString()
}

/** The result of `ArrayText` methods for a value without a text form. */
const NO_TEXT = -1

/**
 * Prints the text form byte by byte, because an array can have a million elements and other requests wait.
 * Text inside n levels of quotes has its quotes and backslashes escaped n times; a JSON string around the
 * whole text escapes them in the same way. `array` and `value` return the offset after the value they read.
 */
class ArrayText {
  readonly #isJson: boolean
  #text = Buffer.allocUnsafe(TEXT_BYTES_AT_FIRST)
  #length = 0

  constructor(form: 'plain' | 'JSON string') {
    this.#isJson = form === 'JSON string'
  }

  /** Prints the text form as a JSON string. Nothing is printed for a value without a text form. */
  wrapped(bytes: Buffer, start: number, form: TextForm): number {
    return this.#wrap(() =>
      form === 'hstore' ? this.hstore(bytes, start, 1) : this.array(bytes, start, form, 1, DIMENSIONS_MAX),
    )
  }

  /** The same for an array of these elements. */
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
      // Numbers, true, false, null and commas are the same in the text form.
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
    // JSON null is NULL for documents too, as it is for a column of documents.
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
        // The catalog has neither the columns of the composite type nor their order.
        return form === 'composite' ? NO_TEXT : this.#quoted(bytes, start, scanKnown(bytes, start), inside)
      default: {
        const end = scanKnown(bytes, start)
        this.#bytes(bytes, start, end, inside)
        return end
      }
    }
  }

  /** Prints an hstore object. Values that are not strings keep their JSON text. */
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

  /** Decodes the escapes of a JSON string, byte by byte, since a body can consist of escapes only. */
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

  /** Copies text that needs no escapes. */
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

  /**
   * Copies and escapes one byte at a time without a function call for each, because an array can have two
   * million bytes and other requests wait.
   */
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

  /** Prints a control character, which a JSON string must escape. */
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

  /**
   * Prints a quote or backslash. Each level of quotes doubles the backslashes, so 2ⁿ − 1 of them precede it.
   */
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

/** Marks the bytes of numbers, true, false, null, and separators. */
const IS_WORD: Uint8Array = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eEtruefalsn,')) IS_WORD[byte] = 1

/** Marks all bytes except quotes, backslashes and control characters. */
const IS_PLAIN_TEXT: Uint8Array = new Uint8Array(256).fill(1, SPACE)
IS_PLAIN_TEXT[QUOTE] = 0
IS_PLAIN_TEXT[BACKSLASH] = 0

const NULL = Buffer.from('NULL')
const ARROW = Buffer.from('=>')
const LETTER_N = 0x6e
const LETTER_U = 0x75
const CONTROL = Buffer.from('\\u0000')
const DIGITS = '0123456789abcdef'

/** The character that each JSON escape letter stands for. */
const MEANING_OF: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => byte)
for (const pair of ['b\b', 'f\f', 'n\n', 'r\r', 't\t']) MEANING_OF[pair.charCodeAt(0)] = pair.charCodeAt(1)

/** The UTF-16 code unit of the valid escape `\\uXXXX` at this offset. */
function unitAt(bytes: Buffer, at: number): number {
  let unit = 0
  for (let digit = at + 2; digit < at + 6; digit += 1) {
    const byte = bytes[digit] as number
    unit = unit * 16 + (byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57)
  }
  return unit
}
