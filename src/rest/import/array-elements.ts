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

const BYTES_AT_FIRST = 16 * 1024
const ELEMENTS_AT_FIRST = 1024

/** The fields of one column. */
export class ArrayElements {
  /** After the opening brace, each element is followed by a comma. */
  #bytes = Buffer.allocUnsafe(BYTES_AT_FIRST)
  #length = 1
  /** Where each element begins. */
  #starts = new Uint32Array(ELEMENTS_AT_FIRST)
  #count = 0

  /** Adds field `index` of the last record. */
  add({ bytes, starts, ends, forms }: CsvRecords, index: number): void {
    const start = starts[index] as number
    const end = ends[index] as number
    const form = forms[index]
    // Every byte can need a backslash.
    this.#reserve(2 * (end - start) + NULL.length)
    this.#starts[this.#count++] = this.#length
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

  /** The array of the elements from `start` up to `end`. Valid until `clear` is called. */
  print(start: number, end: number): Buffer {
    const from = this.#startOf(start)
    const to = this.#startOf(end)
    if (from >= to) return Buffer.from('{}')
    // The comma before the first element, or the beginning, and the one after the last become the braces.
    const isWhole = from === 1 && to === this.#length
    const array = isWhole ? this.#bytes.subarray(0, to) : Buffer.from(this.#bytes.subarray(from - 1, to))
    array[0] = OPEN
    array[array.length - 1] = CLOSE
    return array
  }

  /** Removes all elements, and keeps the memory for others. */
  clear(): void {
    this.#length = 1
    this.#count = 0
  }

  /** The text of an element; null for NULL. */
  text(index: number): string | null {
    const element = this.#bytes.toString('utf8', this.#startOf(index), this.#startOf(index + 1) - 1)
    return element === 'NULL' ? null : element.slice(1, -1).replace(/\\(.)/gs, '$1')
  }

  /** Where an element begins; for the one after the last, where it would begin. */
  #startOf(index: number): number {
    return index < this.#count ? (this.#starts[index] as number) : this.#length
  }

  #reserve(bytes: number): void {
    if (this.#count === this.#starts.length) {
      const more = new Uint32Array(2 * this.#count)
      more.set(this.#starts)
      this.#starts = more
    }
    const needed = this.#length + bytes + 3
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
