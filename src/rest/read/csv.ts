/**
 * Lists as CSV. PostgreSQL prints each row as a composite value, `(1,"a ""b""",)`, whose fields are quoted
 * like those of CSV: quotes are doubled, NULL has no characters, and the empty text is `""`. Only its
 * parentheses and the doubling of backslashes are removed here, so rows are copied as bytes.
 */
import { readableColumns, type View } from '../../access/rights.ts'
import type { ResultRow } from '../../run/run.ts'
import { keyOfRelation } from '../parameters/expand.ts'
import type { ListTree } from './request.ts'

const NEWLINE = 0x0a
const BACKSLASH = 0x5c

/** The names of a list's columns, in the order in which its statement returns them. */
export function columnNames({ table, select, expand, distinct }: ListTree, { rights }: View): readonly string[] {
  if (distinct !== null) return [distinct]
  const all = () => readableColumns(table, rights).map(({ name }) => name)
  const columns =
    select.length === 0
      ? all()
      : select.flatMap(item => (item.kind === 'star' ? all() : [item.alias ?? item.path.column]))
  return [...columns, ...expand.map(keyOfRelation)]
}

/** The header line. */
export function printHeader(names: readonly string[]): Buffer {
  return Buffer.from(`${names.map(quoteName).join(',')}\n`)
}

/** As PostgreSQL quotes the fields of a row. */
const QUOTED = /[\s",()\\]/

function quoteName(name: string): string {
  return QUOTED.test(name) ? `"${name.replaceAll('"', '""')}"` : name
}

/** The lines of the first `count` rows, after `head`. */
export function joinRecords(head: Buffer, rows: readonly ResultRow[], count: number): Buffer {
  // A line is at most as long as the row: it has a line break instead of two parentheses.
  let size = head.length
  for (let i = 0; i < count; i++) size += rows[i]?.[0]?.length ?? 0
  const body = Buffer.allocUnsafe(size)
  let at = head.copy(body)
  for (let i = 0; i < count; i++) {
    const row = rows[i]?.[0]
    if (row === null || row === undefined) throw new Error('a record cannot be NULL')
    at = copyFields(row, body, at)
    body[at++] = NEWLINE
  }
  return body.subarray(0, at)
}

/** Copies what is between the parentheses, with one of each two backslashes. Returns the end of the copy. */
function copyFields(row: Buffer, body: Buffer, start: number): number {
  const end = row.length - 1
  let at = start
  let from = 1
  for (let found = row.indexOf(BACKSLASH); found >= 0; found = row.indexOf(BACKSLASH, from)) {
    at += row.copy(body, at, from, found + 1)
    from = found + 2
  }
  return at + row.copy(body, at, from, end)
}
