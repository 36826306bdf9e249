/** Which columns of a table a caller may read: what `*` means, and which names a suggestion may offer. */
import type { Column, Table } from '../catalog/model.ts'

export function readableColumns(table: Table): readonly Column[] {
  return table.columns
}
