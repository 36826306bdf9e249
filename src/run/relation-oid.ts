import type { Catalog } from '../catalog/model.ts'
import type { TableName } from '../language/tree/ast.ts'

/** The OID of a resource by its name in a checked tree; null if the catalog does not contain it. */
export function relationOid({ schema, name }: TableName, catalog: Catalog): number | null {
  const resource = schema === catalog.schemas[0] ? name : `${schema}.${name}`
  const table = catalog.tables.get(resource)
  return table !== undefined && table.schema === schema && table.name === name ? table.oid : null
}
