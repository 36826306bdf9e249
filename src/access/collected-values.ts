/**
 * A bound on what the aggregates of one transaction collect: `array_agg(repeat('x', 1000000))` over 2 000
 * rows needs gigabytes in the database, although each value is small enough.
 * Neither the number of rows nor the size of their values is known in advance, so the statement counts the
 * bytes while it runs, in a setting of the transaction, and fails beyond the limit. Counting costs more than
 * collecting a small value. Therefore a row is counted with a probability of its size divided by
 * `STEP_BYTES`, and then as that many bytes; the total is right within a few per cent.
 */
import type { Expression, FunctionCall } from '../language/tree/ast.ts'
import { arithmetic, call, caseWhen, cast, compare, integer, literal, text } from '../language/tree/build.ts'
import { containsAggregate } from '../language/tree/functions.ts'
import { type BuiltArgument, builtinCall, byteLength, COLLECTION_GUARD, failure, textBytes } from './guard.ts'
import { isNarrow, NARROW_BYTES } from './narrow.ts'
import { isParameter } from './parameters.ts'
import type { Tally } from './tally.ts'

/** The aggregates whose result contains all of their values (PostgreSQL manual, 9.21). */
const COLLECTING: ReadonlySet<string> = new Set([
  ...['array_agg', 'string_agg', 'xmlagg', 'range_agg', 'json_agg', 'json_agg_strict', 'jsonb_agg'],
  ...['jsonb_agg_strict', 'json_object_agg', 'json_object_agg_strict', 'json_object_agg_unique'],
  ...['json_object_agg_unique_strict', 'jsonb_object_agg', 'jsonb_object_agg_strict', 'jsonb_object_agg_unique'],
  'jsonb_object_agg_unique_strict',
])

/** The setting that counts. Its value ends with the transaction. */
const COUNTER = 'svc.collected_bytes'

/** A smaller value is counted in some rows only. The default limit is reached after 4 096 counted rows. */
const STEP_BYTES = 16_384

/** The result of an aggregate counts as this many values where another expression reads it (copies.ts). */
const COLLECTED_MENTIONS = 32

/** How many values the result counts as; 0 if the checked expression is not a call of such an aggregate. */
export function collectedMentions(expression: Expression): number {
  if (expression.kind !== 'function' || expression.schema !== 'pg_catalog') return 0
  return COLLECTING.has(expression.name) ? COLLECTED_MENTIONS : 0
}

/** The memory that an aggregate uses for a value in addition to its bytes. */
const ELEMENT_BYTES = 32

/** The call of PostgreSQL's own function, with its collected values counted. */
export function boundedCollection(checked: FunctionCall, args: readonly BuiltArgument[], tally: Tally): FunctionCall {
  const { maxCollectedBytes: max } = tally.limits
  if (max === 0 || !COLLECTING.has(checked.name)) return checked
  const isJson = checked.name.startsWith('json')
  let known = ELEMENT_BYTES
  let size: Expression | null = null
  for (const argument of args) {
    const bytes = knownBytes(argument)
    if (bytes !== null) known += bytes
    else {
      // Both conditions below mention the size.
      tally.add(argument.growth, checked.span)
      tally.add(argument.growth, checked.span)
      const one = call('coalesce', [byteLength(textOf(argument, isJson)), integer('0')])
      size = size === null ? one : arithmetic('+', size, one)
    }
  }
  const bytes = size === null ? cast(integer(String(known)), 'int8') : arithmetic('+', size, integer(String(known)))
  const guard = counted(bytes, max)
  // A window function has no DISTINCT, and a FILTER cannot contain aggregates.
  if (checked.over !== null && checked.arguments.some(containsAggregate)) {
    const [first, ...others] = checked.arguments
    return first === undefined ? checked : { ...checked, arguments: [caseWhen(guard, first, null), ...others] }
  }
  const { filter } = checked
  return { ...checked, filter: filter === null ? guard : caseWhen(filter, guard, literal('boolean', 'false')) }
}

/** True, or a failure if all values counted so far have more than `max` bytes. */
function counted(bytes: Expression, max: number): Expression {
  const random = call('random', [], { schema: 'pg_catalog', guards: true })
  const step = integer(String(STEP_BYTES))
  const isSkipped = compare('>=', arithmetic('*', random, step), bytes)
  const before = builtinCall('current_setting', [text(COUNTER), literal('boolean', 'true')])
  const known = cast(call('coalesce', [call('nullif', [before, text('')]), text('0')]), 'int8')
  const total = cast(arithmetic('+', known, builtinCall('greatest', [bytes, step])), 'text')
  const now = cast(builtinCall('set_config', [text(COUNTER), total, literal('boolean', 'true')]), 'int8')
  const yes = literal('boolean', 'true')
  const isWithin = compare('<=', now, integer(String(max)))
  return caseWhen(isSkipped, yes, caseWhen(isWithin, yes, failure(COLLECTION_GUARD, [random])))
}

/** The size of a value that no row can exceed; null if it is unknown. */
function knownBytes(argument: BuiltArgument): number | null {
  const { expression } = argument
  if (expression.kind === 'literal') return textBytes(expression) ?? NARROW_BYTES + expression.value.length
  return !isParameter(expression) && isNarrow(argument) ? NARROW_BYTES : null
}

/** A text as long as the value: JSON escapes characters. */
function textOf({ expression, typeName }: BuiltArgument, isJson: boolean): Expression {
  if (!isJson || isParameter(expression) || typeName === 'json') return cast(expression, 'text')
  return cast(builtinCall('to_json', [expression]), 'text')
}
