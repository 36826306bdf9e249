/**
 * The bound on the operands of `@>`, `<@`, `&&`, `?|` and `?&`. PostgreSQL compares each element of one array
 * with every element of the other without checking a timeout, and does the same to the arrays of JSON: 2 000
 * elements and a column of 200 000 take seconds.
 *
 * Columns have no bound. The elements of other operands are counted: literals when the statement is checked,
 * parameters when they are bound, and computed values by the statement itself. PostgreSQL removes the
 * condition around a constant when it plans the statement, so an index can serve the operator.
 */
import type { Expression, Parameter } from '../language/tree/ast.ts'
import { call, cast, compare, integer, text } from '../language/tree/build.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import { builtinCall, CONTAINMENT_GUARD, guarded } from './guard.ts'
import { isParameter, type ParameterUse } from './parameters.ts'
import { type Growth, limitExceeded, type Tally } from './tally.ts'

/** An operand after its check and as the query contains it. */
export interface ContainedOperand {
  readonly checked: Expression
  readonly written: Expression
  /** Its contribution to the size of the statement: a guard evaluates it a second time. */
  readonly growth: Growth
}

/** The check that an operand is part of. */
export interface ContainmentCheck {
  readonly tally: Tally
  /** Reports whether the expression is a column or a part of a column. */
  isStored(written: Expression): boolean
  /** Called for each parameter whose elements must be counted when it is bound. */
  onParameter(parameter: Parameter): void
}

/** Returns the checked operand, in a guard if it is computed. */
export function boundedElements({ checked, written, growth }: ContainedOperand, check: ContainmentCheck): Expression {
  const { tally } = check
  const { maxContainedElements: max } = tally.limits
  if (max === 0 || isCounted(checked, written, check)) return checked
  tally.add(growth, checked.span)
  const items = call('string_to_array', [cast(checked, 'text'), text(',')], { schema: 'pg_catalog' })
  const tooMany = compare('>', builtinCall('cardinality', [items]), integer(String(max)))
  return guarded(CONTAINMENT_GUARD, checked, tooMany, [checked])
}

/** Reports whether the operand consists of columns, literals and parameters. */
function isCounted(checked: Expression, written: Expression, check: ContainmentCheck): boolean {
  const { maxContainedElements: max } = check.tally.limits
  if (isParameter(checked)) {
    check.onParameter(checked)
    return true
  }
  if (check.isStored(written)) return true
  const all = (parts: readonly Expression[], of: readonly Expression[]) =>
    parts.every((part, index) => isCounted(part, of[index] ?? part, check))
  switch (checked.kind) {
    case 'cast':
      return isCounted(checked.operand, written.kind === 'cast' ? written.operand : written, check)
    case 'literal':
      if (hasMoreElements(checked.value, max)) throw tooManyElements(max, checked)
      return true
    case 'array':
      if (checked.items.length > max) throw tooManyElements(max, checked)
      return all(checked.items, written.kind === 'array' ? written.items : [])
    case 'function':
      // Its result is one of its arguments.
      if (checked.name !== 'coalesce' || written.kind !== 'function') return false
      return all(checked.arguments, written.arguments)
    default:
      return false
  }
}

/**
 * Reports whether an array in PostgreSQL's text form, or a JSON text, has more than `max` values at all
 * depths together. Stops reading as soon as that is certain.
 */
export function hasMoreElements(value: string | Buffer, max: number): boolean {
  let count = 1
  let isQuoted = false
  for (let at = 0; at < value.length; at += 1) {
    const code = typeof value === 'string' ? value.charCodeAt(at) : value[at]
    if (code === BACKSLASH) at += 1
    else if (code === QUOTE) isQuoted = !isQuoted
    else if (code === COMMA && !isQuoted) {
      count += 1
      if (count > max) return true
    }
  }
  return false
}

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c

/** Rejects values with more elements than the statement can compare. */
export function assertElements(
  parameters: readonly ({ readonly use: ParameterUse } | { readonly literal: string })[],
  values: readonly unknown[],
): void {
  for (const [index, parameter] of parameters.entries()) {
    const max = 'use' in parameter ? parameter.use.containedMax : undefined
    const value = values[index]
    if (max === undefined || (typeof value !== 'string' && !Buffer.isBuffer(value))) continue
    if (hasMoreElements(value, max)) throw tooManyElements(max)
  }
}

function tooManyElements(max: number, at?: Expression): Error {
  return limitExceeded(
    `an operand of @>, <@, &&, ?| or ?& has more than ${max} elements ` +
      `(${LIMIT_NAMES.maxContainedElements}); use fewer`,
    at?.span,
    'maxContainedElements',
  )
}
