/** Which table somebody means who writes its name into a file. */
import type { Catalog, Table } from './model.ts'

/** The name is the resource's, or has the schema before it, which the first one's resources do not need. */
export function tableWritten(name: string, catalog: Catalog): Table | undefined {
  return catalog.tables.get(name) ?? [...catalog.tables.values()].find(table => isWritten(name, table))
}

export function isWritten(name: string, { resource, schema, name: table }: Table): boolean {
  return name === resource || name === `${schema}.${table}`
}

/** Of a name as the database has it. */
export function tableNamed(schema: string, name: string, catalog: Catalog): Table | undefined {
  return [...catalog.tables.values()].find(table => table.name === name && table.schema === schema)
}
