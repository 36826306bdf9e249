/**
 * Prints nested rows: a correlated subquery in the select list, in which PostgreSQL produces the JSON. The
 * subquery uses an index and runs once per returned row. In measurements it was never slower than a lateral
 * join, and it leaves the plan of the outer query unchanged.
 */

import type { Comparison, Get, Nest } from '../tree/ast.ts'
import { allOf } from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { type AliasedTable, keyByName } from '../tree/relation-name.ts'
import type { NameScope } from '../tree/scope.ts'
import type { Printer } from './printer.ts'
import { quoteIdentifier } from './quote.ts'

/** The name of the result column with the nested rows. */
export function nestName(nest: Nest): string {
  return nest.name ?? nest.alias ?? nest.table.name
}

/**
 * Prints one column: the related row as an object or null, or the related rows as an array, possibly empty.
 */
export function printNest(nest: Nest, scope: NameScope, printer: Printer): string {
  const rows = printer.query(nestQuery(nest, scope), scope)
  const name = quoteIdentifier(nestName(nest))
  // `n.*` instead of `n`, because the nested table may have a column n. The alias n is not visible inside the
  // parentheses.
  const [all, one] = nest.binary ? ['jsonb_agg(to_jsonb(n.*))', 'to_jsonb(n.*)'] : JSON_OF_ROWS
  if (nest.many) return `(SELECT COALESCE(${all}, '[]') FROM (${rows}) AS n) AS ${name}`
  return `(SELECT ${one} FROM (${rows}${onlyFirst(nest)}) AS n) AS ${name}`
}

const JSON_OF_ROWS = ['json_agg(row_to_json(n.*))', 'row_to_json(n.*)']

/** The rows of a nest as a separate read, in the scope around it. */
export function nestQuery(nest: Nest, scope: NameScope): Get {
  const { from } = nest
  const on = nest.on ?? (from === undefined ? nestKey(nest, scope) : null)
  return {
    kind: 'get',
    purpose: 'rows',
    with: null,
    distinct: null,
    source: from ?? { kind: 'table source', table: nest.table, alias: nest.alias, condition: on, span: nest.span },
    joins: [],
    nests: nest.nests,
    fields: nest.fields,
    bare: nest.bare === true,
    where: from === undefined ? nest.where : allOf([on, nest.where]),
    groupBy: nest.groupBy ?? [],
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
 * With an order or offset, a nest without "many" is the first row. Without, several rows are an error in
 * PostgreSQL (21000) instead of an arbitrary row, and the plan has one node less.
 */
function onlyFirst(nest: Nest): string {
  if (nest.limit !== null && !(nest.limit.kind === 'literal' && nest.limit.value === '1')) {
    throw new LanguageError(`nest ${nestName(nest)} is one row; write "nest many" for more`, nest.limit.span)
  }
  return nest.limit !== null || nest.orderBy.length > 0 || nest.offset !== null ? ' LIMIT 1' : ''
}

/**
 * The join condition of a nest without `on`, derived from names because there is no catalog: a single row is
 * referenced by the outer row, many rows reference it.
 */
export function nestKey(nest: Nest, scope: NameScope): Comparison {
  const parent = scope.relations[0]
  if (parent === undefined) throw new LanguageError(`nest ${nestName(nest)} has no row to relate to`, nest.span)
  const outside: AliasedTable = { table: parent.table?.name ?? parent.name, alias: parent.name }
  const inside: AliasedTable = { table: nest.table.name, alias: nest.alias ?? nest.table.name }
  return nest.many ? keyByName(inside, outside) : keyByName(outside, inside)
}
