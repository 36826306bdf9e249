/** Names of tables in configuration files, and the tables that they refer to. */
import type { Catalog, Table } from './model.ts'

export interface ConfiguredTable {
  readonly schema: string
  readonly table: string
}

/** Parses `name`, in the first schema, or `schema.name`. The table does not have to exist. */
export function parseTableName(written: string, schemas: readonly string[]): ConfiguredTable {
  const dot = written.indexOf('.')
  return dot < 0
    ? { schema: schemas[0] ?? '', table: written }
    : { schema: written.slice(0, dot), table: written.slice(dot + 1) }
}

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
