/**
 * Rewrites the values of a body that PostgreSQL writes as JSON but does not read (text-forms.ts). They become
 * strings with PostgreSQL's text form; documents in them keep their bytes. A body can have a million
 * elements, so the open values are kept on an explicit stack, and the work can be interrupted and resumed at
 * any point.
 */
import {
  BACKSLASH,
  byteAt,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  scanKnown,
  scanString,
  skipPlain,
  skipWhiteSpace,
  unescapeString,
} from '../../json/json-scanner.ts'
import { STATEMENT_LIMITS, type StatementLimits } from '../../statement-limits.ts'
import { unreachable } from '../../unreachable.ts'
import { EscapedText } from './escaped-text.ts'
import {
  type ArrayForm,
  type ElementForm,
  isArrayForm,
  isRecordForm,
  type RecordForm,
  type RecordsForm,
  type TextForm,
  type TextForms,
} from './text-forms.ts'

/** Bytes read and written in one turn of the event loop, which takes about 3 ms. */
export const BYTES_IN_A_TURN: number = 256 * 1024

/** PostgreSQL's MAXDIM. It rejects arrays with more dimensions. */
const DIMENSIONS_MAX = 6

/** Longer runs of bytes are copied in several pieces. */
const PIECE_BYTES = 64 * 1024

/** An open value. `inside`: number of quotes around its parts. `quoted`: a quote follows it. */
type Open = OpenArray | OpenRecord | OpenHstore | OpenString | OpenPiece | OpenObject | OpenList

interface OpenArray extends ArrayForm {
  readonly kind: 'array'
  readonly inside: number
  readonly quoted: boolean
  /** Maximum nesting of arrays, including this one. */
  readonly dimensions: number
}

interface OpenRecord {
  readonly kind: 'record'
  readonly form: RecordForm
  readonly inside: number
  readonly quoted: boolean
  /** The offset of each attribute's value; -1 if it is absent. */
  readonly starts: readonly number[]
  readonly end: number
  next: number
}

interface OpenHstore {
  readonly kind: 'hstore'
  readonly inside: number
  readonly quoted: boolean
  isValue: boolean
}

/** A string that contains escapes. */
interface OpenString {
  readonly kind: 'string'
  readonly inside: number
}

/** A long run of bytes between quotes. */
interface OpenPiece {
  readonly kind: 'piece'
  readonly inside: number
  readonly end: number
  /** The offset after the value. */
  readonly behind: number
}

/** A row or composite value that stays an object. */
interface OpenObject {
  readonly kind: 'object'
  readonly members: TextForms
}

/** An array of rows or composite values. */
interface OpenList {
  readonly kind: 'list'
  readonly members: TextForms
}

/** The start of a text form, which is removed if the value turns out to have none. */
interface Begun {
  readonly start: number
  readonly length: number
  readonly depth: number
}

/** Limit on a text form; 0 means no limit. */
export type TextFormLimits = Pick<StatementLimits, 'maxTextFormBytes'>

/** Work on a body or value that has been validated as JSON. */
export class Rewriting {
  readonly #body: Buffer
  readonly #text: EscapedText
  readonly #open: Open[] = []
  #at: number
  /** Offset up to which the body has been copied or rewritten; -1 if the result is the text form alone. */
  #done: number
  /** Number of bytes read without writing. */
  #read = 0
  #begun: Begun | null = null
  #isWritten = false
  readonly #refusal: (() => Error) | null

  private constructor(
    body: Buffer,
    form: 'plain' | 'JSON string',
    { maxTextFormBytes }: TextFormLimits,
    refusal: (() => Error) | null,
  ) {
    this.#body = body
    this.#refusal = refusal
    this.#text = new EscapedText(form, maxTextFormBytes)
    this.#at = skipWhiteSpace(body, 0)
    this.#done = form === 'plain' ? -1 : 0
  }

