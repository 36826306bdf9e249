/** Prints writes as SQL: unchanged, or extended so that they notify of what they did or return it. */
import { randomUUID } from 'node:crypto'
import type { CheckedQuery, CheckedWrite, Write } from '../access/check.ts'
import { type ParameterUse, parameterKeyOf } from '../access/parameters.ts'
import type { Table } from '../catalog/model.ts'
import { type NotifyOptions, printWriteRows, type WriteRowsOptions } from '../language/sql/print-write-rows.ts'
import type { Expression, Get, Parameter } from '../language/tree/ast.ts'
import { and, cast, column, compare, exists, get, integer, isDistinct, isNull, not } from '../language/tree/build.ts'
import { targetName } from '../language/tree/scope.ts'
import { type Folding, printFolded, printFoldedRow } from './folding.ts'
import { printed, statement } from './print.ts'
import { assignedBy, possibleOperations, returnsOldRows, withBefore, withImages } from './row-images.ts'
import type { HiddenWrite, NotificationPlan, OwnWrite, WriteStatement } from './statement.ts'
import { type CalledFunction, tableDependenciesOf } from './table-dependencies.ts'

/** The columns that a write returns after the row. */
export interface WriteAnswer {
  /**
   * Columns whose values are returned after the row: the primary key for `Location`, or the conflict target
   * of an upsert.
   */
  readonly key: readonly string[]
  /** True if an upsert returns whether it created the row. */
  readonly created: boolean
  /** The limit on the rows written, or null; exceeding it rolls the write back. */
  readonly rowsMax: Parameter | null
  /** True if `rowsMax` is the only number of rows that the write may have. */
  readonly isExact?: boolean
  /** The value to return instead of the rows, in one of them. */
  readonly folding?: Folding | null
}

/**
 * Prints a write. Its columns are the row as JSON text if the write returns fields; then `t` if the row was
 * created, else `f`; then the values of the key.
 */
export function printWrite(
  checked: CheckedWrite,
  { key, created, rowsMax, isExact = false, folding = null }: WriteAnswer,
): WriteStatement {
  const { query, check } = checked
  const alias = targetName(query)
  const keys = key.map(name => column(alias, name))
  const options = {
    keys: created ? [createdBy(checked), ...keys] : keys,
    rowsMax: isExact ? exactly(rowsMax) : bounded(rowsMax),
    check,
    ...(folding === null ? {} : { folding: foldingOptions(folding) }),
  }
  const isOne = rowsMax === null && check === null && folding === null && writesOne(query)
  return writing(checked, options, rowsMax, isOne ? 'one' : 'many', folding === null ? [] : [folding.function])
}

function foldingOptions(folding: Folding): NonNullable<WriteRowsOptions['folding']> {
  return { row: row => printFoldedRow(folding, row), value: row => printFolded(folding, row) }
}

/** Prints a write of the query language, whose literals are values too. */
export function printWriteText(checked: CheckedWrite, rowsMax: Parameter | null): WriteStatement {
  const options = { keys: [], rowsMax: bounded(rowsMax), check: checked.check, parameters: 'all' } as const
  return writing(checked, options, rowsMax, 'many')
}

function writing(
  checked: CheckedWrite,
  options: WriteRowsOptions,
  rowsMax: Parameter | null,
  rows: 'one' | 'many',
  calls: readonly CalledFunction[] = [],
): WriteStatement {
  const { query, table, writes } = checked
  const bounding = { ...checked, parameters: withRowsMax(checked.parameters, rowsMax) }
  const notification = notificationPlanOf(bounding, options, rows)
  const dependencies = tableDependenciesOf(query)
  return statement<WriteStatement>({
    kind: 'write',
    ...printed(bounding, bounds => printWriteRows(query, { ...bounds, ...options })),
    dependencies: { ...dependencies, calls: [...dependencies.calls, ...calls] },
    // The statement itself is the last write; the others are in its common table expressions.
    otherTables: resourcesOf(notification === null ? writes : writes.slice(0, -1)),
    hidden: hiddenIn(query),
    own: { checked: bounding, options, table, operations: possibleOperations(query), notification },
  })
}

/** Reports whether the write has at most one row: an insert of a single body or row. */
function writesOne(query: Write): boolean {
  if (query.kind !== 'add') return true
  if (query.rows.kind !== 'from') return query.rows.kind === 'defaults' && query.rows.items === undefined
  const { source } = query.rows.query
  return source.kind === 'record source' && !source.many
}

/** The resource names of tables, each once. */
export function resourcesOf(tables: readonly Table[]): readonly string[] {
  return [...new Set(tables.map(({ resource }) => resource))]
}

/** The common table expressions that change data. The printer rejects them at deeper levels. */
export function hiddenIn({ with: clause }: Get | Write): readonly HiddenWrite[] {
  return (clause?.tables ?? []).flatMap(({ statement: inner }) =>
    inner.kind === 'add' || inner.kind === 'set' || inner.kind === 'del'
      ? [{ table: inner.table, operations: possibleOperations(inner) }]
      : [],
  )
}

// ---- the changed rows -------------------------------------------------------------------------------------

/**
 * Prints the same write with three more columns at the end: the operation, and the row as JSON after and
 * before it. Its literals can differ.
 */
export function printCaptured(write: WriteStatement): WriteStatement {
  const own = ownOf(write)
  const { query, images } = withImages(own.checked, () => createdBy(own.checked))
  const checked = { ...own.checked, query }
  const options = { ...own.options, images }
  const notification = own.notification === null ? null : notificationPlanOf(checked, options, own.notification.rows)
  return statement<WriteStatement>({
    ...write,
    ...printed(checked, bounds => printWriteRows(query, { ...bounds, ...options })),
    own: { ...own, checked, options, notification },
  })
}

