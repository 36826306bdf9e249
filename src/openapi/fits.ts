/** Whether a JSON value is one of a schema, of those that types.ts makes: what a reader of the document would say of it. */
import type { Schema } from './model.ts'

export function fits(value: unknown, schema: Schema): boolean {
  if (schema.type === undefined) return true
  if (value === null) return schema.nullable === true
  switch (schema.type) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isSafeInteger(value) && isWithin(Number(value), schema)
    case 'number':
      return typeof value === 'number'
    case 'string':
      return typeof value === 'string' && fitsText(value, schema)
    case 'array':
      return Array.isArray(value) && value.every(one => fitsItem(one, schema))
    case 'object':
      return typeof value === 'object' && !Array.isArray(value)
  }
}

const INT32_MAX = 2 ** 31 - 1

function isWithin(value: number, { format, minimum, maximum }: Schema): boolean {
  const bounds = format === 'int32' ? { least: -INT32_MAX - 1, most: INT32_MAX } : { least: -Infinity, most: Infinity }
  return value >= (minimum ?? bounds.least) && value <= (maximum ?? bounds.most)
}

function fitsItem(value: unknown, { items }: Schema): boolean {
  return items === undefined || '$ref' in items || fits(value, items)
}

const DATE = '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])'
const TIME = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?'
const OFFSET = '(?:Z|[+-][0-2]\\d:[0-5]\\d)'

/** Those that types.ts names; dates and times are of RFC 3339, and without an offset where the name says so. */
const FORMATS: ReadonlyMap<string, RegExp> = new Map([
  ['uuid', /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  ['date', new RegExp(`^${DATE}$`)],
  ['date-time', new RegExp(`^${DATE}T${TIME}${OFFSET}$`)],
  ['date-time-local', new RegExp(`^${DATE}T${TIME}$`)],
  ['time', new RegExp(`^${TIME}${OFFSET}$`)],
  ['time-local', new RegExp(`^${TIME}$`)],
])

/** A length counts characters, not halves of them (JSON Schema, 5.2.1). */
function fitsText(value: string, { enum: labels, format, maxLength }: Schema): boolean {
  if (labels !== undefined && !labels.includes(value)) return false
  if (maxLength !== undefined && [...value].length > maxLength) return false
  return format === undefined || FORMATS.get(format)?.test(value) !== false
}
