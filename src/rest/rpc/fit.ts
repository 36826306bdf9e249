/**
 * How well a value fits an argument, by what kind of JSON it is: this decides between overloads (docs/reference/functions.md#arguments).
 *
 * It follows how PostgreSQL types a constant (PostgreSQL manual, 4.1.2 and 10.3): an integer is an `integer` before it is a `bigint` or `numeric`, if it is not too large for
 * one, and a text may be read as anything. What surely cannot be read is refused here, where the signatures can be named; the rest is left to PostgreSQL.
 */
import { baseOf } from '../../access/types.ts'
import type { DataType } from '../../catalog/model.ts'
import type { JsonType } from '../../json/json-body.ts'
import { byType } from '../../types/builtin.ts'
import { integerType } from '../body/integer-type.ts'
import type { BodyValue, GivenValue } from './given.ts'
import { isPolymorphic, isPolymorphicArray, isPolymorphicScalar } from './polymorphic.ts'

/** 0: cannot be. 1: possible, nothing speaks for it. Up to 5: the better. */
export type Fit = number

const IMPOSSIBLE: Fit = 0
const POSSIBLE: Fit = 1

export function fitOf(type: DataType, value: GivenValue): Fit {
  if (value.kind === 'query') return value.texts.length === 1 || takesArray(type) ? POSSIBLE : IMPOSSIBLE
  // NULL is of every type.
  if (value.type === 'null') return POSSIBLE
  if (type.kind === 'pseudo') return fitOfPseudo(type, value.type)
  const fit = isTooLarge(type, value) ? IMPOSSIBLE : fitOfJson(baseOf(type), value.type)
  // What a domain is made of fits a little better than the domain: a value need not be one of its own.
  return type.kind === 'domain' && fit > POSSIBLE ? fit - 0.5 : fit
}

/** An integer of more digits than the type has room for. */
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

/** `type`: of the array that the value is to be an element of. */
export function fitOfElement(type: DataType, value: GivenValue): Fit {
  return type.of === null ? POSSIBLE : fitOf(type.of, value)
}

export function takesArray(type: DataType): boolean {
  return baseOf(type).kind === 'array' || isPolymorphicArray(type)
}

function fitOfPseudo(type: DataType, json: JsonType): Fit {
  if (isPolymorphicArray(type)) return json === 'array' ? POSSIBLE : IMPOSSIBLE
  if (isPolymorphicScalar(type)) return POSSIBLE
  return isPolymorphic(type) ? IMPOSSIBLE : POSSIBLE
}

function fitOfJson(type: DataType, json: JsonType): Fit {
  if (type.name === 'json' || type.name === 'jsonb') return json === 'object' || json === 'array' ? 5 : POSSIBLE
  switch (type.kind) {
    case 'array':
      // A text may be PostgreSQL's own notation, `{1,2}`.
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

function fitOfBase(type: DataType, json: JsonType): Fit {
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

const INTEGER_FIT: ReadonlyMap<string, Fit> = byType<Fit>({
  int4: 5,
  int8: 4,
  numeric: 3,
  float8: 2,
})

const NUMBER_FIT: ReadonlyMap<string, Fit> = byType<Fit>({
  numeric: 5,
  float8: 4,
  float4: 3,
  // PostgreSQL reads no `1.0` and no `1e3` as one of these.
  int2: 0,
  int4: 0,
  int8: 0,
})

function fitOfNumber({ name }: DataType, json: JsonType): Fit {
  switch (json) {
    case 'integer':
      return INTEGER_FIT.get(name) ?? POSSIBLE
    case 'number':
      return NUMBER_FIT.get(name) ?? POSSIBLE
    // How clients without large integers send them.
    case 'string':
      return POSSIBLE
    default:
      return IMPOSSIBLE
  }
}
