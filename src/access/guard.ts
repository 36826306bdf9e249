/**
 * Conditions on the size of a call's result, evaluated by PostgreSQL before it builds the result. A failure
 * is a failed cast of a text that begins with `TOO_LARGE`, which `run/errors` recognizes.
 */
import type { Expression, Literal } from '../language/tree/ast.ts'
import { arithmetic, call, caseWhen, cast, compare, integer, literal, text } from '../language/tree/build.ts'
import { isParameter } from './parameters.ts'
import type { Growth, Tally } from './tally.ts'
import type { Typed } from './typed.ts'

/** Random, so that no caller's value can contain it. */
export const TOO_LARGE: string = `${crypto.randomUUID()} `

/** The name that a guard of a pattern reports. */
export const PATTERN_GUARD = 'like'

/** The name in the failure of a guard of compared arrays. */
export const CONTAINMENT_GUARD = 'containment'

/** The name in the failure of a guard of collected values. */
export const COLLECTION_GUARD = 'collection'

/** A checked argument of a function whose result can be large. */
export interface BuiltArgument extends Typed {
  /** The size that the argument adds to the statement: a guard evaluates it a second time. */
  readonly growth: Growth
}

/** The expressions of the arguments. */
export function plain(args: readonly BuiltArgument[]): readonly Expression[] {
  return args.map(({ expression }) => expression)
}

/** The integer that a literal denotes; null if the expression is not an integer literal. */
export function integerOf(expression: Expression): number | null {
  if (expression.kind === 'negate') {
    const operand = integerOf(expression.operand)
    return operand === null ? null : -operand
  }
  return expression.kind === 'literal' && (expression.type === 'integer' || expression.type === 'decimal')
    ? Number(expression.value)
    : null
}

const encoder = new TextEncoder()

/** The length of a literal text in bytes; null if the expression is not a literal. */
export function textBytes(expression: Expression): number | null {
  return expression.kind === 'literal' && expression.type === 'text' ? encoder.encode(expression.value).length : null
}

/** PostgreSQL types a parameter by its first use, so all uses in a guard have the same cast. */
export function asType({ expression }: Typed, type: 'text' | 'int4'): Expression {
  return isParameter(expression) || isNull(expression) ? cast(expression, type) : expression
}

function isNull(expression: Expression): expression is Literal {
  return expression.kind === 'literal' && expression.type === 'null'
}

/** A call qualified with `pg_catalog`, which the caller's schemas cannot hide. */
export function builtinCall(name: string, args: readonly Expression[]): Expression {
  return name === 'greatest' ? call(name, args) : call(name, args, { schema: 'pg_catalog' })
}

/** A call that computes the length of a text in bytes. */
export function byteLength(value: Expression): Expression {
  return cast(builtinCall('octet_length', [value]), 'int8')
}

/** The product of two expressions in `float8`, which cannot overflow for sizes. */
export function times8(a: Expression, b: Expression): Expression {
  return arithmetic('*', cast(a, 'int8'), b)
}

/**
 * `value`, or a failure that names `name`. The failure depends on the operands of the condition, so
 * PostgreSQL cannot evaluate it in advance.
 */
export function guarded(name: string, value: Expression, tooLarge: Expression, of: readonly Expression[]): Expression {
  return caseWhen(caseWhen(tooLarge, failure(name, of), literal('boolean', 'true')), value, null)
}

/** A condition that always fails, with `name` in the message. */
export function failure(name: string, of: readonly Expression[]): Expression {
  return cast(builtinCall('concat', [text(`${TOO_LARGE}${name} `), builtinCall('num_nulls', of)]), 'bool')
}

/** A value of a recursive query, which can grow in each iteration: fails if it becomes too large. */
export function boundedTurn(value: Expression, { limits }: Tally): Expression {
  if (limits.maxBuiltValueBytes === 0) return value
  const size = builtinCall('octet_length', [cast(value, 'text')])
  return guarded('with recursive', value, compare('>', size, integer(String(limits.maxBuiltValueBytes))), [value])
}
