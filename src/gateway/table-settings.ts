/** Compares `[gateway.tables]` with the schema. A misspelt name would leave a table unprotected. */
import type { Catalog } from '../catalog/model.ts'
import { tableWritten } from '../catalog/table-names.ts'
import type { Config } from '../config/config.ts'
import type { Finding } from '../finding.ts'
import { nearest } from '../text/nearest.ts'

export function tableFindings({ gateway }: Pick<Config, 'gateway'>, catalog: Catalog): readonly Finding[] {
  return [...gateway.tables].flatMap(([name, { versionColumn }]): readonly Finding[] => {
    const key = `[gateway.tables.${JSON.stringify(name)}]`
    const table = tableWritten(name, catalog)
    if (table === undefined) return [missing(`${key}: there is no table "${name}"`, name, [...catalog.tables.keys()])]
    if (versionColumn === null || table.columnByName.has(versionColumn)) return []
    const message = `${key}: table "${name}" has no column "${versionColumn}" (version_column)`
    return [missing(message, versionColumn, [...table.columnByName.keys()])]
  })
}

function missing(message: string, name: string, known: readonly string[]): Finding {
  const near = nearest(name, known)
  const fix = near === null ? 'Correct the name, or remove the table from svc.toml.' : `Did you mean "${near}"?`
  return { level: 'error', message: `${message}.`, fix }
}
