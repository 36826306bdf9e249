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
  const name = quoteIdentifier(nestName(nest))
  const query = nestQuery(nest, scope)
  // `n.*` instead of `n`, because the nested table may have a column n. The alias n is not visible inside the
  // parentheses.
  const [all, one] = nest.binary ? ['jsonb_agg', 'to_jsonb(n.*)'] : ['json_agg', 'row_to_json(n.*)']
  if (!nest.many) return `(SELECT ${one} FROM (${printer.query(query, scope)}${onlyFirst(nest)}) AS n) AS ${name}`
  const { bytesMax, rows } = printShare(nest, printer, () => printer.query(query, scope))
  if (bytesMax === 0) return `(SELECT COALESCE(${all}(${one}), '[]') FROM (${rows}) AS n) AS ${name}`
  // OFFSET 0 has PostgreSQL produce the JSON of a row once, although both aggregates read it.
  return (
    `(SELECT CASE WHEN ${byteCount(bytesMax)} IS NULL THEN '[]' ELSE ${all}(${NESTED_ROW}) END ` +
    `FROM (SELECT ${one} AS j FROM (${rows}) AS n OFFSET 0) AS n) AS ${name}`
  )
}

/** The JSON of a row, in an array with a limit on its bytes. */
const NESTED_ROW = 'n.j'

/** The beginning of the count of bytes, which only statements with a limit on them contain. */
export const NESTED_BYTES: string = `sum(pg_column_size(${NESTED_ROW})`

/** The function of PostgreSQL that reports the error for an array above its limit. */
export const NESTED_OVERFLOW = 'float_overflow_error'

/**
 * An aggregate that is null without rows, and fails at the row with which they have more than `bytesMax`
 * bytes: each byte counts as a share of the largest number. PostgreSQL adds each row to the count before it
 * adds it to the array, so the array is never larger. No other aggregate can fail depending on its state
 * without being expensive or unsafe in parallel workers.
 */
function byteCount(bytesMax: number): string {
  return `${NESTED_BYTES} * '${Number.MAX_VALUE / bytesMax}'::float8)`
}

/**
 * Prints the rows of an array with its limit on bytes; 0 means none. The arrays of a row are in memory at the
 * same time, so they share the limit equally. The arrays within the rows of an array are a part of it: they
 * share its limit.
 */
function printShare(
  nest: Nest,
  printer: Printer,
  print: () => string,
): { readonly bytesMax: number; readonly rows: string } {
  if (printer.nestedBytesMax === 0) return { bytesMax: 0, rows: print() }
  const bytesMax = printer.arrayBytesMax ?? printer.nestedBytesMax / countArrays(printer.statement)
  printer.arrayBytesMax = bytesMax / Math.max(1, countArrays({ ...nest, kind: 'rows' }))
  const rows = print()
  printer.arrayBytesMax = bytesMax
  return { bytesMax, rows }
}

/** The number of arrays of nested rows in a tree, without those within the rows of others. */
function countArrays(tree: object): number {
  let count = 0
  const waiting: object[] = [tree]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if ('kind' in next && next.kind === 'nest' && 'many' in next && next.many === true) count += 1
    else for (const value of Object.values(next)) if (typeof value === 'object' && value !== null) waiting.push(value)
  }
  return count
}

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
