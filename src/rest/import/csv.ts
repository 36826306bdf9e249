/** Reads rows from CSV whose first record names the columns (docs/reference/import.md). */
import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import { printElements, quoteElement } from '../body/array-text.ts'
import { type Meant, nameRefusedValue } from '../body/body-error.ts'
import type { StatementPart } from '../steps.ts'
import { Values } from '../values.ts'
import type { ImportTree, UpsertOptions } from '../write/request.ts'
import { columnKeys, type Writing } from '../write/writing.ts'
import type { Block } from './blocks.ts'
import { type CsvField, CsvRecords } from './csv-records.ts'
import { BATCH_ROWS_MAX, type ImportBatch, type Imported } from './rows.ts'

const BYTE_ORDER_MARK = '\ufeff'

/** Reads the blocks of one file, in order. */
export class CsvReader {
  readonly #writing: Writing
  readonly #upsert: UpsertOptions | null
  #header: readonly string[] | null = null

  constructor(writing: Writing, upsert: UpsertOptions | null) {
    this.#writing = writing
    this.#upsert = upsert
  }

  /**
   * Reads the header from the first block; returns a statement that writes no rows, for the check of its
   * columns.
   * @throws {GatewayError} `PARSE_ERROR` for a header with an unknown or repeated column.
   */
  begin(block: Block | null): StatementPart {
    const fields: CsvField[] = []
    const text = block === null ? '' : decoded(block).text
    new CsvRecords(withoutMark(text), 1).read(fields)
    if (fields.length === 0 || fields.every(field => field === null)) {
      throw new GatewayError('PARSE_ERROR', 'line 1: the header is missing; the first line must name the columns')
    }
    const { refuse, has } = columnKeys(this.#writing)
    const names = fields.map((field, index) => {
      if (field === null || field === '') {
        throw new GatewayError('PARSE_ERROR', `line 1: field ${index + 1} of the header is empty; name a column`)
      }
      if (!has(field)) refuse(field)
      return field
    })
    const repeated = names.find((name, index) => names.indexOf(name) < index)
    if (repeated !== undefined) {
      throw new GatewayError(
        'PARSE_ERROR',
        `line 1: the header names column "${shorten(repeated)}" twice; name it once`,
      )
    }
    this.#header = names
    return this.#part(names.map(() => []))
  }

  /** The rows of a block. */
  *rows(block: Block): Generator<Imported> {
    const header = this.#header ?? []
    const { text, decode } = decoded(block)
    const records = new CsvRecords(block.line === 1 ? withoutMark(text) : text, block.line)
    const fields: CsvField[] = []
    if (block.line === 1) records.read(fields)
    const next = () => new CsvBatch(header, this.#writing, columns => this.#part(columns))
    let batch = next()
    for (let line = records.line; records.read(fields); line = records.line) {
      const message = decode(fields) ?? problemOf(fields, header)
      if (message !== null) {
        // Rows and errors are returned in the order of the file.
        if (batch.lines.length > 0) yield { kind: 'rows', batch }
        batch = next()
        yield { kind: 'error', error: { line, column: null, message } }
        continue
      }
      batch.add(line, fields)
      if (batch.lines.length < BATCH_ROWS_MAX) continue
      yield { kind: 'rows', batch }
      batch = next()
    }
    if (batch.lines.length > 0) yield { kind: 'rows', batch }
  }

  #part(columns: readonly (readonly string[])[]): StatementPart {
    const values = new Values()
    const arrays = columns.map(elements => values.add(Buffer.from(printElements(elements))))
    const tree: ImportTree = {
      ...{ kind: 'load', table: this.#writing.table, columns: this.#header ?? [] },
      ...{ values: arrays, upsert: this.#upsert },
    }
    return { tree, values }
  }
}

function withoutMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text.startsWith('ï»¿') ? text.slice(3) : text
}

interface Decoded {
  readonly text: string
  /** Decodes the fields in place. Returns the error of the first invalid one. */
  decode(fields: CsvField[]): string | null
}

/** To find the records with invalid bytes, the block is read as Latin-1, and each field is then decoded. */
function decoded({ bytes }: Block): Decoded {
  if (isUtf8(bytes)) return { text: bytes.toString(), decode: () => null }
  return {
    text: bytes.toString('latin1'),
    decode(fields) {
      for (const [index, field] of fields.entries()) {
        if (field === null) continue
        const own = Buffer.from(field, 'latin1')
        if (!isUtf8(own)) return `field ${index + 1} is not valid UTF-8`
        fields[index] = own.toString()
      }
      return null
    },
  }
}

function problemOf(fields: readonly CsvField[], header: readonly string[]): string | null {
  if (fields.length !== header.length) {
    return `the record has ${fields.length} fields, but the header has ${header.length}`
  }
  const at = fields.findIndex(field => field?.includes('\0') === true)
  return at < 0 ? null : `field ${at + 1} contains a NUL character, which PostgreSQL cannot store`
}

/** The rows of one statement, by column. */
class CsvBatch implements ImportBatch {
  readonly lines: number[] = []
  readonly #header: readonly string[]
  readonly #writing: Writing
  readonly #print: (columns: readonly (readonly string[])[]) => StatementPart
  /** The elements of one array for each column. */
  readonly #columns: readonly string[][]

  constructor(
    header: readonly string[],
    writing: Writing,
    print: (columns: readonly (readonly string[])[]) => StatementPart,
  ) {
    this.#header = header
    this.#writing = writing
    this.#print = print
    this.#columns = header.map(() => [])
  }

  add(line: number, fields: readonly CsvField[]): void {
    this.lines.push(line)
    for (let at = 0; at < fields.length; at++) {
      const field = fields[at] ?? null
      this.#columns[at]?.push(field === null ? 'NULL' : quoteElement(field))
    }
  }

  part(start: number, end: number): StatementPart {
    const isWhole = start === 0 && end === this.lines.length
    return this.#print(isWhole ? this.#columns : this.#columns.map(elements => elements.slice(start, end)))
  }

  explain(row: number, error: unknown): { readonly column: string | null; readonly error: unknown } {
    const { columnByName } = this.#writing.table
    for (const [index, name] of this.#header.entries()) {
      const column = columnByName.get(name)
      const element = this.#columns[index]?.[row]
      if (column === undefined || element === undefined || element === 'NULL') continue
      const { type, typeText } = column
      const text = JSON.stringify(element.slice(1, -1).replace(/\\(.)/gs, '$1'))
      const meant: Meant = { subject: `column "${name}"`, type, typeText, text }
      const named = nameRefusedValue(error, () => [meant])
      if (named !== error) return { column: name, error: named }
    }
    return { column: null, error }
  }
}
