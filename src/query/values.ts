/**
 * Converts JSON values to the parameters of a query: their type, if nothing else determines it, and their
 * text for PostgreSQL.
 */
import type { ParameterKey, ParameterUse } from '../access/parameters.ts'
import { isJsonValue } from '../access/typed.ts'
import { baseOf } from '../access/types.ts'
import { GatewayError } from '../errors.ts'
import type { JsonValue } from '../json/json-body.ts'
import { hasMoreItems } from '../json/json-scanner.ts'
import { integerType } from '../rest/body/integer-type.ts'
import { BYTES_IN_A_TURN, Rewriting } from '../rest/body/rewriting.ts'
import {
  type ArrayForm,
  arrayFormOf,
  elementFormOf,
  isArrayForm,
  isRecordForm,
  JSON_ARRAY,
  PLAIN_ARRAY,
} from '../rest/body/text-forms.ts'
import type { PendingValue } from '../rest/body/text-values.ts'
import { tooManyValues } from '../rest/parameters/list-values.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
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

/** Limits on the values of a query text. */
export interface ValueLimits {
  /** Maximum number of values in a list. */
  readonly maxInValues: number
  /** Parameters of one text. */
  readonly maxParameters: number
  /** Bytes of an array or composite value in PostgreSQL's text form; 0 means no limit. */
  readonly maxTextFormBytes: number
}

/**
 * The value in the text format that PostgreSQL expects for `use`. JSON columns get the bytes unchanged.
 *
 * @throws GatewayError `PARSE_ERROR` if the value does not fit the use.
 */
export function encodeValue(key: ParameterKey, value: JsonValue, use: ParameterUse, limits: ValueLimits): PendingValue {
  const { maxInValues } = limits
  if (value.type === 'null') return null
  if (use.list) {
    if (value.type === 'array' && hasMoreItems(value.bytes, maxInValues)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the list in parameter ${parameterName(key)} ${tooManyValues(maxInValues)}`,
        {
          limit: LIMIT_NAMES.maxInValues,
        },
      )
    }
    if (value.type === 'array') return arrayText(key, value, listFormOf(use), limits, 1)
    throw refused(key, value, 'a list of values for "in"', use)
  }
  if (isJsonValue(use)) return value.bytes
  switch (value.type) {
    case 'string':
      return JSON.parse(value.bytes.toString()) as string
    case 'array':
      if (isArray(use)) return arrayText(key, value, formOf(use), limits)
      throw refused(key, value, `a value of type ${use.typeName}`, use)
    case 'object':
      return objectText(key, value, use, limits)
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

function listFormOf(use: ParameterUse): ArrayForm {
  if (isJsonValue(use)) return JSON_ARRAY
  const element = use.type === null ? 'plain' : elementFormOf(use.type)
  return isArrayForm(element) ? PLAIN_ARRAY : { of: element }
}

/** `[1, "a", null]` → `{1,"a",NULL}`. `dimensions`: arrays in one another, at most. */
function arrayText(
  key: ParameterKey,
  { bytes }: JsonValue,
  form: ArrayForm,
  limits: ValueLimits,
  dimensions?: number,
): PendingValue {
  const refuse = () =>
    new GatewayError('PARSE_ERROR', `parameter ${parameterName(key)} has an array inside its list; expected values`)
  return begun(Rewriting.text(bytes, form, refuse, dimensions, limits))
}

/** `{"a": 1}` → `"a"=>"1"` or `(1)`. */
function objectText(key: ParameterKey, value: JsonValue, use: ParameterUse, limits: ValueLimits): PendingValue {
  const form = use.type === null ? 'plain' : elementFormOf(use.type)
  const refuse = () => refused(key, value, `a value of type ${use.typeName}`, use)
  if (form !== 'hstore' && !isRecordForm(form)) throw refuse()
  return begun(Rewriting.text(value.bytes, form, refuse, undefined, limits))
}

function begun(rewriting: Rewriting): PendingValue {
  return rewriting.run(BYTES_IN_A_TURN) ? rewriting.bytes() : rewriting
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
