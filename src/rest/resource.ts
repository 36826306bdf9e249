/** Finds the table and the row that a path names. */
import { unknownTable } from '../access/resources.ts'
import type { View } from '../access/rights.ts'
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Expression, Parameter } from '../language/tree/ast.ts'
import { and, compare, impliedColumn } from '../language/tree/build.ts'
import { shorten } from '../text/shorten.ts'
import { parseId } from './path.ts'
import type { Values } from './values.ts'

/**
 * The alias of the requested table. Nested tables use t1, t2, … and junctions j1, j2, …, so aliases never
 * collide.
 */
export const TABLE_ALIAS = 't'

/**
 * The table with this resource name.
 * @throws {GatewayError} `NOT_FOUND` if it does not exist.
 */
export function requireTable({ catalog, rights }: View, name: string): Table {
  const table = catalog.tables.get(name)
  if (table === undefined) throw unknownTable(catalog, name, rights)
  return table
}

/**
 * Adds the key values of an `{id}` to `values` and returns their parameters.
 * @throws {GatewayError} `NOT_FOUND` for a table without a primary key, `PARSE_ERROR` for a wrong number of
 * values.
 */
export function idParameters(table: Table, id: string, values: Values): readonly Parameter[] {
  if (table.primaryKey.length === 0) {
    throw new GatewayError(
      'NOT_FOUND',
      `"${table.resource}" has no primary key, so its rows have no address; use filters on /api/${table.resource}`,
    )
  }
  return parseId(id, table.primaryKey).map(value => values.add(value))
}

/**
 * The condition that selects the row with this id. Its columns are marked as implied because the caller did
 * not name them, so they need no read permission.
 */
export function keyEquals(table: Table, alias: string, id: readonly Parameter[]): Expression {
  return and(
    ...table.primaryKey.map((name, index) => {
      const value = id[index]
      if (value === undefined) throw new Error('an id has a value for each column of the key')
      return compare('=', impliedColumn(alias, name), value)
    }),
  )
}

/** Creates the error for a row that does not exist or is not visible to the caller. */
export function notFound(table: Table, id: string, headers: Readonly<Record<string, string>> = {}): GatewayError {
  return new GatewayError('NOT_FOUND', `"${table.resource}" has no row ${shorten(id)} that you can read`, { headers })
}
