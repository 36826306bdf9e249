/** JSON values as the parameters of a query: their type where nothing else gives one, and their text for PostgreSQL. */
import type { ParameterKey, ParameterUse } from '../../access/check.ts'
import { baseOf, isJson } from '../../access/types.ts'
import { GatewayError } from '../../errors.ts'
import type { StatementValue } from '../../run/statement.ts'
import { shorten } from '../../shorten.ts'
import { parseJsonBody } from '../json-body.ts'
import type { JsonValue } from './request.ts'

/** Of a parameter that meets no column: that of a literal which looks the same. */
export function typeOfValue({ type, bytes }: JsonValue): string {
  switch (type) {
    case 'string':
    case 'null':
      return 'text'
    case 'integer':
      return integerType(bytes.toString('latin1'))
    case 'number':
      return 'numeric'
    case 'boolean':
      return 'bool'
    case 'object':
    case 'array':
      return 'jsonb'
  }
}

const INT4_MAX = 2n ** 31n - 1n
const INT8_MAX = 2n ** 63n - 1n

/** More digits than these are not counted out. */
const INT8_DIGITS_MAX = 20

function integerType(digits: string): 'int4' | 'int8' | 'numeric' {
  if (digits.length > INT8_DIGITS_MAX) return 'numeric'
  const value = BigInt(digits)
  const size = value < 0n ? -value : value
  return size <= INT4_MAX ? 'int4' : size <= INT8_MAX ? 'int8' : 'numeric'
}

/** The value in the form that PostgreSQL reads as `use`; JSON columns get the bytes as they are. */
export function encodeValue(key: ParameterKey, value: JsonValue, use: ParameterUse): StatementValue {
  if (value.type === 'null') return null
  if (use.list) {
    if (value.type === 'array') return arrayText(key, value, takesJson(use) ? JSON_ELEMENTS : 1)
    throw refused(key, value, 'a list of values, as "in" takes', use)
  }
  if (takesJson(use)) return value.bytes
  switch (value.type) {
    case 'string':
      return JSON.parse(value.bytes.toString()) as string
    case 'array':
      if (isArray(use)) return arrayText(key, value, holdsJson(use) ? JSON_ELEMENTS : ARRAY_DIMENSIONS_MAX)
      throw refused(key, value, `a value of type ${use.typeName}`, use)
    case 'object':
      throw refused(key, value, `a value of type ${use.typeName}`, use)
    default:
      return value.bytes.toString('latin1')
  }
}

function takesJson({ type, typeName }: ParameterUse): boolean {
  return type === null ? typeName === 'json' || typeName === 'jsonb' : isJson(type)
}

function isArray({ type, typeName }: ParameterUse): boolean {
  return type === null ? typeName.endsWith('[]') : baseOf(type).kind === 'array'
}

/** An array whose elements are JSON each. */
function holdsJson({ type, typeName }: ParameterUse): boolean {
  if (type === null) return /^jsonb?\[\]$/.test(typeName)
  const { of } = baseOf(type)
  return of !== null && isJson(of)
}

/** In place of a depth: whatever stands in the array is the JSON of an element. */
const JSON_ELEMENTS = 'JSON elements'

/** PostgreSQL's own (`MAXDIM`). */
const ARRAY_DIMENSIONS_MAX = 6

/** `[1, "a", null]` → `{1,"a",NULL}` (manual, 8.15.6). */
function arrayText(key: ParameterKey, value: JsonValue, depth: number | typeof JSON_ELEMENTS): string {
  const outline = parseJsonBody(value.bytes, Number.POSITIVE_INFINITY)
  if (outline.kind !== 'array') throw new Error('an array is an array')
  const items = outline.items.map(item => {
    const bytes = outline.bytes.subarray(item.start, item.end)
    if (depth === JSON_ELEMENTS) return item.type === 'null' ? 'NULL' : quoted(bytes.toString())
    switch (item.type) {
      case 'null':
        return 'NULL'
      case 'string':
        return quoted(JSON.parse(bytes.toString()) as string)
      case 'array':
        if (depth > 1) return arrayText(key, { type: 'array', bytes }, depth - 1)
        throw new GatewayError('PARSE_ERROR', `parameter ${nameOf(key)} has an array inside its list; expected values`)
      case 'object':
        return quoted(bytes.toString())
      default:
        return bytes.toString('latin1')
    }
  })
  return `{${items.join(',')}}`
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

function refused(key: ParameterKey, value: JsonValue, expected: string, use: ParameterUse): GatewayError {
  const place = use.subject === null ? '' : ` for ${use.subject}`
  const shown = shorten(value.bytes.toString())
  return new GatewayError(
    'PARSE_ERROR',
    `parameter ${nameOf(key)} is the ${value.type} ${shown}; expected ${expected}${place}`,
  )
}

export function nameOf(key: ParameterKey): string {
  return typeof key === 'number' ? `$${key}` : `:${key}`
}
