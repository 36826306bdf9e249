import { type Catalog, resourceName } from '../catalog/model.ts'
import type { TableName } from '../language/tree/ast.ts'

/** The OID of a resource by its name in a checked tree; null if the catalog does not contain it. */
export function relationOid({ schema, name }: TableName, catalog: Catalog): number | null {
  const table = catalog.tables.get(resourceName({ schema, name }, catalog.schemas))
  return table !== undefined && table.schema === schema && table.name === name ? table.oid : null
}
