/** The table and the row that a path names. */
import { unknownTable } from '../access/check.ts'
import type { Catalog, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Parameter } from '../language/ast.ts'
import { shorten } from '../shorten.ts'
import { parseId } from './path.ts'
import type { Shape } from './shape.ts'

export function tableNamed(catalog: Catalog, name: string): Table {
  const table = catalog.tables.get(name)
  if (table === undefined) throw unknownTable(catalog, name)
  return table
}

export function idParameters(table: Table, id: string, shape: Shape): readonly Parameter[] {
  if (table.primaryKey.length === 0) {
    throw new GatewayError(
      'NOT_FOUND',
      `"${table.resource}" has no primary key, so its rows have no address; use filters on /api/${table.resource}`,
    )
  }
  return parseId(id, table.primaryKey).map(value => shape.value(value))
}

export function notFound(table: Table, id: string): GatewayError {
  return new GatewayError('NOT_FOUND', `"${table.resource}" has no row ${shorten(id)} that you may see`)
}
