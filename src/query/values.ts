/**
 * JSON values as the parameters of a query: their type where nothing else gives one, and their text for
 * PostgreSQL.
 */
import type { ParameterKey, ParameterUse } from '../access/parameters.ts'
import { isJsonValue } from '../access/typed.ts'
import { baseOf } from '../access/types.ts'
import type { StatementValue } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { JsonValue } from '../json/json-body.ts'
import { hasMoreItems } from '../json/json-scanner.ts'
import {
  type ArrayForm,
  arrayFormOf,
  JSON_ARRAY,
  PLAIN_ARRAY,
  printArray,
  printHstore,
  textFormOf,
} from '../rest/body/array-values.ts'
import { integerType } from '../rest/body/integer-type.ts'
import { tooManyValues } from '../rest/parameters/list-values.ts'
import { shorten } from '../text/shorten.ts'

/** Of a parameter that meets no column: that of a literal which looks the same. */
export function typeOfValue({ type, bytes }: JsonValue): string {
  switch (type) {
    case 'string':
    case 'null':
      return 'text'
    case 'integer':
      return integerType(bytes)
    case 'number':
      return 'numeric'
    case 'boolean':
      return 'bool'
    case 'object':
    case 'array':
      return 'jsonb'
  }
}

export interface ListLimit {
  /** Values in one list. */
  readonly maxInValues: number
}

/** The value in the form that PostgreSQL reads as `use`; JSON columns get the bytes as they are. */
export function encodeValue(
  key: ParameterKey,
  value: JsonValue,
  use: ParameterUse,
  { maxInValues }: ListLimit,
): StatementValue {
  if (value.type === 'null') return null
  if (use.list) {
    if (value.type === 'array' && hasMoreItems(value.bytes, maxInValues)) {
      throw new GatewayError('PARSE_ERROR', `the list in parameter ${nameOf(key)} ${tooManyValues(maxInValues)}`)
    }
    if (value.type === 'array') return arrayText(key, value, isJsonValue(use) ? JSON_ARRAY : PLAIN_ARRAY, 1)
    throw refused(key, value, 'a list of values, as "in" takes', use)
  }
  if (isJsonValue(use)) return value.bytes
  switch (value.type) {
    case 'string':
      return JSON.parse(value.bytes.toString()) as string
    case 'array':
      if (isArray(use)) return arrayText(key, value, formOf(use))
      throw refused(key, value, `a value of type ${use.typeName}`, use)
    case 'object':
      if (use.type !== null && textFormOf(use.type) === 'hstore') return printHstore(value.bytes)
      throw refused(key, value, `a value of type ${use.typeName}`, use)
    default:
      return value.bytes.toString('latin1')
  }
}

function isArray({ type, typeName }: ParameterUse): boolean {
  return type === null ? typeName.endsWith('[]') : baseOf(type).kind === 'array'
}

function formOf({ type, typeName }: ParameterUse): ArrayForm {
  if (type !== null) return arrayFormOf(type) ?? PLAIN_ARRAY
  return /^jsonb?\[\]$/.test(typeName) ? JSON_ARRAY : PLAIN_ARRAY
}

/** `[1, "a", null]` → `{1,"a",NULL}`. `dimensions`: arrays in one another, at most. */
function arrayText(key: ParameterKey, { bytes }: JsonValue, form: ArrayForm, dimensions?: number): string {
  const text = printArray(bytes, form, dimensions)
  if (text !== null) return text
  throw new GatewayError('PARSE_ERROR', `parameter ${nameOf(key)} has an array inside its list; expected values`)
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
