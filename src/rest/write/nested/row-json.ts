/** The values of rows as JSON, and as PostgreSQL prints them. */
import { isJson } from '../../../access/types.ts'
import type { Table } from '../../../catalog/model.ts'
import { type ObjectOutline, parseJsonBody, partBytes } from '../../../json/json-body.ts'
import type { GraphRow } from './graph.ts'

/** A value of a column as PostgreSQL prints it; null for NULL. */
export type Text = string | null

/**
 * The value of a column as JSON: JSON unchanged, and values of any other type as a string, which PostgreSQL
 * reads as their text form.
 */
export function columnJson(text: Text | undefined, { columnByName }: Table, name: string): string {
  if (text === undefined || text === null) return 'null'
  const type = columnByName.get(name)?.type
  return type !== undefined && isJson(type) ? text : JSON.stringify(text)
}

/** `{"a":…}` of values that are JSON. */
export function objectOf(members: Readonly<Record<string, string>>): string {
  const parts = Object.entries(members).map(([name, json]) => `${JSON.stringify(name)}:${json}`)
  return `{${parts.join(',')}}`
}

/** An array of such objects. */
export function listOf<T>(
  items: readonly T[],
  members: (item: T, index: number) => Readonly<Record<string, string>>,
): Buffer {
  return Buffer.from(`[${items.map((item, index) => objectOf(members(item, index))).join(',')}]`)
}

/** The values of columns as JSON, by name. */
export function jsonsOf(
  table: Table,
  names: readonly string[],
  value: (name: string, index: number) => Text | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name, index) => [name, columnJson(value(name, index), table, name)]))
}

const outlines = new WeakMap<GraphRow, ObjectOutline>()

/** The text of a value in the body: a string without quotes, and any other value as it is. */
export function textIn(row: GraphRow, name: string): Text {
  const body = outlines.get(row) ?? outlineOf(row.bytes)
  outlines.set(row, body)
  const member = body.members.find(({ key }) => key === name)
  if (member === undefined || member.type === 'null') return null
  const json = partBytes(body, member).toString()
  return member.type === 'string' ? (JSON.parse(json) as string) : json
}

/** The members of a row. */
export function outlineOf(bytes: Buffer): ObjectOutline {
  const body = parseJsonBody(bytes, 0)
  if (body.kind !== 'object') throw new Error('a row is an object')
  return body
}
