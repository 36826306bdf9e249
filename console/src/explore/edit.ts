/** The editor of a row: from a value to the text of its field and back to the JSON of the request. */
import { type Json, printJson } from '../json.ts'
import type { Column } from '../schema.ts'

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
export function isWritable({ generated, identity }: Column): boolean {
  return generated === null && identity !== 'always'
}

/** The text of the field. */
export function textOf(column: Column, value: Json): string {
  if (value === null) return ''
  const isText = typeof value === 'string' && fieldOf(column) !== 'json'
  return isText ? value : printJson(value, fieldOf(column) === 'json' ? 2 : 0)
}

/** The JSON of a field's text. Null if the column needs JSON and the text is not JSON. */
export function jsonOf(column: Column, text: string): string | null {
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
