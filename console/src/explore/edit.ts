/** The editor of a row: from a value to the text of its field and back to the JSON of the request. */
import { type Json, printJson, type Row } from '../json.ts'
import type { Column, Table } from '../schema.ts'

/** Types whose JSON is not a string; every other value is the text that PostgreSQL reads. */
const NUMBER = /^(smallint|integer|bigint|real|double precision|numeric)\b(?!.*\[\])/
const STRUCTURED = /\[\]$|^jsonb?$|^hstore$/

/** Types whose values have several lines. */
const LONG = /^(text|character varying|xml)\b/

export type Field = 'boolean' | 'choice' | 'number' | 'json' | 'line' | 'text'

export function fieldOf({ type, enum: labels }: Column): Field {
  if (STRUCTURED.test(type)) return 'json'
  if (labels !== undefined) return 'choice'
  if (type === 'boolean') return 'boolean'
  if (NUMBER.test(type)) return 'number'
  return LONG.test(type) ? 'text' : 'line'
}

/** Reports whether a request can write the column. */
export function isWritable({ generated, identity, read_only }: Column): boolean {
  return generated === null && identity !== 'always' && read_only !== true
}

/** Why a cell cannot be changed in place. */
export type Obstacle = 'foreign' | 'noKey' | 'keyNotShown' | 'key' | 'generated' | 'identity' | 'noRight'

/**
 * Returns why a cell cannot be changed in place, or null if it can. The column is undefined for values that
 * are not columns of the table; the id is null for a row without a path.
 */
export function obstacleOf(table: Table, column: Column | undefined, id: string | null): Obstacle | null {
  if (column === undefined) return 'foreign'
  if (table.primary_key.length === 0) return 'noKey'
  if (table.primary_key.includes(column.name)) return 'key'
  if (column.generated !== null) return 'generated'
  if (column.identity === 'always') return 'identity'
  if (!isWritable(column)) return 'noRight'
  return id === null ? 'keyNotShown' : null
}

/** The text of the field; null for NULL. */
export function textOf(column: Column, value: Json): string | null {
  if (value === null) return null
  const isText = typeof value === 'string' && fieldOf(column) !== 'json'
  return isText ? value : printJson(value, fieldOf(column) === 'json' ? 2 : 0)
}

/** The JSON of a field's text. Null if the column needs JSON and the text is not JSON. */
export function jsonOf(column: Column, text: string | null): string | null {
  if (text === null) return 'null'
  switch (fieldOf(column)) {
    case 'number':
      // PostgreSQL also reads NaN and Infinity, as texts.
      return /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(text.trim()) ? text.trim() : JSON.stringify(text)
    case 'boolean':
      return text === 'true' ? 'true' : 'false'
    case 'json':
      return isJson(text) ? text : null
    default:
      return JSON.stringify(text)
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A change of a column, with the JSON of its values. */
export interface Change {
  readonly column: Column
  readonly before: string
  readonly after: string
}

/**
 * A JSON Patch that makes the changes only if the columns still have their values (RFC 6902). Null if one of
 * them is an array, which JSON Patch cannot change (docs/reference/writing.md#partial-changes).
 */
export function patchOf(changes: readonly Change[]): string | null {
  if (changes.some(({ column }) => column.type.endsWith('[]'))) return null
  const operations = (['test', 'replace'] as const).flatMap(op =>
    changes.map(({ column, before, after }) => {
      const path = `/${column.name.replaceAll('~', '~0').replaceAll('/', '~1')}`
      return `{"op":"${op}","path":${JSON.stringify(path)},"value":${op === 'test' ? before : after}}`
    }),
  )
  return `[${operations.join(',')}]`
}

/** The body of a request: an object of columns and JSON texts. */
export function bodyOf(values: readonly (readonly [column: string, json: string])[]): string {
  return `{${values.map(([column, json]) => `${JSON.stringify(column)}:${json}`).join(',')}}`
}

/** A column whose value another client has changed. */
export interface Difference {
  readonly column: Column
  readonly before: Json
  readonly after: Json
}

/** The columns of the table that both rows have, with different values. */
export function differencesOf({ columns }: Table, before: Row, after: Row): readonly Difference[] {
  return columns
    .filter(({ name }) => Object.hasOwn(before, name) && Object.hasOwn(after, name))
    .map(column => ({ column, before: before[column.name] ?? null, after: after[column.name] ?? null }))
    .filter(one => textOf(one.column, one.before) !== textOf(one.column, one.after))
}
