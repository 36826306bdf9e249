/**
 * Checks of what can be written: columns that PostgreSQL does not fill in itself, and conflict targets that
 * are keys (docs/reference/writing.md#upsert).
 */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Conflict, Span } from '../language/tree/ast.ts'
import { isManaged } from './managed.ts'
import { allows, isKnownColumn, type Rights, type TableRights } from './rights.ts'

/** Throws `PARSE_ERROR` for a column that PostgreSQL or the gateway fills in itself. */
export function assertWritable(name: string, table: Table, span: Span): void {
  const column = table.columnByName.get(name)
  const reason =
    column?.generated === 'stored' || column?.generated === 'virtual'
      ? 'is generated from other columns'
      : column?.identity === 'always'
        ? 'is an identity column that PostgreSQL always numbers itself'
        : managedReason(name, table)
  if (reason === null) return
  throw new GatewayError('PARSE_ERROR', `column "${name}" of table "${table.resource}" ${reason}; leave it out`, {
    span,
  })
}

/** True if `PATCH` by the caller can set the column, unless PostgreSQL fills it in itself. */
export function canUpdate(table: Table, name: string, rights: Rights): boolean {
  const { refused, update } = rights.of(table)
  return table.writable.update && refused.update === null && allows(update, name) && !isManaged(name, table)
}

function managedReason(name: string, { managed }: Table): string | null {
  switch (name) {
    case managed?.softDelete:
      return 'is set by deletions only'
    case managed?.updatedAt:
    case managed?.createdBy:
      return 'is set by the gateway'
    default:
      return null
  }
}

/**
 * Throws `PARSE_ERROR` unless the target has exactly the columns of the primary key or of a unique constraint
 * or index, in any order. The error lists only keys whose columns all are known to the caller (`rights`).
 */
export function assertConflictTarget({ target, span }: Conflict, table: Table, rights: TableRights): void {
  if (target.length === 0) return
  // A view has the keys of its underlying table, which only PostgreSQL knows.
  if (table.kind === 'view') return
  const wanted = new Set(target.map(({ text }) => text))
  const keys = [table.primaryKey, ...table.unique].filter(key => key.length > 0)
  if (keys.some(key => key.length === wanted.size && key.every(name => wanted.has(name)))) return
  const known = keys.filter(key => key.every(name => isKnownColumn(name, rights)))
  const choices = known.map(key => key.join(',')).join(' or ')
  throw new GatewayError(
    'PARSE_ERROR',
    `the columns ${[...wanted].join(',')} are not a unique key of table "${table.resource}"; ${
      known.length === 0 ? 'it has no unique key, so rows cannot conflict' : `expected ${choices}`
    }`,
    { span },
  )
}
