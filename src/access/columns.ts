/** What the rows of a function have. */
import type { Catalog, Column, DatabaseFunction, Table } from '../catalog/model.ts'
import { unreachable } from '../unreachable.ts'
import { allows, type View } from './rights.ts'

/** None of a function that answers nothing, or records whose columns nobody knows. */
export function resultColumns({ result }: DatabaseFunction): readonly Column[] {
  switch (result.kind) {
    case 'void':
    case 'record':
      return []
    case 'scalar':
      return [result.column]
    case 'composite':
      return result.columns
    default:
      return unreachable(result)
  }
}

/** Those that the caller may read: rows of a table are rows of that table, whoever answers them. */
export function readableResult(of: DatabaseFunction, { catalog, rights }: View): readonly Column[] {
  const table = resultTable(of, catalog)
  const columns = resultColumns(of)
  if (table === null) return columns
  const { read } = rights.of(table)
  return columns.filter(({ name }) => allows(read, name))
}

/** Whether a call could answer anything: of a table that may not be read it cannot. */
export function canSeeResult(of: DatabaseFunction, { catalog, rights }: View): boolean {
  const table = resultTable(of, catalog)
  return table === null || rights.of(table).refused.read === null
}

/** The table whose rows a function answers; null where they are of its own making. */
export function resultTable({ result }: DatabaseFunction, catalog: Catalog): Table | null {
  const name = result.kind === 'composite' ? result.table : null
  return name === null ? null : (catalog.tables.get(name) ?? null)
}
