/** Cuts an upload into blocks of whole records, each small enough for one turn of the event loop. */
import { GatewayError } from '../../errors.ts'

/** Limit on the bytes of one record of an import (docs/reference/limits.md). */
export const RECORD_BYTES_MAX: number = 2 * 1024 * 1024

/** A block ends with the record that reaches this size. */
const BLOCK_BYTES = 256 * 1024

/** Whole records. */
export interface Block {
  readonly bytes: Buffer
  /** The line on which the first record begins, from 1. */
  readonly line: number
}

const NEWLINE = 0x0a
const QUOTE = 0x22

/** Collects the parts of an upload. A record ends with a line break, in CSV with one outside quotes. */
export class Blocks {
  readonly #quoted: boolean
  #parts: Buffer[] = []
  #bytes = 0
  /** Bytes and line breaks up to the end of the last whole record. */
  #whole = 0
  #wholeLines = 0
  /** Line breaks of all parts. */
  #lines = 0
  #line = 1
  #isInside = false

  constructor(format: 'csv' | 'ndjson') {
    this.#quoted = format === 'csv'
  }

  /**
   * Adds a part; returns a block if there is one.
   * @throws {GatewayError} `PAYLOAD_TOO_LARGE` for a record above the limit.
   */
  add(part: Buffer): Block | null {
    this.#scan(part)
    this.#parts.push(part)
    this.#bytes += part.length
    if (this.#bytes - this.#whole > RECORD_BYTES_MAX) {
      throw new GatewayError(
        'PAYLOAD_TOO_LARGE',
        `line ${this.#line + this.#wholeLines}: the record is larger than ${RECORD_BYTES_MAX} bytes` +
          `${this.#isInside ? ', or a quote is not closed' : ''}; nothing was imported`,
        { details: { line: this.#line + this.#wholeLines } },
      )
    }
    return this.#whole >= BLOCK_BYTES ? this.#take(this.#whole) : null
  }

  /** The remaining bytes, whose last record can lack a line break; null if nothing remains. */
  end(): Block | null {
    return this.#bytes === 0 ? null : this.#take(this.#bytes)
  }

  #scan(part: Buffer): void {
    let inside = this.#isInside
    let lines = this.#lines
    for (let at = 0; at < part.length; at++) {
      const byte = part[at] as number
      // The quote is the larger of the two.
      if (byte > QUOTE) continue
      if (byte === NEWLINE) {
        lines += 1
        if (inside) continue
        this.#whole = this.#bytes + at + 1
        this.#wholeLines = lines
      } else if (byte === QUOTE && this.#quoted) inside = !inside
    }
    this.#isInside = inside
    this.#lines = lines
  }

  #take(end: number): Block {
    const all = Buffer.concat(this.#parts)
    const block = { bytes: all.subarray(0, end), line: this.#line }
    this.#parts = end === all.length ? [] : [all.subarray(end)]
    this.#bytes = all.length - end
    this.#line += this.#wholeLines
    this.#lines -= this.#wholeLines
    this.#whole = 0
    this.#wholeLines = 0
    return block
  }
}
