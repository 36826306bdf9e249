/** The columns of the rows that a function returns. */
import type { Catalog, Column, DatabaseFunction, Table } from '../catalog/model.ts'
import { unreachable } from '../unreachable.ts'
import { allows, type View } from './rights.ts'

/** Empty for a function that returns nothing, or records with unknown columns. */
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

/**
 * The columns of a function's result that the caller can read: rows of a table's type are treated as rows
 * of that table, whichever function returns them.
 */
export function readableResult(of: DatabaseFunction, { catalog, rights }: View): readonly Column[] {
  const table = resultTable(of, catalog)
  const columns = resultColumns(of)
  if (table === null) return columns
  const { read } = rights.of(table)
  return columns.filter(({ name }) => allows(read, name))
}

/** False if the function returns rows of a table that the caller cannot read. */
export function canSeeResult(of: DatabaseFunction, { catalog, rights }: View): boolean {
  const table = resultTable(of, catalog)
  return table === null || rights.of(table).refused.read === null
}

/** The table whose rows a function returns; null if its rows are not those of a table. */
export function resultTable({ result }: DatabaseFunction, catalog: Catalog): Table | null {
  const name = result.kind === 'composite' ? result.table : null
  return name === null ? null : (catalog.tables.get(name) ?? null)
}
