/**
 * The maximum number of decimal digits of an expression. PostgreSQL multiplies and divides values of type
 * `numeric` in a number of steps that is the product of their lengths, and checks no timeout while it does.
 * A number whose length is unknown counts as the longest possible.
 */
import type { DataType } from '../catalog/model.ts'
import type { Arithmetic, FunctionCall, Literal, TypeName } from '../language/tree/ast.ts'
import { SQL_NAMES, typeSet } from '../types/builtin.ts'
import { baseOf } from './types.ts'

/** Digits before and after the decimal point (PostgreSQL manual, 8.1.2). */
export const DIGITS_OF_NUMERIC: number = 131_072 + 16_383

/** Digits of integers, floating point numbers, and any other type that can be multiplied. */
const DIGITS_OF_OTHERS = 20

/** Digits that rounding, carrying, and summing any number of rows can add. */
const MORE_DIGITS = 20

/** With an exponent, a few characters can denote a number of any length. */
export function digitsOfLiteral({ type, value }: Literal): number {
  if (type === 'null' || type === 'boolean') return 0
  return /e/i.test(value) ? DIGITS_OF_NUMERIC : value.length
}

/** Digits of a stored column. `typeText` includes the precision, as in `numeric(10,2)`. */
export function digitsOfColumn(type: DataType | null, typeText: string | null): number {
  if (type === null) return DIGITS_OF_NUMERIC
  const base = baseOf(type)
  if (base.name !== 'numeric') return base.kind === 'base' ? DIGITS_OF_OTHERS : DIGITS_OF_NUMERIC
  const [, precision] = /^numeric\((\d+)/.exec(typeText ?? '') ?? []
  return precision === undefined ? DIGITS_OF_NUMERIC : Number(precision)
}

const OTHERS: ReadonlySet<string> = typeSet('int2', 'int4', 'int8', 'float4', 'float8', 'money', 'interval')

/** Digits of a value of the named type; null means that the type is unknown. */
export function digitsOfType(name: string | null): number {
  return name !== null && OTHERS.has(name) ? DIGITS_OF_OTHERS : DIGITS_OF_NUMERIC
}

/** Digits of a cast. `of`: the digits of its operand. */
export function digitsOfCast(
  { schema, name, modifiers, dimensions }: TypeName,
  of: number = DIGITS_OF_NUMERIC,
): number {
  if (dimensions > 0 || (schema !== null && schema !== 'pg_catalog')) return DIGITS_OF_NUMERIC
  const own = SQL_NAMES.get(name.toLowerCase()) ?? name.toLowerCase()
  if (OTHERS.has(own)) return DIGITS_OF_OTHERS
  const [precision] = modifiers
  if (own === 'numeric' && precision !== undefined) return Math.min(Number(precision), DIGITS_OF_NUMERIC)
  return of
}

/** Digits of a sum, difference, product, quotient or remainder of numbers with this many digits. */
export function digitsOfArithmetic(operator: Arithmetic['operator'], left: number, right: number): number {
  const digits = operator === '*' || operator === '/' ? left + right : Math.max(left, right)
  return Math.min(digits + MORE_DIGITS, DIGITS_OF_NUMERIC)
}

const COUNTING: ReadonlySet<string> = new Set(
  (
    'count length char_length character_length octet_length bit_length ' +
    'cardinality array_length position strpos ascii ' +
    'extract date_part row_number rank dense_rank percent_rank cume_dist ntile random grouping'
  ).split(' '),
)

/** Reports whether the result of a checked call is a number that no argument can make long. */
export function isCounting({ schema, name }: Pick<FunctionCall, 'schema' | 'name'>): boolean {
  return (schema === null || schema === 'pg_catalog') && COUNTING.has(name)
}

/** Functions whose result has about as many digits as their longest argument. */
const KEEPING: ReadonlySet<string> = new Set(
  (
    'coalesce nullif greatest least abs ceil ceiling floor sign sum avg min max lag lead ' +
    'first_value last_value nth_value'
  ).split(' '),
)

/** Digits of the result of a PostgreSQL built-in function. */
export function digitsOfCall(name: string, args: readonly number[]): number {
  if (COUNTING.has(name)) return DIGITS_OF_OTHERS
  if (!KEEPING.has(name)) return DIGITS_OF_NUMERIC
  return Math.min(Math.max(0, ...args) + MORE_DIGITS, DIGITS_OF_NUMERIC)
}

const DIVIDING: ReadonlySet<string> = new Set(['mod', 'div', 'lcm'])

/** True if a function takes as long as dividing its first two arguments. */
export function divides({ name }: Pick<FunctionCall, 'name'>): boolean {
  return DIVIDING.has(name)
}

/** The longest product without overflow takes a tenth of a second (PostgreSQL 18, 65 500 digits each). */
const FULL_PRODUCT = (DIGITS_OF_NUMERIC / 2) ** 2

/** The cost of multiplying or dividing numbers with this many digits, in units of the longest product. */
export function productsOf(left: number, right: number): number {
  return Math.min(1, (left * right) / FULL_PRODUCT)
}
