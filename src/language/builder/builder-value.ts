/** Values of JavaScript as literals of the tree: exactly, or not at all. */

import { isJsonLiteral } from '../format/format-literal.ts'
import type { Expression } from '../tree/ast.ts'
import { array, cast, integer, literal, text } from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { NESTING_MAX } from '../tree/nesting.ts'

/**
 * What the builder writes as a literal. A plain object becomes JSON, a list an array of PostgreSQL, a date
 * its instant.
 */
export type Value =
  | string
  | number
  | bigint
  | boolean
  | null
  | Date
  | readonly Value[]
  | { readonly [key: string]: unknown }

/**
 * The literal that means this value and no other: all digits of a bigint, the shortest digits that give a
 * number back. `-0` is 0, which SQL has no other way to write. Refused: NaN and the infinities, whole numbers
 * that a `number` does not hold exactly, `undefined`, and objects that are neither plain nor dates.
 */
export function literalOf(value: unknown): Expression {
  switch (typeof value) {
    case 'string':
      return text(value)
    case 'number':
      return numberOf(digitsOf(value))
    case 'bigint':
      return numberOf(String(value))
    case 'boolean':
      return literal('boolean', String(value))
    default:
      if (value === null) return literal('null', '')
      if (value instanceof Date) return text(instantOf(value))
      if (Array.isArray(value)) return array(value.map(literalOf))
      return jsonOf(value)
  }
}

/**
 * Any value as JSON; the same rules hold inside. What the language does not read as JSON by itself is a text
 * with a cast.
 */
export function jsonOf(value: unknown): Expression {
  const json = toJson(value, 0)
  return isJsonLiteral(json) ? literal('json', json) : cast(text(json), 'jsonb')
}

function numberOf(digits: string): Expression {
  return /^-?[0-9]+$/.test(digits) ? integer(digits) : literal('decimal', digits)
}

function digitsOf(value: number): string {
  if (!Number.isFinite(value)) throw new LanguageError(`${value} is no number of SQL; write null or leave it out`)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new LanguageError(`the number ${value} is too large to be exact; write it as a bigint, ${BigInt(value)}n`)
  }
  // Of -0, too, this is "0".
  return String(value)
}

function instantOf(date: Date): string {
  const year = date.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) {
    throw new LanguageError(`the date ${String(date)} is not between the years 1 and 9999; write it as text`)
  }
  return date.toISOString()
}

function toJson(value: unknown, depth: number): string {
  if (depth > NESTING_MAX) throw new LanguageError(`the JSON value is nested more than ${NESTING_MAX} levels deep`)
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return digitsOf(value)
    case 'bigint':
    case 'boolean':
      return String(value)
    default:
      if (value === null) return 'null'
      if (value instanceof Date) return JSON.stringify(instantOf(value))
      if (Array.isArray(value)) return `[${value.map(item => toJson(item, depth + 1)).join(',')}]`
      return `{${Object.entries(plain(value))
        .map(([key, member]) => `${JSON.stringify(key)}:${toJson(member, depth + 1)}`)
        .join(',')}}`
  }
}

function plain(value: unknown): object {
  if (value === undefined) throw new LanguageError('undefined is no value; write null or leave it out')
  if (typeof value === 'object' && value !== null) {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === null || prototype === Object.prototype) return value
  }
  throw new LanguageError(`a ${typeof value} that is no plain object cannot be written as a literal`)
}
