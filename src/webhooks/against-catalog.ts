/** What of a trigger means nothing in the schema: a name that is misspelt would never fire. */
import type { Catalog } from '../catalog/model.ts'
import { tableWritten } from '../catalog/written.ts'
import { type Document, DocumentProblems } from '../config/document.ts'
import type { Problem } from '../config/problem.ts'
import { nearest } from '../nearest.ts'
import { shorten } from '../shorten.ts'
import type { Trigger } from './trigger.ts'

export function triggerProblems(
  triggers: readonly Trigger[],
  document: Document,
  catalog: Catalog,
): readonly Problem[] {
  const problems = new DocumentProblems(document)
  for (const [index, { table: name, columns }] of triggers.entries()) {
    const table = tableWritten(name, catalog)
    if (table === undefined) {
      const near = nearest(name, catalog.tables.keys())
      problems.add([index, 'table'], `there is no table "${shorten(name)}"`, near)
      continue
    }
    for (const [at, column] of (columns ?? []).entries()) {
      if (table.columnByName.has(column)) continue
      const near = nearest(column, table.columnByName.keys())
      problems.add([index, 'columns', at], `table "${table.resource}" has no column "${shorten(column)}"`, near)
    }
  }
  return problems.found
}
