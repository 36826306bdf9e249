/**
 * Combines both policies: an operation needs the consent of each, and the access policy is evaluated first.
 */
import { type ColumnSet, OPERATIONS, type TableRights } from '../rights.ts'
import { refusals } from './native.ts'

/** The rights that both policies grant together. */
export function both(native: TableRights, legacy: TableRights): TableRights {
  const { returning } = native
  return {
    refused: refusals(operation => native.refused[operation] ?? legacy.refused[operation]),
    read: common(native.read, legacy.read),
    create: common(native.create, legacy.create),
    update: common(native.update, legacy.update),
    returning: returning === null ? null : common(returning, either(either(legacy.read, legacy.create), legacy.update)),
    rows: Object.fromEntries(OPERATIONS.map(operation => [operation, legacy.rows[operation]])) as TableRights['rows'],
  }
}

function common(a: ColumnSet, b: ColumnSet): ColumnSet {
  if (a === 'any') return b
  return b === 'any' ? a : new Set([...a].filter(name => b.has(name)))
}

function either(a: ColumnSet, b: ColumnSet): ColumnSet {
  return a === 'any' || b === 'any' ? 'any' : new Set([...a, ...b])
}
