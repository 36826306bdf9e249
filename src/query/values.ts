/**
 * Converts JSON values to the parameters of a query: their type, if nothing else determines it, and their
 * text for PostgreSQL.
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

/** The type of a parameter that is not used with a column: that of a literal with the same JSON type. */
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

/** The limit on lists of values. */
export interface ListLimit {
  /** Maximum number of values in a list. */
  readonly maxInValues: number
}

/**
 * The value in the text format that PostgreSQL expects for `use`. JSON columns get the bytes unchanged.
 *
 * @throws GatewayError `PARSE_ERROR` if the value does not fit the use.
 */
export function encodeValue(
  key: ParameterKey,
  value: JsonValue,
  use: ParameterUse,
  { maxInValues }: ListLimit,
): StatementValue {
  if (value.type === 'null') return null
  if (use.list) {
    if (value.type === 'array' && hasMoreItems(value.bytes, maxInValues)) {
      throw new GatewayError('PARSE_ERROR', `the list in parameter ${parameterName(key)} ${tooManyValues(maxInValues)}`)
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

/** `[1, "a", null]` → `{1,"a",NULL}`. `dimensions` is the maximum depth of nested arrays. */
function arrayText(key: ParameterKey, { bytes }: JsonValue, form: ArrayForm, dimensions?: number): string {
  const text = printArray(bytes, form, dimensions)
  if (text !== null) return text
  throw new GatewayError('PARSE_ERROR', `parameter ${parameterName(key)} has an array inside its list; expected values`)
}

function refused(key: ParameterKey, value: JsonValue, expected: string, use: ParameterUse): GatewayError {
  const place = use.subject === null ? '' : ` for ${use.subject}`
  const shown = shorten(value.bytes.toString())
  return new GatewayError(
    'PARSE_ERROR',
    `parameter ${parameterName(key)} is the ${value.type} ${shown}; expected ${expected}${place}`,
  )
}

/** The name of a parameter in messages, `$1` or `:name`. */
export function parameterName(key: ParameterKey): string {
  return typeof key === 'number' ? `$${key}` : `:${key}`
}
