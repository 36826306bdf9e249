/** Converts JavaScript values to literals of the tree, without loss of precision. */

import { isJsonLiteral } from '../format/format-literal.ts'
import type { Expression } from '../tree/ast.ts'
import { array, cast, integer, literal, text } from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { NESTING_MAX } from '../tree/nesting.ts'

/**
 * The values that the builder converts to literals. A plain object becomes JSON, a list a PostgreSQL array, a
 * date a timestamp.
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
 * The literal with exactly this value: all digits of a bigint, and the shortest digits that identify a
 * number. `-0` becomes 0, because SQL cannot express it.
 *
 * @throws LanguageError for NaN and infinities, integers that a `number` cannot represent exactly,
 *   `undefined`, and objects that are neither plain objects nor dates.
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
 * Any value as JSON; the rules of `literalOf` apply to its parts. JSON that the language would not parse as
 * JSON becomes a text with a cast.
 */
export function jsonOf(value: unknown): Expression {
  const json = toJson(value, 0)
  return isJsonLiteral(json) ? literal('json', json) : cast(text(json), 'jsonb')
}

function numberOf(digits: string): Expression {
  return /^-?[0-9]+$/.test(digits) ? integer(digits) : literal('decimal', digits)
}

function digitsOf(value: number): string {
  if (!Number.isFinite(value)) throw new LanguageError(`${value} is not a number in SQL; write null or omit it`)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new LanguageError(`the number ${value} is too large to be exact; write it as a bigint, ${BigInt(value)}n`)
  }
  // Also "0" for -0.
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
  if (value === undefined) throw new LanguageError('undefined is not a value; write null or omit it')
  if (typeof value === 'object' && value !== null) {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === null || prototype === Object.prototype) return value
  }
  throw new LanguageError(`a ${typeof value} that is not a plain object cannot be written as a literal`)
}
