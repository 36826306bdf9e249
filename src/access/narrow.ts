/** Values whose size is bounded, whatever is stored: numbers, times, and the results of conditions. */
import type { Expression } from '../language/tree/ast.ts'
import { SQL_NAMES, typeSet } from '../types/builtin.ts'
import { isCounting } from './digits.ts'
import type { Typed } from './typed.ts'
import { baseOf } from './types.ts'

/** The maximum size of a value of one of the types below. */
export const NARROW_BYTES = 16

const NARROW = typeSet(
  ...(['bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'money', 'oid', 'uuid', 'date', 'time'] as const),
  ...(['timetz', 'timestamp', 'timestamptz', 'interval', 'macaddr', 'macaddr8', 'point'] as const),
)

const CONDITIONS: ReadonlySet<Expression['kind']> = new Set<Expression['kind']>([
  ...(['and', 'or', 'not', 'comparison', 'distinct from', 'pattern', 'is', 'between', 'in', 'exists'] as const),
  'json test',
])

/** Reports whether no value of the expression has more than `NARROW_BYTES`. */
export function isNarrow({ expression, type, typeName }: Typed): boolean {
  if (CONDITIONS.has(expression.kind)) return true
  if (expression.kind === 'function') return isCounting(expression)
  if (type !== null && baseOf(type).schema !== 'pg_catalog') return baseOf(type).kind === 'enum'
  const name = type === null ? (typeName ?? '') : baseOf(type).name
  return NARROW.has(SQL_NAMES.get(name) ?? name)
}
