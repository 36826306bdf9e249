/** Errors for callers who lack a right. They contain only names that the caller wrote. */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Conflict, Name, Span } from '../language/tree/ast.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { allows, type ColumnSet, isKnownColumn, type Operation, type Rights, readableColumns } from './rights.ts'

/** Throws `FORBIDDEN` if the caller's rights refuse the operation. */
export function assertAllowed(operation: Operation, table: Table, rights: Rights, span?: Span): void {
  const reason = rights.of(table).refused[operation]
  if (reason === null) return
  throw new GatewayError(
    'FORBIDDEN',
    `permission denied: cannot ${VERBS[operation]} "${table.resource}": ${reason}`,
    span === undefined ? {} : { span },
  )
}

const VERBS: Readonly<Record<Operation, string>> = {
  read: 'read from',
  create: 'create rows of',
  update: 'change rows of',
  delete: 'delete rows of',
}

/** Throws `FORBIDDEN` for the first column that the caller cannot write. */
export function assertWritten(names: readonly Name[], columns: ColumnSet, table: Table): void {
  const refused = names.find(({ text }) => !allows(columns, text))
  if (refused !== undefined) throw forbiddenColumn(refused.text, table, 'write', refused.span)
}

/**
 * A conflict target reveals whether a row exists, so it requires the right to read or to write the column.
 */
export function assertConflictAllowed({ target }: Conflict, table: Table, rights: Rights): void {
  const refused = target.find(({ text }) => !isKnownColumn(text, rights.of(table)))
  if (refused !== undefined) throw forbiddenColumn(refused.text, table, 'compare', refused.span)
}

/** The error for a column that does not exist. `further`: additional names that a suggestion can offer. */
export function unknownTableColumn(
  name: string,
  table: Table,
  rights: Rights,
  further: readonly string[] = [],
): GatewayError {
  const near = nearest(name, [...readableColumns(table, rights).map(column => column.name), ...further])
  const hint = near === null ? '' : `; did you mean "${near}"?`
  return new GatewayError('PARSE_ERROR', `table "${table.resource}" has no column "${shorten(name)}"${hint}`)
}

/** The error for a column that the caller has no right to. */
export function forbiddenColumn(name: string, table: Table, verb: string, span?: Span): GatewayError {
  return new GatewayError(
    'FORBIDDEN',
    `permission denied: cannot ${verb} column "${name}" of "${table.resource}"`,
    span === undefined ? {} : { span },
  )
}
