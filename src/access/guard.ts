/**
 * Conditions on the size of what a call builds, computed by PostgreSQL before it builds it.
 *
 * A failure is a cast of a text that begins with `TOO_LARGE`, by which `run/errors` knows it.
 */
import type { Expression, Literal } from '../language/tree/ast.ts'
import { arithmetic, call, caseWhen, cast, compare, integer, literal, text } from '../language/tree/build.ts'
import { isParameter } from './parameters.ts'
import type { Growth, Tally } from './tally.ts'
import type { Typed } from './typed.ts'

/** Random, so that no value of a caller can contain it. */
export const TOO_LARGE: string = `${crypto.randomUUID()} `

/** What a guard of a pattern says that it is. */
export const PATTERN_GUARD = 'like'

export interface BuiltArgument extends Typed {
  /** What the argument itself adds to the statement: a guard evaluates it a second time. */
  readonly growth: Growth
}

export function plain(args: readonly BuiltArgument[]): readonly Expression[] {
  return args.map(({ expression }) => expression)
}

/** Null: not a literal. */
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

export function textBytes(expression: Expression): number | null {
  return expression.kind === 'literal' && expression.type === 'text' ? encoder.encode(expression.value).length : null
}

/** PostgreSQL types a parameter by its first use, so all uses in a guard get the same cast. */
export function asType({ expression }: Typed, type: 'text' | 'int4'): Expression {
  return isParameter(expression) || isNull(expression) ? cast(expression, type) : expression
}

function isNull(expression: Expression): expression is Literal {
  return expression.kind === 'literal' && expression.type === 'null'
}

/** Names that the caller's schemas cannot hide. */
export function own(name: string, args: readonly Expression[]): Expression {
  return name === 'greatest' ? call(name, args) : call(name, args, { schema: 'pg_catalog' })
}

export function bytesOf(value: Expression): Expression {
  return cast(own('octet_length', [value]), 'int8')
}

export function times8(a: Expression, b: Expression): Expression {
  return arithmetic('*', cast(a, 'int8'), b)
}

/**
 * `value`, or a failure that names `name`. It depends on what the condition depends on, so PostgreSQL cannot
 * compute it in advance.
 */
export function guarded(name: string, value: Expression, tooLarge: Expression, of: readonly Expression[]): Expression {
  const failure = cast(own('concat', [text(`${TOO_LARGE}${name} `), own('num_nulls', of)]), 'bool')
  return caseWhen(caseWhen(tooLarge, failure, literal('boolean', 'true')), value, null)
}

/** A value of a recursive query, which grows with each turn: a failure where it is too large. */
export function boundedTurn(value: Expression, { limits }: Tally): Expression {
  if (limits.maxBuiltValueBytes === 0) return value
  const size = own('octet_length', [cast(value, 'text')])
  return guarded('with recursive', value, compare('>', size, integer(String(limits.maxBuiltValueBytes))), [value])
}
