/**
 * Prints the operator table in `docs/reference/reading.md`. Its test compares the two and rewrites the page
 * with `-u`.
 */
import { OPERAND_OF, type Operator } from './operators.ts'

/** An example of one operator on the demo data. */
export interface OperatorExample {
  readonly operator: Operator
  readonly meaning: string
  /** A table of the demo. */
  readonly table: string
  /** The condition in value style; `keyStyle` is the same condition. */
  readonly valueStyle: string
  readonly keyStyle: string
}

type About = readonly [meaning: string, table: string, column: string, operand: string]

/**
 * The description of every operator; the type makes a missing one a compile error. List operands are written
 * without parentheses.
 */
const ABOUT: Readonly<Record<Operator, About>> = {
  eq: ['equal; the default if no operator is given', 'orders', 'status', 'paid'],
  ne: ['not equal', 'orders', 'status', 'paid'],
  neq: ['the same as `ne`', 'orders', 'status', 'paid'],
  gt: ['greater', 'orders', 'total', '100'],
  gte: ['greater or equal', 'orders', 'placed_at', '2026-01-01'],
  lt: ['less', 'orders', 'total', '100'],
  lte: ['less or equal', 'products', 'stock', '10'],
  in: ['one of; elements with commas go in double quotes: `in.("a,b",c)`', 'orders', 'status', 'paid,shipped'],
  not_in: ['none of', 'orders', 'status', 'draft,cancelled'],
  like: [
    'pattern: `*` matches any text, `_` one character; a backslash makes the next one literal',
    'products',
    'name',
    '*Steel*',
  ],
  ilike: ['the same, case-insensitive', 'products', 'name', '*rack*'],
  not_like: ['no match of the pattern', 'products', 'name', 'Light*'],
  not_ilike: ['the same, case-insensitive', 'products', 'name', '*RACK*'],
  is_null: ['NULL; with `false` not NULL', 'orders', 'approved_by', 'true'],
  is_not_null: ['not NULL; with `false` NULL', 'orders', 'approved_by', 'true'],
  is_distinct: ['not equal, with NULL treated as a value', 'orders', 'notes', 'Leave at the back door.'],
  contains: ['has all of: arrays (`a`, `(a,b)` or `{a,b}`), ranges, JSON', 'customers', 'labels', '(vip,late-payer)'],
  contained: ['has only values of: arrays, ranges, JSON', 'customers', 'labels', '(vip,late-payer)'],
  overlaps: ['has any of: arrays, ranges', 'customers', 'labels', '(vip,late-payer)'],
  match: ['regular expression of PostgreSQL; for an `ltree`, an `lquery`', 'products', 'name', '^Light'],
  imatch: ['the same, case-insensitive', 'products', 'name', '^light'],
  fts: ['words of a web search in one column', 'products', 'search_vector', 'steel -rack'],
}

/** One example for each operator. */
export const OPERATOR_EXAMPLES: readonly OperatorExample[] = Object.entries(ABOUT).map(([name, about]) => {
  const operator = name as Operator
  const [meaning, table, column, operand] = about
  return {
    ...{ operator, meaning, table },
    valueStyle: `${column}=${inValueStyle(operator, operand)}`,
    keyStyle: `${column}.${operator}=${operand}`,
  }
})

function inValueStyle(operator: Operator, operand: string): string {
  switch (OPERAND_OF[operator]) {
    case 'flag':
      return operator
    case 'list':
      return `${operator}.(${operand})`
    case 'value':
      return `${operator}.${operand}`
  }
}

/** Prints the table. */
export function printOperators(): string {
  const rows = OPERATOR_EXAMPLES.map(
    ({ operator, meaning, valueStyle, keyStyle }) =>
      `| \`${operator}\` | ${meaning} | \`${valueStyle}\` | \`${keyStyle}\` |`,
  )
  return `| Operator | Meaning | Value-style | Key-style |\n|---|---|---|---|\n${rows.join('\n')}\n`
}
