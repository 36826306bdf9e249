/**
 * The copies of large values that a statement makes for one row. PostgreSQL keeps each intermediate result
 * until the row is complete and checks no timeout before then: `a || a || …` with 120 mentions of a megabyte
 * needs 7 GB. Neither the values nor their sizes are known when the statement is checked, so the tally counts
 * how many of them operators and functions read (`max_copied_values`).
 */
import type { Expression } from '../language/tree/ast.ts'
import { childrenOf } from '../language/tree/children.ts'
import { isNarrow } from './narrow.ts'
import type { TypedField } from './scope.ts'
import type { Tally } from './tally.ts'
import type { Typed } from './typed.ts'
import { baseOf } from './types.ts'

/** Expressions that read the values of their operands: decompressed, converted or joined. */
const COPYING: ReadonlySet<Expression['kind']> = new Set<Expression['kind']>([
  ...(['arithmetic', 'comparison', 'distinct from', 'pattern', 'between', 'in', 'cast', 'json test'] as const),
  ...(['json step', 'patch', 'array', 'row'] as const),
])

/** These return one of their arguments. */
const PASSING: ReadonlySet<string> = new Set(['coalesce', 'nullif', 'greatest', 'least'])

/** These work with four bytes for each character. */
const WIDENING = /^(?:upper|lower|initcap|casefold|normalize|regexp_.*)$/

/** These escape characters, or build a document twice. */
const DOUBLING = /json|^(?:quote_.*|encode)$/

/** How many copies of its operands PostgreSQL makes to compute the expression. */
export function copiesBy(expression: Expression): number {
  // The condition of `search` mentions each text column once, and a table can have 1 600 of them.
  if ('searches' in expression && expression.searches === true) return 0
  if (expression.kind !== 'function') return COPYING.has(expression.kind) ? 1 : 0
  const name = expression.name.toLowerCase()
  if (PASSING.has(name)) return 0
  return WIDENING.test(name) ? 4 : DOUBLING.test(name) ? 2 : 1
}

/** Reports whether no value of a stored column has more than a few kilobytes. */
export function isSmall(column: Typed): boolean {
  const [, length] = /^character(?: varying)?\((\d+)\)$/.exec(column.typeName ?? '') ?? []
  if (length !== undefined) return Number(length) <= SMALL_CHARACTERS
  return isNarrow(column) || (column.type !== null && baseOf(column.type).name === 'numeric')
}

const SMALL_CHARACTERS = 1_000

/** The copies of a value in the row that is sent: in the row, its text form, and the message. */
const SENT_COPIES = 4

/** Counts the columns that more than one field of the result contains: each makes the row longer. */
export function countRepeated(fields: readonly (TypedField | null)[], tally: Tally): void {
  const seen = new Set<string>()
  for (const each of fields) {
    if (each === null || (each.growth?.mentions ?? 0) === 0) continue
    for (const path of columnsIn(each.field.expression)) {
      if (seen.has(path)) tally.addCopies(SENT_COPIES, each.field.span)
      seen.add(path)
    }
  }
}

function columnsIn(expression: Expression): readonly string[] {
  if (expression.kind === 'column') return [expression.path.join('.')]
  return [...new Set(childrenOf(expression).flatMap(columnsIn))]
}
