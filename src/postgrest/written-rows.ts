/** Rows that a write returned, in the form of the response. Reads have PostgreSQL produce these forms. */
import { isObject, type Json, parseJson, printJson } from '../json/text/values.ts'
import type { ResultRow } from '../run/run.ts'
import { foldedValue } from './media-handlers.ts'
import type { ResponseMediaType } from './media-types.ts'

/** The rows, and the names of their columns for a CSV. */
export interface ReturnedRows {
  readonly rows: readonly ResultRow[]
  readonly names: readonly string[]
}

/** Converts rows of JSON objects. */
export function asWritten(rows: readonly ResultRow[], { form, stripsNulls }: ResponseMediaType): ReturnedRows {
  if (form === 'csv') return cellsOf(rows)
  if (!stripsNulls) return { rows, names: [] }
  return { rows: rows.map(row => [Buffer.from(printJson(stripped(objectOf(row))))]), names: [] }
}

function objectOf([row]: ResultRow): Json {
  return parseJson(row?.toString() ?? 'null')
}

function cellsOf(rows: readonly ResultRow[]): ReturnedRows {
  const objects = rows.map(row => objectOf(row)).filter(isObject)
  const names = [...(objects[0]?.keys() ?? [])]
  return { rows: objects.map(object => names.map(name => cellOf(object.get(name) ?? null))), names }
}

function cellOf(value: Json): Buffer | null {
  if (value === null) return null
  if (typeof value === 'boolean') return Buffer.from(value ? 't' : 'f')
  return Buffer.from(typeof value === 'string' ? value : printJson(value))
}

function stripped(value: Json): Json {
  if (!isObject(value)) return value
  return new Map([...value].flatMap(([key, member]) => (member === null ? [] : [[key, stripped(member)] as const])))
}

const NO_FEATURES = Buffer.from('{"type" : "FeatureCollection", "features" : []}')

/** The value that the database made of all rows. It has made none if no row was written. */
export function aggregatedValue(rows: readonly ResultRow[], { handler }: ResponseMediaType): Buffer {
  const value = rows.find(([first]) => first != null)
  if (value === undefined && handler?.makes === 'features') return NO_FEATURES
  return foldedValue(value === undefined ? [] : [value], handler?.isBinary ?? false).body
}
