/** Finds the table that a name in a configuration file refers to. */
import type { Catalog, Table } from './model.ts'

/** The table with this resource name, or with its schema in front, which is optional for the first schema. */
export function tableWritten(name: string, catalog: Catalog): Table | undefined {
  return catalog.tables.get(name) ?? [...catalog.tables.values()].find(table => isWritten(name, table))
}

export function isWritten(name: string, { resource, schema, name: table }: Table): boolean {
  return name === resource || name === `${schema}.${table}`
}

/** The table with these names in the database. */
export function tableNamed(schema: string, name: string, catalog: Catalog): Table | undefined {
  return [...catalog.tables.values()].find(table => table.name === name && table.schema === schema)
}
