/**
 * Decides whether a caller can see how many rows PostgreSQL expects
 * (docs/guides/coming-from-postgrest.md#differences). Its statistics cover all rows, also those that
 * row-level security or an access policy hides.
 */
import { hidesRows } from '../access/rights.ts'
import { type Catalog, resourceName, type Table } from '../catalog/model.ts'
import type { TableName } from '../language/tree/ast.ts'
import { readDependencies } from '../run/cache/dependencies.ts'
import { seesFigures } from '../run/explain-figures.ts'
import type { Caller } from './statements.ts'

/** True unless hidden rows can be in the statistics of one of these tables, or of a table behind a view. */
export function seesEstimates({ identity, view }: Caller, reads: readonly TableName[]): boolean {
  if (seesFigures(identity)) return true
  const { catalog, rights } = view
  const tables = reads.map(({ schema, name }) => catalog.tables.get(resourceName({ schema, name }, catalog.schemas)))
  if (!tables.every(table => table !== undefined && !hidesRows(table, rights))) return false
  return showsAllRows(tables as readonly Table[], catalog)
}

function showsAllRows(tables: readonly Table[], catalog: Catalog): boolean {
  const views = tables.filter(({ kind }) => kind === 'view' || kind === 'materialized view')
  if (tables.some(({ rowSecurity }) => rowSecurity.enabled)) return false
  if (views.length === 0) return true
  if (!catalog.knowsDependencies) return false
  const byOid = new Map([...catalog.tables.values()].map(table => [table.oid, table]))
  const { relations, opaque } = readDependencies(
    catalog,
    views.map(({ oid }) => oid),
  )
  return !opaque && [...relations].every(oid => byOid.get(oid)?.rowSecurity.enabled === false)
}
