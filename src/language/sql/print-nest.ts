/**
 * Nested rows: a subquery in the select list that makes PostgreSQL write their JSON. The subquery is correlated, so it follows an index and
 * runs once per row that is really returned; measured against lateral joins it is never slower and keeps the plan of the outer query.
 */

import type { Comparison, Get, Nest } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'
import { keyByName, type Side } from '../tree/relation-name.ts'
import type { Scope } from '../tree/scope.ts'
import type { Printer } from './printer.ts'
import { quoteIdentifier } from './quote.ts'

/** The column of the answer that holds the nested rows. */
export function nestName(nest: Nest): string {
  return nest.name ?? nest.alias ?? nest.table.name
}

/** One column: the related row as an object or null, or the rows as an array that may be empty. */
export function printNest(nest: Nest, scope: Scope, printer: Printer): string {
  const rows = printer.query(nestQuery(nest, scope), scope)
  const name = quoteIdentifier(nestName(nest))
  // `n.*` and not `n`: a column of the nested table may be called n. Inside the parentheses n is not in scope and hides nothing.
  if (nest.many) return `(SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (${rows}) AS n) AS ${name}`
  return `(SELECT row_to_json(n.*) FROM (${rows}${onlyFirst(nest)}) AS n) AS ${name}`
}

/** The rows of a nest as a read of their own, which sees the scope around it. */
export function nestQuery(nest: Nest, scope: Scope): Get {
  const on = nest.on ?? nestKey(nest, scope)
  return {
    kind: 'get',
    purpose: 'rows',
    with: null,
    distinct: null,
    source: { kind: 'table source', table: nest.table, alias: nest.alias, condition: on, span: nest.span },
    joins: [],
    nests: nest.nests,
    fields: nest.fields,
    where: nest.where,
    groupBy: [],
    having: null,
    windows: [],
    compounds: [],
    orderBy: nest.orderBy,
    limit: nest.many ? nest.limit : null,
    offset: nest.offset,
    lock: null,
    span: nest.span,
  }
}

/**
 * With an order or offset "a related row" means the first. Without, several rows are an error of PostgreSQL (21000) rather than a row picked by
 * chance, and the plan is spared a node.
 */
function onlyFirst(nest: Nest): string {
  if (nest.limit !== null && !(nest.limit.kind === 'literal' && nest.limit.value === '1')) {
    throw new LanguageError(`nest ${nestName(nest)} is one row; write "nest many" for more`, nest.limit.span)
  }
  return nest.limit !== null || nest.orderBy.length > 0 || nest.offset !== null ? ' LIMIT 1' : ''
}

/** Without `on` and without a catalogue the names decide: one row is what we point to, many rows point to us. */
export function nestKey(nest: Nest, scope: Scope): Comparison {
  const parent = scope.relations[0]
  if (parent === undefined) throw new LanguageError(`nest ${nestName(nest)} has no row to belong to`, nest.span)
  const outside: Side = { table: parent.table?.name ?? parent.name, alias: parent.name }
  const inside: Side = { table: nest.table.name, alias: nest.alias ?? nest.table.name }
  return nest.many ? keyByName(inside, outside) : keyByName(outside, inside)
}
