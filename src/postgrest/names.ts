/** Finds the tables of a request in the schema that its profile selects. */
import type { View } from '../access/rights.ts'
import { isKnown } from '../access/rights.ts'
import { resourceName, type Table } from '../catalog/model.ts'
import { undefinedTable } from './errors.ts'
import { similarName } from './similar-name.ts'

/**
 * The table of this name.
 * @throws {PostgrestError} `PGRST205`, with the most similar name that the caller can see.
 */
export function tableIn(schema: string, name: string, { catalog, rights }: View): Table {
  const table = catalog.tables.get(resourceName({ schema, name }, catalog.schemas))
  if (table !== undefined && table.schema === schema && table.name === name && isKnown(table, rights)) return table
  const names = [...catalog.tables.values()].flatMap(other =>
    other.schema === schema && isKnown(other, rights) ? [other.name] : [],
  )
  throw undefinedTable(schema, name, similarName(name, names))
}
