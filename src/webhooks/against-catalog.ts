/** What of a trigger means nothing in the schema: a name that is misspelt would never fire, and what nobody writes down cannot be told. */
import type { Catalog, Table } from '../catalog/model.ts'
import { tableWritten } from '../catalog/written.ts'
import type { Document } from '../config/document.ts'
import type { Problem } from '../config/problem.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { triggerFileProblems } from './read-triggers.ts'
import type { Trigger } from './trigger.ts'

export function triggerProblems(
  triggers: readonly Trigger[],
  document: Document,
  catalog: Catalog,
  /** Tables whose changes the database writes down, as `schema.table`; null: it has no outbox. */
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
    if (source === 'database' && !isCaptured) problems.add([index, 'source'], unwritten('"database"', table, captured))
    if (order === 'key' && captured === null) problems.add([index, 'order'], unwritten('"key"', table, captured))
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

function unwritten(what: string, { resource, schema, name }: Table, captured: ReadonlySet<string> | null): string {
  const why =
    captured === null
      ? 'svc install has not been run for this database and role'
      : `svc install has not chosen table "${resource}", or its triggers are not whole`
  return `${what} needs the database to write down changes of ${schema}.${name}: ${why}; run svc install, or leave this out`
}
