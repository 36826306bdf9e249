/** Which columns a caller may read: of a table, what `*` means and which names a suggestion may offer; of a function, what its rows have. */
import type { Column, DatabaseFunction, Table } from '../catalog/model.ts'
import { unreachable } from '../unreachable.ts'

export function readableColumns(table: Table): readonly Column[] {
  return table.columns
}

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
