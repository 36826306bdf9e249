/** Prints the row images of a write: the operation, and the row as JSON after and before it. */

import type { Add, Del, Expression, Get, Set as SetStatement } from '../tree/ast.ts'
import { type NameScope, targetName } from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import type { Printer } from './printer.ts'
import { quoteIdentifier, quoteLiteral } from './quote.ts'

/**
 * Where the row before the write comes from: the target of a deletion, `old` of PostgreSQL 18, or a joined
 * relation with the same columns.
 */
export type RowBefore = 'target' | 'old' | 'none' | { readonly relation: string }

/** What to report for each written row. */
export interface RowImages {
  /** The name of the operation, or two names if it differs by row. */
  readonly operation: string | { readonly created: Expression; readonly inserted: string; readonly updated: string }
  /** The row after the write; `none` for a deletion. */
  readonly after: 'target' | 'none'
  /** The row before the write, or a query that finds it. */
  readonly before: RowBefore | { readonly query: Get }
}

/** Prints the expressions of the row images. */
export function printRowImages(
  write: Add | SetStatement | Del,
  { operation, after, before }: RowImages,
  scope: NameScope,
  printer: Printer,
): Readonly<Record<'operation' | 'after' | 'before', string>> {
  const print = (expression: Expression) => printer.expression(expression, scope, LEVEL.any)
  return {
    operation:
      typeof operation === 'string'
        ? quoteLiteral(operation)
        : `CASE WHEN ${print(operation.created)} THEN ${quoteLiteral(operation.inserted)} ` +
          `ELSE ${quoteLiteral(operation.updated)} END`,
    after: after === 'none' ? 'NULL' : rowImage(targetName(write)),
    before: printBefore(),
  }

  function printBefore(): string {
    if (before === 'none') return 'NULL'
    if (typeof before === 'string' || 'relation' in before) return rowImage(relationBefore(before, write))
    return `(SELECT ${rowImage('r')} FROM (${printer.query(before.query, scope)}) AS r)`
  }
}

/** The relation that holds the row before the write. */
export function relationBefore(before: Exclude<RowBefore, 'none'>, write: Add | SetStatement | Del): string {
  if (typeof before === 'object') return before.relation
  return before === 'old' ? 'old' : targetName(write)
}

/** The row as JSON text. */
export function rowImage(relation: string): string {
  return `row_to_json(${quoteIdentifier(relation)}.*)::text`
}
