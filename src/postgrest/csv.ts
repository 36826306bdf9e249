/** CSV: rows of a response, with the quotes of PostgreSQL's text form of rows, and rows of a body. */
import type { ResultRow } from '../run/run.ts'

/** A head line with the names, and a line for each row. */
export function printCsv(names: readonly string[], rows: readonly ResultRow[]): Buffer {
  const lines = rows.map(row => row.map(cell => (cell === null ? '' : quoteCell(cell.toString()))).join(','))
  return Buffer.from([names.join(','), ...lines].join('\n'))
}

const NEEDS_QUOTES = /["\\(),\s]/

/** NULL has no characters, so an empty text needs quotes. */
function quoteCell(text: string): string {
  return text === '' || NEEDS_QUOTES.test(text) ? `"${text.replace(/["\\]/g, '$&$&')}"` : text
}

/** A cell, and what follows it: a comma, a line break, or nothing at the end of the text. */
interface Cell {
  readonly value: string
  readonly end: string
}

/** The cells of a text (RFC 4180). */
export function* parseCells(text: string): Generator<Cell> {
  for (const [, quoted, plain = '', end = ''] of text.matchAll(CELL)) {
    yield { value: quoted === undefined ? plain : quoted.replaceAll('""', '"'), end }
    if (end === '') return
  }
}

const CELL = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n|\n|\r|$)/g
