/** Writes as SQL: as they are, and the same write so that it tells, answers or stores what it did. */
import { randomUUID } from 'node:crypto'
import type { CheckedQuery, CheckedWrite, Write } from '../access/check.ts'
import { keyOf, type ParameterUse } from '../access/parameters.ts'
import type { Table } from '../catalog/model.ts'
import { type Announcement, printWriteRows, type WriteRowsOptions } from '../language/sql/print-write-rows.ts'
import type { Storing } from '../language/sql/storing.ts'
import type { Expression, Get, Parameter } from '../language/tree/ast.ts'
import { and, cast, column, compare, exists, get, integer, isDistinct, isNull, not } from '../language/tree/build.ts'
import { targetName } from '../language/tree/scope.ts'
import { assignedBy, mayDo, showsOld, withBefore, withImages } from './images.ts'
import { printed, statement } from './print.ts'
import type { HiddenWrite, OwnWrite, Telling, WriteStatement } from './statement.ts'
import { touchesOf } from './touches.ts'

export interface WriteAnswer {
  /** Columns whose values are answered beside the row: the primary key for `Location`, or the target of an upsert. */
  readonly key: readonly string[]
  /** Of an upsert: whether the row was created. */
  readonly created: boolean
  /** How many rows may be written; more undo all of it. */
  readonly rowsMax: Parameter | null
}

/** The columns are: the row as JSON text if the write returns any fields; `t` if it was created, else `f`; the values of the key. */
export function printWrite(checked: CheckedWrite, { key, created, rowsMax }: WriteAnswer): WriteStatement {
  const { query, check } = checked
  const alias = targetName(query)
  const keys = key.map(name => column(alias, name))
  const options = {
    keys: created ? [createdBy(checked), ...keys] : keys,
    rowsMax: bounded(rowsMax),
    check,
  }
  const isOne = rowsMax === null && check === null && writesOne(query)
  return writing(checked, options, rowsMax, isOne ? 'one' : 'many')
}

/** A write of the query language: its literals are values too. */
export function printWriteText(checked: CheckedWrite, rowsMax: Parameter | null): WriteStatement {
  const options = { keys: [], rowsMax: bounded(rowsMax), check: checked.check, parameters: 'all' } as const
  return writing(checked, options, rowsMax, 'many')
}

function writing(
  checked: CheckedWrite,
  options: WriteRowsOptions,
  rowsMax: Parameter | null,
  rows: 'one' | 'many',
): WriteStatement {
  const { query, table, writes } = checked
  const bounding = { ...checked, parameters: withRowsMax(checked.parameters, rowsMax) }
  const telling = tellingOf(bounding, options, rows)
  return statement<WriteStatement>({
    kind: 'write',
    ...printed(bounding, bounds => printWriteRows(query, { ...bounds, ...options })),
    touches: touchesOf(query),
    // The statement itself comes last: what is left was written in its common tables.
    besides: resourcesOf(telling === null ? writes : writes.slice(0, -1)),
    hidden: hiddenIn(query),
    own: { checked: bounding, options, table, happened: mayDo(query), telling },
  })
}

/** A row by its key, or one body. */
function writesOne(query: Write): boolean {
  if (query.kind !== 'add') return true
  if (query.rows.kind !== 'from') return query.rows.kind === 'defaults' && query.rows.items === undefined
  const { source } = query.rows.query
  return source.kind === 'record source' && !source.many
}

export function resourcesOf(tables: readonly Table[]): readonly string[] {
  return [...new Set(tables.map(({ resource }) => resource))]
}

/** The common tables that change data; further inside the printer refuses them. */
export function hiddenIn({ with: clause }: Get | Write): readonly HiddenWrite[] {
  return (clause?.tables ?? []).flatMap(({ statement: inner }) =>
    inner.kind === 'add' || inner.kind === 'set' || inner.kind === 'del'
      ? [{ table: inner.table, happened: mayDo(inner) }]
      : [],
  )
}

// ---- what it did ------------------------------------------------------------------------------------------

/** The same write with three more columns at the end: what happened to the row (`Happened`), and it as JSON, after and before. Its literals may be others. */
export function printCaptured(write: WriteStatement): WriteStatement {
  return withImagesOf(write, {})
}

/** The same write, which hands what it did to `by` instead of answering it. */
export function printStored(write: WriteStatement, by: Storing): WriteStatement {
  const columns = ownOf(write).table.columns.map(({ name }) => name)
  return withImagesOf(write, { storing: by, columns })
}

function withImagesOf(write: WriteStatement, how: Pick<WriteRowsOptions, 'storing' | 'columns'>): WriteStatement {
  const own = ownOf(write)
  const { query, images } = withImages(own.checked, () => createdBy(own.checked))
  const checked = { ...own.checked, query }
  const options = { ...own.options, ...how, images }
  const telling = own.telling === null ? null : tellingOf(checked, options, own.telling.rows)
  return statement<WriteStatement>({
    ...write,
    ...printed(checked, bounds => printWriteRows(query, { ...bounds, ...options })),
    own: { ...own, checked, options, telling },
  })
}