  /**
   * Rewrites these members of an object or of the objects in an array. Members without a text form stay
   * unchanged, and PostgreSQL rejects them.
   */
  static members(body: Buffer, members: TextForms, limits: TextFormLimits = STATEMENT_LIMITS): Rewriting {
    const rewriting = new Rewriting(body, 'JSON string', limits, null)
    const first = byteAt(body, rewriting.#at)
    if (members.size > 0 && first === OPEN_BRACE) rewriting.#enter({ kind: 'object', members })
    if (members.size > 0 && first === OPEN_BRACKET) rewriting.#enter({ kind: 'list', members })
    return rewriting
  }

  /**
   * Prints the text form of a JSON array, composite value or `hstore`. `refusal` makes the error for a value
   * without a text form; null returns the value unchanged. `dimensions` limits the nesting of arrays.
   */
  static text(
    value: Buffer,
    form: ArrayForm | RecordForm | 'hstore',
    refusal: (() => Error) | null = null,
    dimensions: number = DIMENSIONS_MAX,
    limits: TextFormLimits = STATEMENT_LIMITS,
  ): Rewriting {
    const rewriting = new Rewriting(value, 'plain', limits, refusal)
    rewriting.#begun = { start: rewriting.#at, length: 0, depth: 0 }
    const first = byteAt(value, rewriting.#at)
    if (first === (isArrayForm(form) ? OPEN_BRACKET : OPEN_BRACE)) rewriting.#enterText(form, 0, false, dimensions)
    return rewriting
  }

  /** Continues for about `bytesMax` bytes, and reports whether the work is finished. */
  run(bytesMax: number): boolean {
    const until = this.#worked() + bytesMax
    for (let open = this.#open.at(-1); open !== undefined; open = this.#open.at(-1)) {
      if (this.#worked() >= until) return false
      this.#advance(open, until)
    }
    return true
  }

  /**
   * The result of finished work: the original buffer if nothing was rewritten. Throws the refusal if the
   * value has no text form.
   */
  bytes(): Buffer {
    if (this.#refusal !== null && !this.#isWritten) throw this.#refusal()
    if (!this.#isWritten) return this.#body
    if (this.#done !== -1) {
      this.#text.copy(this.#body, this.#done, this.#body.length)
      this.#done = this.#body.length
    }
    return this.#text.bytes()
  }

  #worked(): number {
    return this.#read + this.#text.length
  }

  #advance(open: Open, until: number): void {
    switch (open.kind) {
      case 'array':
        this.#array(open, until)
        break
      case 'record':
        this.#record(open, until)
        break
      case 'hstore':
        this.#hstore(open)
        break
      case 'string':
        this.#string(open)
        break
      case 'piece':
        this.#piece(open)
        break
      case 'object':
        this.#object(open)
        break
      case 'list':
        this.#list(open)
        break
      default:
        unreachable(open)
    }
  }

  // ---- values that stay JSON

  #enter(open: OpenObject | OpenList): void {
    this.#open.push(open)
    this.#at += 1
  }

  #object({ members }: OpenObject): void {
    const body = this.#body
    const at = this.#nextItem()
    if (byteAt(body, at) !== QUOTE) {
      this.#leave()
      return
    }
    const keyEnd = scanString(body, at)
    const form = members.get(unescapeString(body.toString('utf8', at + 1, keyEnd - 1)))
    this.#at = skipWhiteSpace(body, skipWhiteSpace(body, keyEnd) + 1)
    this.#read += this.#at - at
    if (form === undefined || !this.#rewrites(form)) this.#pass()
  }

  #list({ members }: OpenList): void {
    this.#at = this.#nextItem()
    switch (byteAt(this.#body, this.#at)) {
      case CLOSE_BRACKET:
        this.#leave()
        break
      case OPEN_BRACE:
        this.#enter({ kind: 'object', members })
        break
      case OPEN_BRACKET:
        this.#enter({ kind: 'list', members })
        break
      default:
        this.#pass()
    }
  }

  #leave(): void {
    this.#open.pop()
    this.#at = skipWhiteSpace(this.#body, this.#at) + 1
  }

  /** The offset of the next item, after white space and a comma. */
  #nextItem(): number {
    const at = skipWhiteSpace(this.#body, this.#at)
    return byteAt(this.#body, at) === COMMA ? skipWhiteSpace(this.#body, at + 1) : at
  }

  #pass(): void {
    const end = scanKnown(this.#body, this.#at)
    this.#read += end - this.#at
    this.#at = end
  }

  /** Begins to rewrite a value. False for strings, which already are text forms, and for null. */
  #rewrites(form: TextForm): boolean {
    const first = byteAt(this.#body, this.#at)
    if (first !== (form === 'hstore' || isRecordForm(form) ? OPEN_BRACE : OPEN_BRACKET)) return false
    if (isStaying(form)) {
      if ('items' in form) this.#enter({ kind: 'list', members: form.items.members })
      else this.#enter({ kind: 'object', members: form.members })
      return true
    }
    this.#text.copy(this.#body, this.#done, this.#at)
    this.#done = this.#at
    this.#begun = { start: this.#at, length: this.#text.length, depth: this.#open.length }
    this.#text.byte(QUOTE, 0)
    this.#enterText(form, 1, true, DIMENSIONS_MAX)
    return true
  }

  // ---- values that become text

  #enterText(form: ArrayForm | RecordForm | 'hstore', inside: number, quoted: boolean, dimensions: number): void {
    if (form === 'hstore') {
      this.#open.push({ kind: 'hstore', inside, quoted, isValue: false })
      this.#at += 1
    } else if (isArrayForm(form)) {
      this.#text.byte(OPEN_BRACE, inside)
      this.#open.push({ kind: 'array', of: form.of, inside, quoted, dimensions })
      this.#at += 1
    } else {
      this.#text.byte(OPEN_PARENTHESIS, inside)
      this.#open.push({ kind: 'record', form, inside, quoted, ...this.#outlined(form), next: 0 })
    }
  }

  /** Finds the values of an object's members, which can be in any order. */
  #outlined({ places, elements }: RecordForm): { readonly starts: readonly number[]; readonly end: number } {
    const body = this.#body
    const starts: number[] = Array(elements.length).fill(-1)
    let at = skipWhiteSpace(body, this.#at + 1)
    while (byteAt(body, at) === QUOTE) {
      const keyEnd = scanString(body, at)
      const place = places.get(unescapeString(body.toString('utf8', at + 1, keyEnd - 1)))
      const start = skipWhiteSpace(body, skipWhiteSpace(body, keyEnd) + 1)
      if (place !== undefined) starts[place] = start
      at = skipWhiteSpace(body, scanKnown(body, start))
      if (byteAt(body, at) === COMMA) at = skipWhiteSpace(body, at + 1)
    }
    this.#read += at - this.#at
    return { starts, end: at + 1 }
  }

  #close(inside: number, quoted: boolean, end: number): void {
    if (quoted) this.#text.mark(QUOTE, inside - 1)
    this.#at = end
    this.#open.pop()
    if (this.#open.length > (this.#begun?.depth ?? 0)) return
    this.#isWritten = true
    if (this.#done !== -1) this.#done = end
  }

  /** Leaves the value as JSON. */
  #refuse(): void {
    const { start, length, depth } = this.#begun as Begun
    this.#open.length = depth
    this.#text.cut(length)
    this.#at = start
    if (this.#done === -1) return
    // The bytes before it have been copied.
    this.#isWritten = true
    this.#pass()
  }

  #array({ of, inside, quoted, dimensions }: OpenArray, until: number): void {
    const body = this.#body
    while (this.#worked() < until) {
      // Numbers, true, false, null and the commas between them are the same in the text form.
      const words = this.#at
      const max = words + PIECE_BYTES
      let at = words
      while (IS_WORD[body[at] as number] === 1 && at < max) at += 1
      this.#at = at
      if (at > words) {
        this.#text.words(body, words, at)
        continue
      }
      const first = byteAt(body, at)
      if (first === CLOSE_BRACKET) {
        this.#text.byte(CLOSE_BRACE, inside)
        this.#close(inside, quoted, at + 1)
        return
      }
      if (first <= SPACE) this.#at = at + 1
      else if (this.#opens(of, inside, dimensions)) return
    }
  }

  /** NULL and absent attributes are written as nothing between two commas. */
  #record(open: OpenRecord, until: number): void {
    const { form, inside, quoted, starts, end } = open
    while (this.#worked() < until) {
      const place = open.next
      let given = place
      while (given < starts.length && this.#isNull(starts[given] as number)) given += 1
      // No comma precedes the first attribute.
      const commas = given - place + (place === 0 ? 0 : 1) - (given === starts.length ? 1 : 0)
      this.#text.repeat(COMMA, commas)
      if (given === starts.length) {
        this.#text.byte(CLOSE_PARENTHESIS, inside)
        this.#close(inside, quoted, end)
        return
      }
      open.next = given + 1
      this.#at = starts[given] as number
      if (this.#opens(form.elements[given] as ElementForm, inside, 0)) return
    }
  }

  #isNull(start: number): boolean {
    return start === -1 || byteAt(this.#body, start) === LETTER_N
  }

  /** Values of `hstore` that are not strings are stored as their JSON text. */
  #hstore(open: OpenHstore): void {
    const body = this.#body
    const { inside, quoted } = open
    if (open.isValue) {
      this.#text.escaped(ARROW, 0, ARROW.length, inside)
      this.#at = skipWhiteSpace(body, skipWhiteSpace(body, this.#at) + 1)
      open.isValue = false
      if (byteAt(body, this.#at) === LETTER_N) {
        this.#text.escaped(NULL, 0, NULL.length, inside)
        this.#at += NULL.length
      } else this.#opens('json text', inside, 0)
      return
    }
    const at = skipWhiteSpace(body, this.#at)
    const next = this.#nextItem()
    if (byteAt(body, next) !== QUOTE) {
      this.#close(inside, quoted, next + 1)
      return
    }
    if (byteAt(body, at) === COMMA) this.#text.byte(COMMA, inside)
    this.#at = next
    open.isValue = true
    this.#opens('plain', inside, 0)
  }

  /**
   * Writes the value or opens it; reports whether another value is open now. `dimensions` is 0 if an array is
   * not a dimension.
   */
  #opens(form: ElementForm | 'json text', inside: number, dimensions: number): boolean {
    const body = this.#body
    const at = this.#at
    if (form === 'json') return this.#quotes(at, scanKnown(body, at), inside, 0)
    switch (byteAt(body, at)) {
      case QUOTE: {
        const plainEnd = skipPlain(body, at + 1)
        if (byteAt(body, plainEnd) === QUOTE) return this.#quotes(at + 1, plainEnd, inside, 1)
        this.#text.mark(QUOTE, inside)
        this.#open.push({ kind: 'string', inside })
        this.#at = at + 1
        return true
      }
      case OPEN_BRACKET:
        if (isArrayForm(form as ElementForm)) {
          this.#text.mark(QUOTE, inside)
          this.#enterText(form as ArrayForm, inside + 1, true, DIMENSIONS_MAX)
        } else if (dimensions === 0) return this.#quotes(at, scanKnown(body, at), inside, 0)
        else if (dimensions === 1) this.#refuse()
        else this.#enterText({ of: form as ElementForm }, inside, false, dimensions - 1)
        return true
      case OPEN_BRACE:
        if (form === 'hstore' || isRecordForm(form as ElementForm)) {
          this.#text.mark(QUOTE, inside)
          this.#enterText(form as RecordForm | 'hstore', inside + 1, true, 0)
          return true
        }
        if (form !== 'composite') return this.#quotes(at, scanKnown(body, at), inside, 0)
        this.#refuse()
        return true
      default:
        if (form === 'json text') return this.#quotes(at, scanKnown(body, at), inside, 0)
        this.#at = scanKnown(body, at)
        this.#text.escaped(body, at, this.#at, inside)
        return false
    }
  }

  /** Writes bytes between quotes. `behind`: number of bytes after `end` that belong to the value. */
  #quotes(start: number, end: number, inside: number, behind: number): boolean {
    this.#text.mark(QUOTE, inside)
    if (end - start > PIECE_BYTES) {
      this.#at = start
      this.#open.push({ kind: 'piece', inside, end, behind: end + behind })
      return true
    }
    this.#text.escaped(this.#body, start, end, inside + 1)
    this.#text.mark(QUOTE, inside)
    this.#at = end + behind
    return false
  }

  #piece({ inside, end, behind }: OpenPiece): void {
    const start = this.#at
    this.#at = Math.min(end, start + PIECE_BYTES)
    this.#text.escaped(this.#body, start, this.#at, inside + 1)
    if (this.#at < end) return
    this.#text.mark(QUOTE, inside)
    this.#at = behind
    this.#open.pop()
  }

  #string({ inside }: OpenString): void {
    const body = this.#body
    const max = this.#at + PIECE_BYTES
    while (this.#at < max) {
      const next = Math.min(skipPlain(body, this.#at), max)
      this.#text.escaped(body, this.#at, next, inside + 1)
      this.#at = next
      if (byteAt(body, next) === QUOTE) {
        this.#text.mark(QUOTE, inside)
        this.#at = next + 1
        this.#open.pop()
        return
      }
      if (byteAt(body, next) === BACKSLASH) this.#at = this.#unescaped(next, inside + 1)
    }
  }

  /** Writes the character of a JSON escape, byte by byte: a body can consist of escapes only. */
  #unescaped(start: number, inside: number): number {
    const text = this.#text
    const letter = this.#body[start + 1] as number
    if (letter !== LETTER_U) {
      text.character(MEANING_OF[letter] as number, inside)
      return start + 2
    }
    const unit = unitAt(this.#body, start)
    if (unit < 0x80) {
      text.character(unit, inside)
      return start + 6
    }
    if (unit < 0x800) {
      text.character(0xc0 | (unit >> 6), inside)
      text.character(0x80 | (unit & 0x3f), inside)
      return start + 6
    }
    const isPair = unit >= 0xd800 && unit <= 0xdfff
    const code = isPair ? 0x10000 + ((unit - 0xd800) << 10) + (unitAt(this.#body, start + 6) - 0xdc00) : unit
    if (isPair) {
      text.character(0xf0 | (code >> 18), inside)
      text.character(0x80 | ((code >> 12) & 0x3f), inside)
    } else text.character(0xe0 | (code >> 12), inside)
    text.character(0x80 | ((code >> 6) & 0x3f), inside)
    text.character(0x80 | (code & 0x3f), inside)
    return start + (isPair ? 12 : 6)
  }
}

/** Reports whether the value stays JSON, and only members of it are rewritten. */
function isStaying(form: TextForm): form is RecordForm | RecordsForm {
  return typeof form === 'object' && !isArrayForm(form)
}

const SPACE = 0x20

/** Bytes of numbers, true, false and null, and the commas between them. */
const IS_WORD: Uint8Array = new Uint8Array(256)
for (const byte of Buffer.from('0123456789+-.eEtruefalsn,')) IS_WORD[byte] = 1

const NULL = Buffer.from('NULL')
const ARROW = Buffer.from('=>')
const OPEN_PARENTHESIS = 0x28
const CLOSE_PARENTHESIS = 0x29
const LETTER_N = 0x6e
const LETTER_U = 0x75

/** The character that each letter after a backslash represents in JSON. */
const MEANING_OF: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => byte)
for (const pair of ['b\b', 'f\f', 'n\n', 'r\r', 't\t']) MEANING_OF[pair.charCodeAt(0)] = pair.charCodeAt(1)

/** The UTF-16 code unit of the escape `\\uXXXX` at this offset. */
function unitAt(bytes: Buffer, at: number): number {
  let unit = 0
  for (let digit = at + 2; digit < at + 6; digit += 1) {
    const byte = bytes[digit] as number
    unit = unit * 16 + (byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57)
  }
  return unit
}
