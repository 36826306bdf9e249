/**
 * Reads the records of CSV (RFC 4180): fields separated by commas, in double quotes where they contain a
 * comma, a quote or a line break. Records end with LF or CRLF. An unquoted empty field is NULL, `""` the
 * empty text.
 */
import { GatewayError } from '../../errors.ts'

/** A field; null for NULL. */
export type CsvField = string | null

const COMMA = 0x2c
const QUOTE = 0x22
const NEWLINE = 0x0a
const RETURN = 0x0d

/** Reads one record after another. */
export class CsvRecords {
  readonly #text: string
  #at = 0
  #line: number

  /** `line`: the line on which the text begins. */
  constructor(text: string, line: number) {
    this.#text = text
    this.#line = line
  }

  /** The line of the next record. */
  get line(): number {
    return this.#line
  }

  /**
   * Reads the fields of the next record into `fields`. Returns false at the end.
   * @throws {GatewayError} `PARSE_ERROR` with the line if the record is not CSV.
   */
  read(fields: CsvField[]): boolean {
    const text = this.#text
    fields.length = 0
    if (this.#at >= text.length) return false
    const line = this.#line
    let at = this.#at
    for (;;) {
      const from = at
      if (text.charCodeAt(at) === QUOTE) {
        at = this.#quoted(at, line, fields)
      } else {
        for (; at < text.length; at++) {
          const code = text.charCodeAt(at)
          if (code === COMMA || code === NEWLINE || code === RETURN) break
          if (code === QUOTE) {
            throw malformed(
              line,
              fields,
              'has a quote inside an unquoted field; put the field in quotes, and double it',
            )
          }
        }
        fields.push(at === from ? null : text.slice(from, at))
      }
      const code = text.charCodeAt(at)
      if (code === COMMA) {
        at += 1
        continue
      }
      if (code === RETURN && text.charCodeAt(at + 1) === NEWLINE) at += 1
      else if (code === RETURN) {
        throw malformed(line, fields, 'has a carriage return outside quotes; end records with LF or CRLF')
      }
      this.#at = at + 1
      this.#line += 1
      return true
    }
  }

  /** Reads a quoted field; returns the position after it. */
  #quoted(start: number, line: number, fields: CsvField[]): number {
    const text = this.#text
    const parts: string[] = []
    let from = start + 1
    for (;;) {
      const end = text.indexOf('"', from)
      if (end < 0) throw malformed(line, fields, 'has a quoted field that is not closed')
      if (text.charCodeAt(end + 1) !== QUOTE) {
        parts.push(text.slice(from, end))
        const value = parts.length === 1 ? (parts[0] ?? '') : parts.join('')
        for (let at = value.indexOf('\n'); at >= 0; at = value.indexOf('\n', at + 1)) this.#line += 1
        fields.push(value)
        const code = text.charCodeAt(end + 1)
        if (end + 1 < text.length && code !== COMMA && code !== NEWLINE && code !== RETURN) {
          throw malformed(line, fields, 'has text after a quoted field; separate fields with a comma')
        }
        return end + 1
      }
      parts.push(text.slice(from, end + 1))
      from = end + 2
    }
  }
}

function malformed(line: number, fields: readonly CsvField[], what: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `line ${line}: the record ${what} (after ${fields.length} fields)`, {
    details: { line, column: null },
  })
}