export interface AnnouncedHow extends Pick<Announcement, 'tellOne' | 'tellAll'> {
  readonly before: 'with rows before' | 'keys alone'
  /** The column that says whom a row concerns; null: none. */
  readonly route: { readonly column: string; readonly number: (value: string) => string } | null
}

/** The same write, which tells of its rows; the columns in front stay as they are, its parameters may stand elsewhere. */
export function printAnnounced(write: WriteStatement, { before: wanted, route, ...how }: AnnouncedHow): WriteStatement {
  const { checked, options, telling } = ownOf(write)
  if (telling === null) throw new Error('nobody can be told of the rows of this write')
  const { query, table } = checked
  const alias = targetName(query)
  const key = new Map(table.primaryKey.map(name => [name, column(alias, name)]))
  const upserts = query.kind === 'add' && query.conflict?.update != null
  const operation = upserts
    ? { created: createdBy(checked), insert: 'I', update: 'U' }
    : ({ add: 'I', set: 'U', del: 'D' } as const)[query.kind]
  const { query: told, before } =
    wanted === 'with rows before' ? watchable(checked, options) : ({ query, before: 'none' } as const)
  const by = route === null ? null : { ...route, column: column(alias, route.column) }
  const announce = { ...how, rows: telling.rows, key, operation, before, route: by }
  return statement<WriteStatement>({
    ...write,
    ...printed(checked, bounds => printWriteRows(told, { ...bounds, ...options, announce })),
  })
}

/** Columns behind the answer's own, of an announcement alone. */
export function toldColumns({ rows }: Telling): 0 | 1 {
  return rows === 'one' ? 1 : 0
}

/**
 * Null: rows without a key have no name to tell them by, those of a view are other tables' rows, and a change of the key itself would have two names.
 */
function tellingOf(checked: CheckedWrite, options: WriteRowsOptions, rows: Telling['rows']): Telling | null {
  const { query, table } = checked
  const assigned = assignedBy(query)
  const isTable = table.kind !== 'view' && table.kind !== 'materialized view'
  if (!isTable || table.primaryKey.length === 0 || table.primaryKey.some(name => assigned?.includes(name))) return null
  return { rows, hasBefore: watchable(checked, options).before !== 'none', assigned }
}

/** The write with its rows as they were before, where they can be had exactly; one that answers its images has seen to that already. */
function watchable(
  checked: CheckedWrite,
  { images }: WriteRowsOptions,
): { readonly query: Write; readonly before: Announcement['before'] } {
  if (images == null) return withBefore(checked)
  const { before } = images
  return { query: checked.query, before: typeof before === 'object' && 'query' in before ? 'none' : before }
}

function ownOf({ own }: WriteStatement): OwnWrite {
  if (own === null) throw new Error('a read that only its common tables write for has no rows written of its own')
  return own
}

// ---- how many rows ----------------------------------------------------------------------------------------

/** Nobody can send a value that reads like it. */
export const TOO_MANY_ROWS: string = `${randomUUID()} `

function bounded(rowsMax: Parameter | null): WriteRowsOptions['rowsMax'] {
  return rowsMax === null ? null : { limit: cast(rowsMax, 'int8'), marker: TOO_MANY_ROWS }
}

function withRowsMax(parameters: CheckedQuery['parameters'], rowsMax: Parameter | null): CheckedQuery['parameters'] {
  return rowsMax === null ? parameters : new Map([...parameters, [keyOf(rowsMax), ROWS_MAX]])
}

const ROWS_MAX: ParameterUse = { typeName: 'bigint', type: null, subject: 'X-Max-Affected', list: false }

// ---- created or not ---------------------------------------------------------------------------------------

/**
 * Whether an upsert created the row. Before 18 a table's rows tell by their system column: an update locks the row first, and the lock stays in
 * the new version's `xmax`. What is no plain table has no such column; there it counts whether the row was to be seen before.
 */
function createdBy(checked: CheckedWrite): Expression {
  const { query, table } = checked
  const target = query.kind === 'add' ? (query.conflict?.target ?? []).map(({ text }) => text) : []
  // A column of the target may be NULL in a row that was there (NULLS NOT DISTINCT).
  const never = [...table.primaryKey, ...target].find(name => table.columnByName.get(name)?.nullable === false)
  const telling = never ?? target[0]
  if (telling === undefined) throw new Error('an upsert has a conflict target')
  if (showsOld(checked)) return isNull(column('old', telling))
  if (table.kind === 'table') return compare('=', column(table.name, 'xmax'), integer('0'))
  const before = target.map(name => not(isDistinct(column(BEFORE, name), column(table.name, name))))
  return not(exists(get({ table, alias: BEFORE, where: and(...before) })))
}

const BEFORE = 'svc_before'
