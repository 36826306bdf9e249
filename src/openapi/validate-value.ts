/** Validates a JSON value against a schema made by types.ts, as a client would. */
import type { SchemaObject } from './model.ts'

/** Reports whether a value is valid. */
export function isValid(value: unknown, schema: SchemaObject): boolean {
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
      return typeof value === 'string' && isValidText(value, schema)
    case 'array':
      return Array.isArray(value) && value.every(one => isValidItem(one, schema))
    case 'object':
      return typeof value === 'object' && !Array.isArray(value)
  }
}

const INT32_MAX = 2 ** 31 - 1

function isWithin(value: number, { format, minimum, maximum }: SchemaObject): boolean {
  const bounds = format === 'int32' ? { least: -INT32_MAX - 1, most: INT32_MAX } : { least: -Infinity, most: Infinity }
  return value >= (minimum ?? bounds.least) && value <= (maximum ?? bounds.most)
}

function isValidItem(value: unknown, { items }: SchemaObject): boolean {
  return items === undefined || '$ref' in items || isValid(value, items)
}

const DATE = '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])'
const TIME = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?'
const OFFSET = '(?:Z|[+-][0-2]\\d:[0-5]\\d)'

/**
 * The formats used in types.ts. Dates and times are those of RFC 3339, without an offset where the name
 * indicates it.
 */
const FORMATS: ReadonlyMap<string, RegExp> = new Map([
  ['uuid', /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/],
  ['date', new RegExp(`^${DATE}$`)],
  ['date-time', new RegExp(`^${DATE}T${TIME}${OFFSET}$`)],
  ['date-time-local', new RegExp(`^${DATE}T${TIME}$`)],
  ['time', new RegExp(`^${TIME}${OFFSET}$`)],
  ['time-local', new RegExp(`^${TIME}$`)],
])

/** A length counts characters, not UTF-16 code units (JSON Schema, 5.2.1). */
function isValidText(value: string, { enum: labels, format, maxLength }: SchemaObject): boolean {
  if (labels !== undefined && !labels.includes(value)) return false
  if (maxLength !== undefined && [...value].length > maxLength) return false
  return format === undefined || FORMATS.get(format)?.test(value) !== false
}
