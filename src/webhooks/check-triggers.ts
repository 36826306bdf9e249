/**
 * Checks triggers against the database schema: tables and columns must exist, and changes must be captured
 * where the trigger depends on it.
 */
import type { Catalog, Table } from '../catalog/model.ts'
import { tableWritten } from '../catalog/table-names.ts'
import type { Document } from '../config/document.ts'
import type { Problem } from '../config/problem.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { triggerFileProblems } from './read-triggers.ts'
import type { Trigger } from './trigger.ts'

/** The problems of triggers that parsed correctly but do not match the schema. */
export function triggerProblems(
  triggers: readonly Trigger[],
  document: Document,
  catalog: Catalog,
  /** Tables whose changes the database captures, as `schema.table`; null if no outbox is installed. */
  captured: ReadonlySet<string> | null,
): readonly Problem[] {
  const problems = triggerFileProblems(document)
  for (const [index, { table: name, columns, source, order }] of triggers.entries()) {
    const table = tableWritten(name, catalog)
    if (table === undefined) {
      const near = nearest(name, catalog.tables.keys())
      problems.add([index, 'table'], `there is no table "${shorten(name)}"`, near)
      continue
    }
    const isCaptured = captured?.has(`${table.schema}.${table.name}`) === true
    if (source === 'database' && !isCaptured)
      problems.add([index, 'source'], notCaptured('"database"', table, captured))
    if (order === 'key' && !isCaptured) problems.add([index, 'order'], notCaptured('"key"', table, captured))
    else if (order === 'key' && table.primaryKey.length === 0) {
      problems.add([index, 'order'], `"key" needs a primary key, and table "${table.resource}" has none`)
    }
    for (const [at, column] of (columns ?? []).entries()) {
      if (table.columnByName.has(column)) continue
      const near = nearest(column, table.columnByName.keys())
      problems.add([index, 'columns', at], `table "${table.resource}" has no column "${shorten(column)}"`, near)
    }
  }
  return problems.found
}

function notCaptured(what: string, { resource, schema, name }: Table, captured: ReadonlySet<string> | null): string {
  const why =
    captured === null
      ? 'svc install has not been run for this database and role'
      : `svc install does not capture table "${resource}", or some of its triggers are missing`
  return (
    `${what} requires the database to capture changes of ${schema}.${name}: ` +
    `${why}; run svc install, or remove this setting`
  )
}
