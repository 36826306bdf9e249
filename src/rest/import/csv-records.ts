/**
 * Reads the records of CSV (RFC 4180): fields separated by commas, in double quotes where they contain a
 * comma, a quote or a line break. Records end with LF or CRLF. An unquoted empty field is NULL, `""` the
 * empty text. Fields are ranges of bytes: most are copied without becoming strings.
 */
import { GatewayError } from '../../errors.ts'

/** How a field is written. `doubled`: in quotes, with doubled quotes inside. */
export type FieldForm = 'null' | 'plain' | 'quoted' | 'doubled'

const COMMA = 0x2c
const QUOTE = 0x22
const NEWLINE = 0x0a
const RETURN = 0x0d

/** Reads one record after another. */
export class CsvRecords {
  readonly bytes: Buffer
  /** The fields of the last record, by index: where they begin and end, without quotes. */
  readonly starts: number[] = []
  readonly ends: number[] = []
  readonly forms: FieldForm[] = []
  /** The number of these fields. */
  count = 0
  #at: number
  #line: number

  /** `line`: the line on which the bytes begin, from `start`. */
  constructor(bytes: Buffer, line: number, start = 0) {
    this.bytes = bytes
    this.#line = line
    this.#at = start
  }

  /** The line of the next record. */
  get line(): number {
    return this.#line
  }

  /**
   * Reads the next record. Returns false at the end.
   * @throws {GatewayError} `PARSE_ERROR` with the line if the record is not CSV.
   */
  read(): boolean {
    const { bytes } = this
    const { length } = bytes
    this.count = 0
    if (this.#at >= length) return false
    const line = this.#line
    let at = this.#at
    for (;;) {
      const from = at
      if (bytes[at] === QUOTE) {
        at = this.#quoted(at, line)
      } else {
        for (; at < length; at++) {
          const byte = bytes[at] as number
          // The comma is the largest of the four.
          if (byte > COMMA) continue
          if (byte === COMMA || byte === NEWLINE || byte === RETURN) break
          if (byte === QUOTE) {
            throw this.#malformed(line, 'has a quote inside an unquoted field; put the field in quotes, and double it')
          }
        }
        this.#add(from, at, at === from ? 'null' : 'plain')
      }
      const byte = at < length ? bytes[at] : NEWLINE
      if (byte === COMMA) {
        at += 1
        continue
      }
      if (byte === RETURN && bytes[at + 1] === NEWLINE) at += 1
      else if (byte === RETURN) {
        throw this.#malformed(line, 'has a carriage return outside quotes; end records with LF or CRLF')
      }
      this.#at = at + 1
      this.#line += 1
      return true
    }
  }

  /** The text of a field; null for NULL. */
  text(index: number): string | null {
    const form = this.forms[index]
    if (form === 'null') return null
    const text = this.bytes.toString('utf8', this.starts[index], this.ends[index])
    return form === 'doubled' ? text.replaceAll('""', '"') : text
  }

  /** Reads a quoted field; returns the position after it. */
  #quoted(start: number, line: number): number {
    const { bytes } = this
    const { length } = bytes
    let form: FieldForm = 'quoted'
    for (let at = start + 1; at < length; at++) {
      const byte = bytes[at] as number
      if (byte > QUOTE) continue
      if (byte === NEWLINE) this.#line += 1
      if (byte !== QUOTE) continue
      if (bytes[at + 1] === QUOTE) {
        form = 'doubled'
        at += 1
        continue
      }
      this.#add(start + 1, at, form)
      const next = at + 1 < length ? bytes[at + 1] : NEWLINE
      if (next === COMMA || next === NEWLINE || next === RETURN) return at + 1
      throw this.#malformed(line, 'has text after a quoted field; separate fields with a comma')
    }
    throw this.#malformed(line, 'has a quoted field that is not closed')
  }

  #add(start: number, end: number, form: FieldForm): void {
    const index = this.count++
    this.starts[index] = start
    this.ends[index] = end
    this.forms[index] = form
  }

  #malformed(line: number, problem: string): GatewayError {
    return new GatewayError('PARSE_ERROR', `line ${line}: the record ${problem} (after ${this.count} fields)`, {
      details: { line, column: null },
    })
  }
}
