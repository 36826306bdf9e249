/** Compares `[gateway.tables]` with the schema. A misspelt name would leave a table unprotected. */
import type { Catalog, Column, Table } from '../catalog/model.ts'
import { tableWritten } from '../catalog/table-names.ts'
import type { Config, TableConfig } from '../config/config.ts'
import type { Finding } from '../finding.ts'
import { nearest } from '../text/nearest.ts'

export function tableFindings({ gateway }: Pick<Config, 'gateway'>, catalog: Catalog): readonly Finding[] {
  return [...gateway.tables].flatMap(([name, settings]): readonly Finding[] => {
    const key = `[gateway.tables.${JSON.stringify(name)}]`
    const table = tableWritten(name, catalog)
    if (table === undefined) return [missing(`${key}: there is no table "${name}"`, name, [...catalog.tables.keys()])]
    return columnsOf(settings).flatMap(column => columnFindings(column, table, key))
  })
}

interface ColumnSetting {
  readonly setting: string
  readonly name: string | null
  /** The types that the column can have; null for any. */
  readonly types: readonly string[] | null
  /** True if NULL must be possible. */
  readonly nullable: boolean
}

const TIMES = ['timestamptz', 'timestamp']
const IDENTITIES = ['text', 'varchar', 'uuid', 'int4', 'int8']

function columnsOf({ versionColumn, softDelete, updatedAt, createdBy }: TableConfig): readonly ColumnSetting[] {
  return [
    { setting: 'version_column', name: versionColumn, types: null, nullable: false },
    { setting: 'soft_delete', name: softDelete, types: TIMES, nullable: true },
    { setting: 'updated_at', name: updatedAt, types: TIMES, nullable: false },
    { setting: 'created_by', name: createdBy, types: IDENTITIES, nullable: false },
  ]
}

function columnFindings({ setting, name, types, nullable }: ColumnSetting, table: Table, key: string): Finding[] {
  if (name === null) return []
  const column = table.columnByName.get(name)
  if (column === undefined) {
    const message = `${key}: table "${table.resource}" has no column "${name}" (${setting})`
    return [missing(message, name, [...table.columnByName.keys()])]
  }
  const problem = types === null ? null : problemOf(column, types, nullable)
  if (problem === null) return []
  const message = `${key}: column "${name}" of table "${table.resource}" ${problem} (${setting}).`
  return [{ level: 'error', message, fix: 'Change the column, or name another one.' }]
}

function problemOf({ type, typeText, ...column }: Column, types: readonly string[], nullable: boolean): string | null {
  if (type.schema !== 'pg_catalog' || !types.includes(type.name)) {
    return `is ${typeText}; expected ${types.join(', ')}`
  }
  if (nullable && !column.nullable) return 'is NOT NULL, so no row could exist'
  return column.generated !== null || column.identity === 'always' ? 'is computed by PostgreSQL' : null
}

function missing(message: string, name: string, known: readonly string[]): Finding {
  const near = nearest(name, known)
  const fix = near === null ? 'Correct the name, or remove the table from svc.toml.' : `Did you mean "${near}"?`
  return { level: 'error', message: `${message}.`, fix }
}
