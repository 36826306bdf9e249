/** Reads rows from NDJSON: one object in each line (docs/reference/import.md). Empty lines are skipped. */
import { GatewayError } from '../../errors.ts'
import { type ObjectOutline, parseJsonBody } from '../../json/json-body.ts'
import { REFUSED_ITEMS_MAX } from '../body/body.ts'
import { nameRefusedColumn } from '../body/body-error.ts'
import type { StatementPart } from '../steps.ts'
import { insertion } from '../write/create.ts'
import type { ParsedUpsert } from '../write/request.ts'
import { columnKeys, describeBody, type Writing } from '../write/writing.ts'
import type { Block } from './blocks.ts'
import { BATCH_ROWS_MAX, type ImportBatch, type Imported } from './rows.ts'

const NEWLINE = 0x0a

/** Reads the blocks of one file, in order. */
export class JsonLinesReader {
  readonly #writing: Writing
  readonly #upsert: ParsedUpsert | null

  constructor(writing: Writing, upsert: ParsedUpsert | null) {
    this.#writing = writing
    this.#upsert = upsert
  }

  /** NDJSON has no header: the keys of each object are its columns. */
  begin(): null {
    return null
  }

  /** The rows of a block. Consecutive rows with the same keys are one batch. */
  *rows({ bytes, line: first }: Block): Generator<Imported> {
    const keys = columnKeys(this.#writing)
    let batch: JsonBatch | null = null
    let line = first
    for (let at = 0; at < bytes.length; line++) {
      const found = bytes.indexOf(NEWLINE, at)
      const end = found < 0 ? bytes.length : found
      const row = this.#parse(bytes.subarray(at, end), keys)
      at = end + 1
      if (row === null) continue
      if (typeof row === 'string') {
        // Rows and errors are returned in the order of the file.
        if (batch !== null) yield { kind: 'rows', batch }
        batch = null
        yield { kind: 'error', error: { line, column: null, message: row } }
        continue
      }
      const columns = row.members.map(({ key }) => key).sort()
      if (batch !== null && (!batch.has(columns) || batch.lines.length === BATCH_ROWS_MAX)) {
        yield { kind: 'rows', batch }
        batch = null
      }
      batch ??= new JsonBatch(this.#writing, this.#upsert, columns)
      batch.add(line, row)
    }
    if (batch !== null) yield { kind: 'rows', batch }
  }

  /** Every block is written by itself: its rows can differ in their keys. */
  end(): readonly Imported[] {
    return []
  }

  /** The object of a line, null for an empty line, or the error of the line. */
  #parse(text: Buffer, keys: ReturnType<typeof columnKeys>): ObjectOutline | string | null {
    try {
      const parsed = parseJsonBody(text, REFUSED_ITEMS_MAX, keys)
      if (parsed.kind === 'object') return parsed
      return parsed.kind === 'empty' ? null : `found ${describeBody(parsed)}; each line must be an object`
    } catch (error) {
      if (error instanceof GatewayError) return error.message.replace(PLACE, 'character $1: ')
      throw error
    }
  }
}

/** The position for a message about invalid JSON; the line is that of the file. */
const PLACE = /^line 1, column (\d+) of the body: /

const COMMA = Buffer.from(',')
const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')

/** The rows of one statement. */
class JsonBatch implements ImportBatch {
  readonly lines: number[] = []
  readonly #writing: Writing
  readonly #upsert: ParsedUpsert | null
  readonly #columns: readonly string[]
  readonly #rows: ObjectOutline[] = []

  constructor(writing: Writing, upsert: ParsedUpsert | null, columns: readonly string[]) {
    this.#writing = writing
    this.#upsert = upsert
    this.#columns = columns
  }

  has(columns: readonly string[]): boolean {
    const own = this.#columns
    return own.length === columns.length && own.every((name, index) => name === columns[index])
  }

  add(line: number, row: ObjectOutline): void {
    this.lines.push(line)
    this.#rows.push(row)
  }

  async part(start: number, end: number): Promise<StatementPart> {
    const parts: Buffer[] = [OPEN]
    for (let at = start; at < end; at++) {
      if (at > start) parts.push(COMMA)
      parts.push(this.#rows[at]?.bytes ?? OPEN)
    }
    const bytes = Buffer.concat([...parts, CLOSE])
    const part = insertion(this.#writing, { columns: this.#columns, bytes, rows: 'many' }, this.#upsert, [])
    if ('values' in part && 'tree' in part) await part.values.finish()
    return part
  }

  async explain(row: number, error: unknown): Promise<{ readonly column: string | null; readonly error: unknown }> {
    const body = this.#rows[row]
    if (body === undefined) return { column: null, error }
    const named = await nameRefusedColumn(error, this.#writing.table, body)
    const found = named === error || !(named instanceof GatewayError) ? null : /^column "(.*?)" is /.exec(named.message)
    return { column: found?.[1] ?? null, error: named }
  }
}
