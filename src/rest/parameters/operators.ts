/** The filter operators by the names they have in a query string (docs/reference/reading.md#filters is written from this table). */

/** What stands after the operator: one value, a list, or a flag that may be left out. */
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

export type Operator = keyof typeof OPERANDS

export const OPERAND_OF: Readonly<Record<Operator, Operand>> = OPERANDS

const OPERATORS: ReadonlyMap<string, Operator> = new Map(
  Object.keys(OPERANDS).map(name => [name, name as Operator] as const),
)

export function operatorNamed(name: string): Operator | undefined {
  return OPERATORS.get(name)
}
