/**
 * The elements of an array in PostgreSQL's text form (PostgreSQL manual, 8.15.6), copied from the bytes of
 * CSV. Every element is quoted, so it can contain any character, and the text `NULL` stays a text.
 */
import type { CsvRecords } from './csv-records.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN = 0x7b
const CLOSE = 0x7d
const NULL = Buffer.from('NULL')

/** Enough for the elements of most blocks. */
const BYTES_AT_FIRST = 16 * 1024

/** The fields of one column. */
export class ArrayElements {
  /** After the opening brace, each element is followed by a comma. */
  #bytes = Buffer.allocUnsafe(BYTES_AT_FIRST)
  #length = 1
  /** Where each element begins. */
  readonly #starts: number[] = []

  /** Adds field `index` of the last record. */
  add({ bytes, starts, ends, forms }: CsvRecords, index: number): void {
    const start = starts[index] as number
    const end = ends[index] as number
    const form = forms[index]
    // Every byte can need a backslash.
    this.#reserve(2 * (end - start) + NULL.length)
    this.#starts.push(this.#length)
    const into = this.#bytes
    let at = this.#length
    if (form === 'null') at += NULL.copy(into, at)
    else {
      into[at++] = QUOTE
      for (let from = start; from < end; from++) {
        const byte = bytes[from] as number
        if (byte === QUOTE || byte === BACKSLASH) {
          into[at++] = BACKSLASH
          // The second of two quotes.
          if (byte === QUOTE) from += 1
        }
        into[at++] = byte
      }
      into[at++] = QUOTE
    }
    into[at++] = COMMA
    this.#length = at
  }

  /** The array of the elements from `start` up to `end`. */
  print(start: number, end: number): Buffer {
    const from = this.#starts[start] ?? this.#length
    const to = this.#starts[end] ?? this.#length
    if (from >= to) return Buffer.from('{}')
    // The comma before the first element, or the beginning, and the one after the last become the braces.
    const array = Buffer.allocUnsafe(to - from + 1)
    this.#bytes.copy(array, 1, from, to)
    array[0] = OPEN
    array[array.length - 1] = CLOSE
    return array
  }

  /** The text of an element; null for NULL. */
  text(index: number): string | null {
    const end = (this.#starts[index + 1] ?? this.#length) - 1
    const element = this.#bytes.toString('utf8', this.#starts[index], end)
    return element === 'NULL' ? null : element.slice(1, -1).replace(/\\(.)/gs, '$1')
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes + 3
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
