/** A bound on the rows of `generate_series`. */
import type { Expression, FunctionCall } from '../language/tree/ast.ts'
import { arithmetic, cast, compare, integer, text } from '../language/tree/build.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import { SQL_NAMES, typeSet } from '../types/builtin.ts'
import { type BuiltArgument, builtinCall, guarded, integerOf, plain } from './guard.ts'
import { isParameter } from './parameters.ts'
import { limitExceeded, NO_GROWTH, sumOf, type Tally } from './tally.ts'
import { baseOf } from './types.ts'

/**
 * A series of numbers, or of timestamps with an interval. The guarded argument has a definite type;
 * otherwise the CASE around it would be a text.
 */
export function seriesIn({ span }: FunctionCall, args: readonly BuiltArgument[], tally: Tally): readonly Expression[] {
  const [start, stop, step, ...zone] = args
  const { maxSeriesRows: max } = tally.limits
  if (start === undefined || stop === undefined || max === 0) return plain(args)
  const numbers = [start, stop, ...(step === undefined ? [] : [step])].map(({ expression }) => integerOf(expression))
  const [first = null, last = null, by = 1] = numbers
  if (first !== null && last !== null && by !== null) {
    const rows = by === 0 ? 0 : Math.floor((last - first) / by) + 1
    if (rows <= max) return plain(args)
    throw limitExceeded(
      `"generate_series" would make ${rows} rows, more than the ${max} of ${LIMIT_NAMES.maxSeriesRows}; request fewer`,
      span,
      'maxSeriesRows',
    )
  }
  tally.add(sumOf(sumOf(start.growth, stop.growth), step?.growth ?? NO_GROWTH), span)
  const kind = step === undefined ? 'numbers' : kindOf([step, start, stop])
  if (kind === null) {
    throw limitExceeded(
      'the types of the arguments of "generate_series" are unknown, so its rows cannot be bounded ' +
        `(${LIMIT_NAMES.maxSeriesRows}); cast the last argument, as in (…)::interval or (…)::int`,
      span,
      'maxSeriesRows',
    )
  }
  const limit = integer(String(max))
  if (kind === 'numbers') {
    const [from, to] = [start, stop].map(argument => cast(argument.expression, 'numeric'))
    const each = step === undefined ? integer('1') : cast(step.expression, 'numeric')
    if (from === undefined || to === undefined) return plain(args)
    const range = arithmetic('*', arithmetic('-', to, from), builtinCall('sign', [cast(each, 'numeric')]))
    const tooLarge = compare('>', range, arithmetic('*', builtinCall('abs', [each]), limit))
    const value = isParameter(stop.expression) ? cast(stop.expression, 'numeric') : stop.expression
    return [
      start.expression,
      guarded('generate_series', value, tooLarge, [from, to, each]),
      ...rest(step),
      ...plain(zone),
    ]
  }
  const [from, to] = [start, stop].map(argument => cast(argument.expression, 'timestamptz'))
  if (from === undefined || to === undefined || step === undefined) return plain(args)
  const each = cast(step.expression, 'interval')
  const seconds = builtinCall('date_part', [text('epoch'), each])
  const range = builtinCall('date_part', [text('epoch'), arithmetic('-', to, from)])
  const tooLarge = compare(
    '>',
    arithmetic('*', range, builtinCall('sign', [seconds])),
    arithmetic('*', builtinCall('abs', [seconds]), limit),
  )
  return [
    start.expression,
    stop.expression,
    guarded('generate_series', each, tooLarge, [from, to, each]),
    ...plain(zone),
  ]
}

function rest(step: BuiltArgument | undefined): readonly Expression[] {
  return step === undefined ? [] : [step.expression]
}

const MOMENTS = typeSet('date', 'timestamp', 'timestamptz', 'interval')
const NUMBERS = typeSet('int2', 'int4', 'int8', 'numeric')

/** The kind of series, from the first argument whose type is known. */
function kindOf(args: readonly BuiltArgument[]): 'numbers' | 'moments' | null {
  for (const { expression, type, typeName } of args) {
    if (expression.kind === 'literal') {
      if (expression.type === 'integer' || expression.type === 'decimal') return 'numbers'
      if (expression.type === 'duration' || expression.type === 'text') return 'moments'
    }
    if (integerOf(expression) !== null) return 'numbers'
    const name = type === null ? (typeName ?? '') : baseOf(type).name
    if (MOMENTS.has(name)) return 'moments'
    if (NUMBERS.has(SQL_NAMES.get(name) ?? name)) return 'numbers'
    if (isParameter(expression) && name === 'text') return 'moments'
  }
  return null
}
