/**
 * The filter operators by their names in a query string. The table in docs/reference/reading.md#filters is
 * printed from this one.
 */

/** The operand of an operator: one value, a list, or an optional flag. */
export type Operand = 'value' | 'list' | 'flag'

const OPERANDS = {
  eq: 'value',
  ne: 'value',
  neq: 'value',
  gt: 'value',
  gte: 'value',
  lt: 'value',
  lte: 'value',
  in: 'list',
  not_in: 'list',
  like: 'value',
  ilike: 'value',
  not_like: 'value',
  not_ilike: 'value',
  is_null: 'flag',
  is_not_null: 'flag',
  is_distinct: 'value',
  contains: 'value',
  contained: 'value',
  overlaps: 'value',
  match: 'value',
  imatch: 'value',
  fts: 'value',
} as const

/** The name of an operator. */
export type Operator = keyof typeof OPERANDS

/** The kind of operand of each operator. */
export const OPERAND_OF: Readonly<Record<Operator, Operand>> = OPERANDS

const OPERATORS: ReadonlyMap<string, Operator> = new Map(
  Object.keys(OPERANDS).map(name => [name, name as Operator] as const),
)

/** The operator with this name; otherwise undefined. */
export function operatorNamed(name: string): Operator | undefined {
  return OPERATORS.get(name)
}
