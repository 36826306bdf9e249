/** The tables that the caller can see: the document of `GET /api/_schema`. */
import type { ColumnDocument, RelationDocument, TableDocument } from '../../src/catalog/describe.ts'
import { printId } from '../../src/rest/path.ts'
import { type Session, send } from './api.ts'
import { type Json, printJson, type Row } from './json.ts'

export type { ColumnDocument as Column, RelationDocument as Relation, TableDocument as Table }

/** By resource name, sorted. */
export type Schema = ReadonlyMap<string, TableDocument>

export async function readSchema(session: Session): Promise<Schema> {
  const { body } = await send(session, 'api/_schema')
  const { tables } = body as unknown as { readonly tables: Readonly<Record<string, TableDocument>> }
  return new Map(Object.entries(tables).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * The last part of the path of a row. Null if the table has no key, the row does not contain it, or a URL
 * cannot contain it: dot segments are removed even when they are percent-encoded (RFC 3986, 5.2.4).
 */
export function rowId({ primary_key: key }: Pick<TableDocument, 'primary_key'>, row: Row): string | null {
  const values = key.map(name => (Object.hasOwn(row, name) ? (row[name] ?? null) : null))
  if (values.length === 0 || values.includes(null)) return null
  const id = printId(values.map(value => (typeof value === 'string' ? value : printJson(value))))
  return id === '.' || id === '..' || id === '' ? null : id
}

/** The condition of a foreign key: the row that it refers to, as a query of the other table. */
export function referenceOf(table: TableDocument, column: string, value: Json): readonly [string, string] | null {
  const key = table.foreign_keys.find(({ columns }) => columns.length === 1 && columns[0] === column)
  const target = key?.references.columns[0]
  if (key === undefined || target === undefined || value === null || typeof value === 'boolean') return null
  const text = typeof value === 'string' ? value : printJson(value)
  return [key.references.table, new URLSearchParams([[`${quoted(target)}.eq`, text]]).toString()]
}

/** A name in a parameter: in double quotes if it contains punctuation. */
export function quoted(name: string): string {
  return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}
