/** Counts the records of CSV that arrives in parts. A record ends at a line feed outside double quotes. */

const QUOTE = 0x22
const LINE_FEED = 0x0a

export class CsvRecords {
  #isQuoted = false
  #count = 0

  /** How many records have ended so far. The first one has the names of the columns. */
  get count(): number {
    return this.#count
  }

  /** Reads the next part. Returns the bytes of it that are behind the first record. */
  read(part: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    let start = this.#count > 0 ? 0 : part.length
    for (let at = 0; at < part.length; at++) {
      // A quote inside quotes is doubled, so it changes the state twice.
      if (part[at] === QUOTE) this.#isQuoted = !this.#isQuoted
      else if (part[at] === LINE_FEED && !this.#isQuoted) {
        this.#count += 1
        if (this.#count === 1) start = at + 1
      }
    }
    return part.subarray(start)
  }
}
