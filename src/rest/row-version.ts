/** The version of a row, and its configuration (docs/reference/writing.md#preconditions). */
import { allows, hidesRows, type View } from '../access/rights.ts'
import { ROW_VERSION } from '../access/scope.ts'
import type { Table } from '../catalog/model.ts'

export interface TableOptions {
  readonly versionColumn: string | null
  readonly requireIfMatch: boolean
}

/** By the name of a table in the configuration. */
export type TablesOptions = ReadonlyMap<string, TableOptions>

export function optionsOf(table: Table, tables: TablesOptions): TableOptions | undefined {
  if (tables.size === 0) return undefined
  return tables.get(table.resource) ?? tables.get(`${table.schema}.${table.name}`)
}

/**
 * The column with the version of a row: the configured one, else `xmin` of an ordinary table, else null. An
 * entity tag shows the value, so the caller must be able to read the configured column.
 */
export function versionColumn(table: Table, { rights }: Pick<View, 'rights'>, tables: TablesOptions): string | null {
  const configured = optionsOf(table, tables)?.versionColumn ?? null
  if (configured !== null && table.columnByName.has(configured) && allows(rights.of(table).read, configured)) {
    return configured
  }
  // A row filter makes a subquery of the table, which has its columns only.
  return table.kind === 'table' && !hidesRows(table, rights) ? ROW_VERSION : null
}