export type { NotifiedRows } from '../language/sql/print-write-rows.ts'

/** How a write notifies. */
export interface NotificationOptions extends Pick<NotifyOptions, 'notifyOne' | 'notifyAll'> {
  readonly before: 'with rows before' | 'keys alone'
  /** The column that determines whom a row concerns, or null. */
  readonly route: { readonly column: string; readonly number: (value: string) => string } | null
}

/**
 * Prints the same write so that it notifies about its rows. Its own columns stay first; its parameters can
 * have other positions.
 */
export function printNotifying(
  write: WriteStatement,
  { before: wanted, route, ...how }: NotificationOptions,
): WriteStatement {
  const { checked, options, notification } = ownOf(write)
  if (notification === null) throw new Error('no notification can identify the rows of this write')
  const { query, table } = checked
  const alias = targetName(query)
  const key = new Map(table.primaryKey.map(name => [name, column(alias, name)]))
  const upserts = query.kind === 'add' && query.conflict?.update != null
  const operation = upserts
    ? { created: createdBy(checked), insert: 'I', update: 'U' }
    : ({ add: 'I', set: 'U', del: 'D' } as const)[query.kind]
  const { query: notifying, before } =
    wanted === 'with rows before' ? watchable(checked, options) : ({ query, before: 'none' } as const)
  const by = route === null ? null : { ...route, column: column(alias, route.column) }
  const notify = { ...how, rows: notification.rows, key, operation, before, route: by }
  return statement<WriteStatement>({
    ...write,
    ...printed(checked, bounds => printWriteRows(notifying, { ...bounds, ...options, notify })),
  })
}

/** The number of columns after the result's own that an announcement adds. */
export function notificationColumns({ rows }: NotificationPlan): 0 | 1 {
  return rows === 'one' ? 1 : 0
}

/**
 * How a write notifies of its rows, or null if it cannot: rows without a key cannot be identified,
 * those of a view belong to other tables, and a change of the key would have two identities.
 */
function notificationPlanOf(
  checked: CheckedWrite,
  options: WriteRowsOptions,
  rows: NotificationPlan['rows'],
): NotificationPlan | null {
  const { query, table } = checked
  const assigned = assignedBy(query)
  const isTable = table.kind !== 'view' && table.kind !== 'materialized view'
  if (!isTable || table.primaryKey.length === 0 || table.primaryKey.some(name => assigned?.includes(name))) return null
  return { rows, hasBefore: watchable(checked, options).before !== 'none', assigned }
}

/**
 * The write with the old versions of its rows, if they are available exactly. A write that returns its images
 * already has them.
 */
function watchable(
  checked: CheckedWrite,
  { images }: WriteRowsOptions,
): { readonly query: Write; readonly before: NotifyOptions['before'] } {
  if (images == null) return withBefore(checked)
  const { before } = images
  return { query: checked.query, before: typeof before === 'object' && 'query' in before ? 'none' : before }
}

function ownOf({ own }: WriteStatement): OwnWrite {
  if (own === null) throw new Error('a read with writes in its common table expressions only has no written rows')
  return own
}

// ---- how many rows ----------------------------------------------------------------------------------------

/** An error message that no value can imitate. */
export const TOO_MANY_ROWS: string = `${randomUUID()} `

function bounded(rowsMax: Parameter | null): WriteRowsOptions['rowsMax'] {
  return rowsMax === null ? null : { limit: cast(rowsMax, 'int8'), marker: TOO_MANY_ROWS }
}

/** An error message that no value can imitate, like `TOO_MANY_ROWS`. */
export const OTHER_COUNT: string = `${randomUUID()} `

function exactly(count: Parameter | null): WriteRowsOptions['rowsMax'] {
  return count === null ? null : { limit: cast(count, 'int8'), marker: OTHER_COUNT, isExact: true }
}

/** The uses of parameters with that of a limit on rows. */
export function withRowsMax(
  parameters: CheckedQuery['parameters'],
  rowsMax: Parameter | null,
): CheckedQuery['parameters'] {
  return rowsMax === null ? parameters : new Map([...parameters, [parameterKeyOf(rowsMax), ROWS_MAX]])
}

const ROWS_MAX: ParameterUse = { typeName: 'bigint', type: null, subject: 'X-Max-Affected', list: false }

// ---- created or not ---------------------------------------------------------------------------------------

/**
 * The expression for whether an upsert created the row. Before PostgreSQL 18 the system column `xmax` shows
 * it in tables: an update locks the row first, and the lock stays in the `xmax` of the new version. Views and
 * foreign tables have no such column; there the old row decides.
 */
function createdBy(checked: CheckedWrite): Expression {
  const { query, table } = checked
  const target = query.kind === 'add' ? (query.conflict?.target ?? []).map(({ text }) => text) : []
  // A column of the target can be NULL in an existing row (NULLS NOT DISTINCT).
  const never = [...table.primaryKey, ...target].find(name => table.columnByName.get(name)?.nullable === false)
  const notification = never ?? target[0]
  if (notification === undefined) throw new Error('an upsert has a conflict target')
  if (returnsOldRows(checked)) return isNull(column('old', notification))
  if (table.kind === 'table') return compare('=', column(table.name, 'xmax'), integer('0'))
  const before = target.map(name => not(isDistinct(column(BEFORE, name), column(table.name, name))))
  return not(exists(get({ table, alias: BEFORE, where: and(...before) })))
}

const BEFORE = 'svc_before'
