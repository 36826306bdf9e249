/** Reads rows from CSV whose first record names the columns (docs/reference/import.md). */
import { isUtf8 } from 'node:buffer'
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'
import { type Meant, nameRefusedValue } from '../body/body-error.ts'
import type { StatementPart } from '../steps.ts'
import { Values } from '../values.ts'
import type { ImportTree, ParsedUpsert } from '../write/request.ts'
import { columnKeys, type Writing } from '../write/writing.ts'
import { ArrayElements } from './array-elements.ts'
import type { Block } from './blocks.ts'
import { CsvRecords } from './csv-records.ts'
import { BATCH_BYTES, BATCH_ROWS_MAX, type ImportBatch, type Imported } from './rows.ts'

/** Reads the blocks of one file, in order. */
export class CsvReader {
  readonly #writing: Writing
  readonly #upsert: ParsedUpsert | null
  #header: readonly string[] | null = null
  /** The rows that no statement has yet; null without any. */
  #batch: CsvBatch | null = null
  #batchBytes = 0
  /** Rows that were written. Their memory is used again, so a file needs that of two or three batches. */
  #written: CsvBatch | null = null

  constructor(writing: Writing, upsert: ParsedUpsert | null) {
    this.#writing = writing
    this.#upsert = upsert
  }

  /**
   * Reads the header from the first block; returns a statement that writes no rows, for the check of its
   * columns.
   * @throws {GatewayError} `PARSE_ERROR` for a header with an unknown or repeated column.
   */
  begin(block: Block | null): StatementPart {
    const records = recordsOf(block ?? { bytes: EMPTY, line: 1 })
    records.read()
    const fields = Array.from({ length: records.count }, (_, index) => records.text(index))
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
    return this.#part(names.map(() => NO_ELEMENTS))
  }

  /** The rows of a block and of earlier ones, as far as they fill a statement. */
  *rows(block: Block): Generator<Imported> {
    const header = this.#header ?? []
    const records = recordsOf(block)
    const problemOf = createJudge(records, header)
    if (block.line === 1) records.read()
    for (let line = records.line; records.read(); line = records.line) {
      const message = problemOf()
      if (message !== null) {
        // Rows and errors are returned in the order of the file.
        yield* this.end()
        yield { kind: 'error', error: { line, column: null, message } }
        continue
      }
      this.#batch ??= this.#emptyBatch(header)
      this.#batch.add(line, records)
      if (this.#batch.lines.length >= BATCH_ROWS_MAX) yield* this.end()
    }
    this.#batchBytes += block.bytes.length
    if (this.#batchBytes >= BATCH_BYTES) yield* this.end()
  }

  /** The rows that do not fill a statement. */
  *end(): Generator<Imported> {
    const batch = this.#batch
    this.#batch = null
    this.#batchBytes = 0
    if (batch !== null) yield { kind: 'rows', batch }
  }

  #emptyBatch(header: readonly string[]): CsvBatch {
    const written = this.#written
    this.#written = null
    if (written === null) {
      const print = (columns: readonly Buffer[]) => this.#part(columns)
      return new CsvBatch(header, this.#writing, print, batch => {
        this.#written = batch
      })
    }
    written.clear()
    return written
  }

  #part(columns: readonly Buffer[]): StatementPart {
    const values = new Values()
    const arrays = columns.map(elements => values.add(elements))
    const tree: ImportTree = {
      ...{ kind: 'load', table: this.#writing.table, columns: this.#header ?? [] },
      ...{ values: arrays, upsert: this.#upsert },
    }
    return { tree, values }
  }
}

const EMPTY = Buffer.alloc(0)
const NO_ELEMENTS = Buffer.from('{}')
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/** A file can begin with a byte order mark. */
function recordsOf({ bytes, line }: Block): CsvRecords {
  const isMarked = line === 1 && bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
  return new CsvRecords(bytes, line, isMarked ? BYTE_ORDER_MARK.length : 0)
}

/**
 * Creates the function that returns why the last record cannot be a row; null if it can. The fields are
 * examined only if the block has bytes that make a field invalid.
 */
function createJudge(records: CsvRecords, header: readonly string[]): () => string | null {
  const { bytes, starts, ends } = records
  const fieldWith = (isInvalid: (field: Buffer) => boolean): number => {
    for (let at = 0; at < records.count; at++) if (isInvalid(bytes.subarray(starts[at], ends[at]))) return at + 1
    return 0
  }
  const hasInvalid = !isUtf8(bytes)
  const hasNul = bytes.includes(0)
  return () => {
    const invalid = hasInvalid ? fieldWith(field => !isUtf8(field)) : 0
    if (invalid > 0) return `field ${invalid} is not valid UTF-8`
    if (records.count !== header.length) {
      return `the record has ${records.count} fields, but the header has ${header.length}`
    }
    const nul = hasNul ? fieldWith(field => field.includes(0)) : 0
    return nul === 0 ? null : `field ${nul} contains a NUL character, which PostgreSQL cannot store`
  }
}

/** The rows of one statement, by column. */
class CsvBatch implements ImportBatch {
  readonly lines: number[] = []
  readonly #header: readonly string[]
  readonly #writing: Writing
  readonly #print: (columns: readonly Buffer[]) => StatementPart
  readonly #released: (batch: CsvBatch) => void
  readonly #columns: readonly ArrayElements[]

  constructor(
    header: readonly string[],
    writing: Writing,
    print: (columns: readonly Buffer[]) => StatementPart,
    released: (batch: CsvBatch) => void,
  ) {
    this.#header = header
    this.#writing = writing
    this.#print = print
    this.#released = released
    this.#columns = header.map(() => new ArrayElements())
  }

  add(line: number, records: CsvRecords): void {
    this.lines.push(line)
    for (let at = 0; at < this.#columns.length; at++) this.#columns[at]?.add(records, at)
  }

  clear(): void {
    this.lines.length = 0
    for (const elements of this.#columns) elements.clear()
  }

  release(): void {
    this.#released(this)
  }

  part(start: number, end: number): StatementPart {
    return this.#print(this.#columns.map(elements => elements.print(start, end)))
  }

  async explain(row: number, error: unknown): Promise<{ readonly column: string | null; readonly error: unknown }> {
    const { columnByName } = this.#writing.table
    for (const [index, name] of this.#header.entries()) {
      const column = columnByName.get(name)
      const element = this.#columns[index]?.text(row) ?? null
      if (column === undefined || element === null) continue
      const { type, typeText } = column
      const text = JSON.stringify(element)
      const meant: Meant = { subject: `column "${name}"`, type, typeText, text }
      const named = await nameRefusedValue(error, () => [meant])
      if (named !== error) return { column: name, error: named }
    }
    return { column: null, error }
  }
}
