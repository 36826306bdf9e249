/**
 * Makes a write return what it did to each row: the operation, and the row after and before it (decision
 * 0020). PostgreSQL 18 provides both versions in `returning` (PostgreSQL manual, 6.4). Before it, an update
 * first locks and reads its rows in the same statement, so that they cannot change in between.
 */
import type { CheckedWrite, Write } from '../access/check.ts'
import type { Table } from '../catalog/model.ts'
import type { RowImages } from '../language/sql/print-row-images.ts'
import { unusedName } from '../language/sql/print-rows.ts'
import type { Add, CommonTable, Expression, Field, Get, Join, Name, Set as SetStatement } from '../language/tree/ast.ts'
import { and, column, compare, field, get, name, tableName } from '../language/tree/build.ts'
import { targetName } from '../language/tree/scope.ts'
import { visit } from '../language/tree/walk.ts'

/**
 * Reports whether `returning` provides the old row: PostgreSQL 18 does (PostgreSQL manual, 6.4), unless the
 * table itself is named like it.
 */
export function returnsOldRows({ table, serverVersion }: Pick<CheckedWrite, 'table' | 'serverVersion'>): boolean {
  return serverVersion >= 180_000 && table.name !== 'old'
}

/** The operation that a write performed on a row. */
export type ChangeOperation = 'INSERT' | 'UPDATE' | 'DELETE'

/** The operations that a write can perform on rows. */
export function possibleOperations(write: Write): readonly ChangeOperation[] {
  switch (write.kind) {
    case 'add':
      return write.conflict?.update == null ? ['INSERT'] : ['INSERT', 'UPDATE']
    case 'set':
      return ['UPDATE']
    case 'del':
      return ['DELETE']
  }
}

/** The write and the images that it returns; `created` is whether an upsert created the row. */
export function withImages(
  checked: CheckedWrite,
  created: () => Expression,
): { readonly query: Write; readonly images: RowImages } {
  const { query, before: exactly } = withBefore(checked)
  if (query.kind === 'del') return { query, images: { operation: 'DELETE', after: 'none', before: exactly } }
  const isCreation = query.kind === 'add' && query.conflict?.update == null
  const before = exactly === 'none' && !isCreation ? readBefore(query, checked.table) : exactly
  return { query, images: { operation: happenedOf(query, created), after: 'target', before } }
}

function happenedOf(query: Add | SetStatement, created: () => Expression): RowImages['operation'] {
  if (query.kind === 'set') return 'UPDATE'
  if (query.conflict?.update == null) return 'INSERT'
  return { created: created(), inserted: 'INSERT', updated: 'UPDATE' }
}

/** The write and the source of the old images: either exact under concurrent writes, or not available. */
export function withBefore(checked: CheckedWrite): { readonly query: Write; readonly before: Exactly } {
  const { query, table } = checked
  if (query.kind === 'del') return { query, before: 'target' }
  if (query.kind === 'add' && query.conflict?.update == null) return { query, before: 'none' }
  if (returnsOldRows(checked)) return { query, before: 'old' }
  if (query.kind === 'add') return { query, before: 'none' }
  const relation = unusedName(query)
  const locking = lockingFirst(query, table, relation)
  return locking === null ? { query, before: 'none' } : { query: locking, before: { relation } }
}

type Exactly = Exclude<RowImages['before'], { readonly query: unknown }>

/**
 * Reads the row as it was when the statement began, which is all that is available for an upsert before
 * PostgreSQL 18: a change that another transaction commits between that moment and the upsert's own change is
 * missing. A row whose key changes cannot be found.
 */
function readBefore(write: Add | SetStatement, table: Table): RowImages['before'] {
  const target = targetName(write)
  if (!keepsKey(write, table)) return 'none'
  const alias = unusedName(write)
  const where = and(...table.primaryKey.map(key => compare('=', column(alias, key), column(target, key))))
  return { query: get({ table: write.table, alias, fields: everyColumn(table, alias), where }) }
}

function keepsKey(write: Add | SetStatement, { primaryKey }: Table): boolean {
  const assigned = assignedBy(write)
  return primaryKey.length > 0 && !primaryKey.some(key => assigned?.includes(key))
}

/** The columns that a write assigns in existing rows, or null if it changes none. */
export function assignedBy(write: Write): readonly string[] | null {
  if (write.kind === 'del') return null
  const assignments = write.kind === 'set' ? write.assignments : write.conflict?.update?.assignments
  const defaults = write.kind === 'set' ? (write.defaults ?? []) : []
  return assignments === undefined ? null : [...assignments.map(({ column }) => column), ...defaults].map(nameOf)
}

function nameOf({ text }: Name): string {
  return text
}

function everyColumn({ columns }: Table, alias: string): readonly Field[] {
  return columns.map(({ name }) => field(column(alias, name)))
}

/**
 * The update of rows that a common table expression has read and locked, matched by primary key. Null if this
 * is not possible: rows would not be found if the key is assigned, joined tables would be locked too, and
 * rows that are matched with those of a body cannot be read without it.
 */
function lockingFirst(set: SetStatement, table: Table, before: string): SetStatement | null {
  const isAlone = set.joins.every(({ source }) => source.kind === 'record source')
  if (!keepsKey(set, table) || !isAlone) return null
  const target = targetName(set)
  const read = get({
    table: set.table,
    alias: set.alias,
    fields: everyColumn(table, target),
    ...(set.where === 'all' ? {} : { where: set.where }),
  })
  if (mentionsAny(read, aliasesOf(set.joins))) return null
  const span = set.span
  const locked: CommonTable = {
    ...{ kind: 'cte', name: name(before), columns: [], span },
    statement: { ...read, lock: { kind: 'lock', strength: 'update', wait: null, span } },
  }
  const join: Join = {
    ...{ kind: 'join', type: 'inner', lateral: false, span },
    source: {
      kind: 'table source',
      table: tableName({ schema: null, name: before }),
      alias: null,
      condition: null,
      span,
    },
    on: and(...table.primaryKey.map(key => compare('=', column(before, key), column(target, key)))),
  }
  const tables = [...(set.with?.tables ?? []), locked]
  return {
    ...set,
    with: { kind: 'with', recursive: set.with?.recursive ?? false, tables, span },
    joins: [...set.joins, join],
  }
}

function aliasesOf(joins: readonly Join[]): ReadonlySet<string> {
  return new Set(joins.flatMap(({ source }) => ('alias' in source && source.alias !== null ? [source.alias] : [])))
}

/** Reports whether a column of the read belongs to a source with one of these names. */
function mentionsAny(read: Get, aliases: ReadonlySet<string>): boolean {
  let found = false
  visit(read, {
    column({ path }) {
      found ||= path.length > 1 && aliases.has(path[0] ?? '')
    },
  })
  return found
}
