/** The table or function of the catalog that a name means, and the error if it means none. */
import type { Catalog, DatabaseFunction, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { TableName } from '../language/tree/ast.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { isKnown, type Rights } from './rights.ts'

/** The table that a name means. Throws `NOT_FOUND` with a suggestion if it does not exist. */
export function tableOf(name: TableName, catalog: Catalog, rights: Rights): Table {
  const resource = resourceOf(name, catalog)
  const table = catalog.tables.get(resource)
  if (table === undefined) throw unknownTable(catalog, resource, rights, name.span)
  return table
}

/** The overload with these arguments, written as `pg_get_function_identity_arguments` writes them. */
export function functionOf(name: TableName, identity: string, catalog: Catalog): DatabaseFunction {
  const resource = resourceOf(name, catalog)
  const meant = catalog.functions.get(resource)?.find(({ identityArgs }) => identityArgs === identity)
  if (meant === undefined) throw unknownFunction(resource, catalog.functions.keys())
  return meant
}

/** The name of the resource that `name` means: unqualified in the first schema. */
function resourceOf(name: TableName, catalog: Catalog): string {
  const isBare = name.schema === null || name.schema === catalog.schemas[0]
  return isBare ? name.name : `${name.schema}.${name.name}`
}

/** The name with schema and table as the catalog has them. */
export function qualified(name: TableName, table: Table): TableName {
  return { ...name, schema: table.schema, name: table.name }
}

/** The error for a name that means no table; it suggests only names that the caller can see. */
export function unknownTable(catalog: Catalog, name: string, rights: Rights, span?: TableName['span']): GatewayError {
  const extras = span === undefined ? {} : { span }
  const unpublished = catalog.unpublishedViews.get(name)
  if (unpublished !== undefined) {
    return new GatewayError('NOT_FOUND', `the view "${shorten(name)}" is not published: ${unpublished}`, extras)
  }
  const known = [...catalog.tables.values()].filter(table => isKnown(table, rights))
  const near = nearest(
    name,
    known.map(({ resource }) => resource),
  )
  const hint = near === null ? 'GET /api/_schema lists the tables' : `did you mean "${near}"?`
  return new GatewayError('NOT_FOUND', `there is no table "${shorten(name)}"; ${hint}`, extras)
}

/** The error for a name that means no function. `callable`: the names that a suggestion can offer. */
export function unknownFunction(name: string, callable: Iterable<string>): GatewayError {
  const near = nearest(name, callable)
  const hint = near === null ? 'GET /api/_rpc/contracts lists the functions' : `did you mean "${near}"?`
  return new GatewayError('NOT_FOUND', `there is no function "${shorten(name)}"; ${hint}`)
}
