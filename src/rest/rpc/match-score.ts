/**
 * How well a value matches an argument according to its JSON type; this selects the overload
 * (docs/reference/functions.md#arguments).
 *
 * The order follows the types that PostgreSQL gives constants (PostgreSQL manual, 4.1.2 and 10.3): an integer
 * matches `integer` before `bigint` and `numeric`, unless it is too large, and a string can be a value of any
 * type. Values that certainly cannot be read are rejected here, where the signatures are known; PostgreSQL
 * rejects the others.
 */
import { baseOf } from '../../access/types.ts'
import type { DataType } from '../../catalog/model.ts'
import type { JsonType } from '../../json/json-body.ts'
import { byType } from '../../types/builtin.ts'
import { integerType } from '../body/integer-type.ts'
import type { BodyValue, PassedValue } from './passed-arguments.ts'
import { isPolymorphic, isPolymorphicArray, isPolymorphicScalar } from './polymorphic.ts'

/**
 * How well a value matches: 0 is impossible, 1 is possible without a preference, and higher values up to 5
 * are better.
 */
export type MatchScore = number

const IMPOSSIBLE: MatchScore = 0
const POSSIBLE: MatchScore = 1

/** How well a value matches a type. */
export function matchScore(type: DataType, value: PassedValue): MatchScore {
  if (value.kind === 'query') return value.texts.length === 1 || takesArray(type) ? POSSIBLE : IMPOSSIBLE
  // NULL is a value of every type.
  if (value.type === 'null') return POSSIBLE
  if (type.kind === 'pseudo') return fitOfPseudo(type, value.type)
  const fit = isTooLarge(type, value) ? IMPOSSIBLE : fitOfJson(baseOf(type), value.type)
  // The base type matches slightly better than the domain, since a value of the base type may violate the
  // domain's constraints.
  return type.kind === 'domain' && fit > POSSIBLE ? fit - 0.5 : fit
}

/** Reports whether an integer has more digits than the type can hold. */
export function isTooLarge(type: DataType, { type: json, bytes }: BodyValue): boolean {
  if (json !== 'integer') return false
  switch (baseOf(type).name) {
    case 'int2':
    case 'int4':
      return integerType(bytes) !== 'int4'
    case 'int8':
      return integerType(bytes) === 'numeric'
    default:
      return false
  }
}

/** How well a value matches the element type of the array type `type`. */
export function elementMatchScore(type: DataType, value: PassedValue): MatchScore {
  return type.of === null ? POSSIBLE : matchScore(type.of, value)
}

/** Reports whether the type is an array type or accepts an array. */
export function takesArray(type: DataType): boolean {
  return baseOf(type).kind === 'array' || isPolymorphicArray(type)
}

function fitOfPseudo(type: DataType, json: JsonType): MatchScore {
  if (isPolymorphicArray(type)) return json === 'array' ? POSSIBLE : IMPOSSIBLE
  if (isPolymorphicScalar(type)) return POSSIBLE
  return isPolymorphic(type) ? IMPOSSIBLE : POSSIBLE
}

function fitOfJson(type: DataType, json: JsonType): MatchScore {
  if (type.name === 'json' || type.name === 'jsonb') return json === 'object' || json === 'array' ? 5 : POSSIBLE
  switch (type.kind) {
    case 'array':
      // A string can be PostgreSQL's text form of an array, `{1,2}`.
      return json === 'array' ? 5 : json === 'string' ? POSSIBLE : IMPOSSIBLE
    case 'composite':
      return json === 'object' ? 4 : json === 'string' ? POSSIBLE : IMPOSSIBLE
    case 'enum':
    case 'range':
    case 'multirange':
      return json === 'string' ? 3 : IMPOSSIBLE
    default:
      return fitOfBase(type, json)
  }
}

function fitOfBase(type: DataType, json: JsonType): MatchScore {
  switch (type.category) {
    case 'S':
      return json === 'string' ? 5 : POSSIBLE
    case 'N':
      return fitOfNumber(type, json)
    case 'B':
      return json === 'boolean' ? 5 : json === 'object' || json === 'array' ? IMPOSSIBLE : POSSIBLE
    case 'D':
    case 'T':
      return json === 'string' ? 3 : json === 'integer' || json === 'number' ? POSSIBLE : IMPOSSIBLE
    default:
      return json === 'string' ? 3 : POSSIBLE
  }
}

const INTEGER_FIT: ReadonlyMap<string, MatchScore> = byType<MatchScore>({
  int4: 5,
  int8: 4,
  numeric: 3,
  float8: 2,
})

const NUMBER_FIT: ReadonlyMap<string, MatchScore> = byType<MatchScore>({
  numeric: 5,
  float8: 4,
  float4: 3,
  // PostgreSQL does not read `1.0` or `1e3` as an integer.
  int2: 0,
  int4: 0,
  int8: 0,
})

function fitOfNumber({ name }: DataType, json: JsonType): MatchScore {
  switch (json) {
    case 'integer':
      return INTEGER_FIT.get(name) ?? POSSIBLE
    case 'number':
      return NUMBER_FIT.get(name) ?? POSSIBLE
    // Clients without large integers send them as strings.
    case 'string':
      return POSSIBLE
    default:
      return IMPOSSIBLE
  }
}
