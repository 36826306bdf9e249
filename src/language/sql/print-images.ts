/** What a write did to a row, in SQL: a word for it, and all of the row as JSON, after and before. */

import type { Add, Del, Expression, Get, Set as SetStatement } from '../tree/ast.ts'
import { type Scope, targetName } from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import type { Printer } from './printer.ts'
import { quoteIdentifier, quoteLiteral } from './quote.ts'

/** The row as the write found it: the target of a deletion, `old` of PostgreSQL 18, or what the write is joined with and has the same columns. */
export type RowBefore = 'target' | 'old' | 'none' | { readonly relation: string }

/** What happened to each row that is written. */
export interface Images {
  /** A word, or one of two where that differs by row. */
  readonly happened: string | { readonly created: Expression; readonly inserted: string; readonly updated: string }
  /** The row as the write leaves it; there is none after a deletion. */
  readonly after: 'target' | 'none'
  /** Or what a query finds, when the write looks. */
  readonly before: RowBefore | { readonly query: Get }
}

export function printImages(
  write: Add | SetStatement | Del,
  { happened, after, before }: Images,
  scope: Scope,
  printer: Printer,
  type: 'text' | 'json' = 'text',
): Readonly<Record<'happened' | 'after' | 'before', string>> {
  const none = type === 'text' ? 'NULL' : NO_IMAGE
  const print = (expression: Expression) => printer.expression(expression, scope, LEVEL.any)
  return {
    happened:
      typeof happened === 'string'
        ? quoteLiteral(happened)
        : `CASE WHEN ${print(happened.created)} THEN ${quoteLiteral(happened.inserted)} ELSE ${quoteLiteral(happened.updated)} END`,
    after: after === 'none' ? none : imageOf(targetName(write), type),
    before: printBefore(),
  }

  function printBefore(): string {
    if (before === 'none') return none
    if (typeof before === 'string' || 'relation' in before) return imageOf(relationOf(before, write), type)
    return `(SELECT ${imageOf('r', type)} FROM (${printer.query(before.query, scope)}) AS r)`
  }
}

/** Among others of a UNION it has no type of its own. */
export const NO_IMAGE = 'NULL::json'

export function relationOf(before: Exclude<RowBefore, 'none'>, write: Add | SetStatement | Del): string {
  if (typeof before === 'object') return before.relation
  return before === 'old' ? 'old' : targetName(write)
}

/** An answer is text; what is written down is JSON and need not be read again. */
export function imageOf(relation: string, type: 'text' | 'json' = 'text'): string {
  return `row_to_json(${quoteIdentifier(relation)}.*)${type === 'text' ? '::text' : ''}`
}
