/** The conditions of PUT: its filters name one row by its primary key, and the body has the same key. */
import type { Table } from '../catalog/model.ts'
import { invalidPutFilters, otherPutKey, rangeOfPut } from './errors.ts'
import type { LogicTree } from './grammar/filter.ts'
import { type Payload, readObject, rowsOf } from './payload.ts'
import type { DoorRequest } from './request.ts'

/**
 * The row of the body that a PUT writes: the only one with the key of the filters. Null if no row has it as
 * the same text: only PostgreSQL knows whether `A0EE` and `a0ee`, or `1` and `01`, are the same value.
 * @throws {PostgrestError} `PGRST114` for a range, `PGRST105` for other filters, `PGRST115` for several rows.
 */
export function rowOfPut({ parameters }: DoorRequest, table: Table, payload: Payload): Buffer | null {
  const { root } = parameters
  if (root.range.limit !== null || root.range.offset !== 0) throw rangeOfPut()
  const wanted = new Map(root.where.map(keyFilter))
  const { primaryKey } = table
  const isKey = primaryKey.length > 0 && wanted.size === primaryKey.length && root.where.length === wanted.size
  if (!isKey || !primaryKey.every(name => wanted.has(name))) throw invalidPutFilters()
  const fitting = rowsOf(payload).filter(row => {
    const written = readObject(row)
    return written !== null && [...wanted].every(([name, value]) => written.get(name) === value)
  })
  if (fitting.length > 1) throw otherPutKey()
  return fitting[0] ?? null
}

function keyFilter(tree: LogicTree): readonly [name: string, value: string] {
  if (tree.kind === 'group' || tree.negated || tree.field.steps.length > 0) throw invalidPutFilters()
  const { test } = tree
  if (test.kind !== 'quantified' || test.operator !== 'eq' || test.of !== null) throw invalidPutFilters()
  return [tree.field.name, test.value]
}
