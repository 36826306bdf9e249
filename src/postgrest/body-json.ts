/** Converts CSV and form bodies to JSON, in pieces that take about a millisecond each. */
import { parseCells } from './csv.ts'
import { decodeLenient } from './decode.ts'
import { invalidBody } from './errors.ts'

/** Cells of a CSV, or fields of a form, in one piece. */
const PIECE_CELLS = 2_000

/**
 * The JSON of a body of this media type; null for a type that is not converted. A CSV ends with the first row
 * above `rowsMax`, so that the limit on rows is noticed.
 */
export function jsonPieces(type: string, body: Buffer, rowsMax: number): Iterable<string> | null {
  if (type === 'text/csv') return csvPieces(body.toString(), rowsMax)
  return type === 'application/x-www-form-urlencoded' ? formPieces(body.toString()) : null
}

/** One object for each line; the text `NULL` is null. */
function* csvPieces(text: string, rowsMax: number): Generator<string> {
  let head: readonly string[] | null = null
  let cells: string[] = []
  let piece = '['
  let count = 0
  let rows = 0
  for (const { value, end } of parseCells(text)) {
    cells.push(value)
    count += 1
    if (count % PIECE_CELLS === 0) {
      yield piece
      piece = ''
    }
    if (end === ',') continue
    const isEmptyEnd = end === '' && cells.length === 1 && value === ''
    if (!isEmptyEnd && head !== null) {
      piece += `${rows === 0 ? '' : ','}${printRow(head, cells)}`
      rows += 1
    }
    if (!isEmptyEnd && head === null) head = cells.map(name => JSON.stringify(name))
    cells = []
    if (rows > rowsMax) break
  }
  yield `${piece}]`
}

/** `keys`: as JSON. */
function printRow(keys: readonly string[], cells: readonly string[]): string {
  if (cells.length !== keys.length) throw invalidBody('All lines must have same number of fields')
  const members = cells.map((cell, index) => `${keys[index]}:${cell === 'NULL' ? 'null' : JSON.stringify(cell)}`)
  return `{${members.join(',')}}`
}

/** One object; of several fields with one name, the last counts. */
function* formPieces(text: string): Generator<string> {
  const fields = new Map<string, string>()
  let start = 0
  for (let count = 1; start <= text.length; count += 1) {
    const found = text.indexOf('&', start)
    const end = found < 0 ? text.length : found
    const pair = text.slice(start, end)
    start = end + 1
    if (count % PIECE_CELLS === 0) yield ''
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = equals < 0 ? pair : pair.slice(0, equals)
    fields.set(decodeLenient(name), equals < 0 ? '' : decodeLenient(pair.slice(equals + 1)))
  }
  yield JSON.stringify(Object.fromEntries(fields))
}
