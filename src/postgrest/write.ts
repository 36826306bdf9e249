/** Answers writes: POST, PATCH, PUT and DELETE of tables and views. */
import type { Table } from '../catalog/model.ts'
import type { Folding } from '../compile/folding.ts'
import type { BoundStatement, WriteStatement } from '../compile/statement.ts'
import type { Answer } from '../exchange.ts'
import { partBytes } from '../json/json-body.ts'
import type { RequestStep } from '../rest/steps.ts'
import { Values } from '../rest/values.ts'
import { batches } from '../rest/write/batch.ts'
import type { ResultRow, WriteResult } from '../run/run.ts'
import type { BoundLevel, LevelBinder } from './bind.ts'
import {
  buildDelete,
  buildInsert,
  buildUpdate,
  type ConflictResolution,
  type InsertShape,
  type ReturningShape,
  type UpdatedColumns,
} from './build-write.ts'
import { notImplemented, notSingular, notWritable, otherPutKey, PostgrestError, unknownBodyColumn } from './errors.ts'
import { foldingOf } from './media-handlers.ts'
import type { ResponseMediaType } from './media-types.ts'
import { tableIn } from './names.ts'
import { keysOf, type Payload, readPayload } from './payload.ts'
import { type AppliedPreference, printApplied } from './preferences.ts'
import { rowOfPut } from './put.ts'
import type { QueryParameters } from './query-parameters.ts'
import { printContentRange, type RowRange } from './range.ts'
import { isRepresented } from './representations.ts'
import { addType, addWarning, type DoorRequest } from './request.ts'
import { printResponseBody, withReply } from './respond.ts'
import type { IsExposed } from './rpc/resolve.ts'
import type { SessionReply } from './session.ts'
import type { Caller, Statements } from './statements.ts'
import { refuseTooMany, rowsMaxOf } from './too-many-rows.ts'
import { aggregatedValue, asWritten } from './written-rows.ts'

/** The dependencies of writes. */
export interface WriteDependencies {
  readonly statements: Statements
  readonly binder: LevelBinder
  /** Limits on the rows of one body, and on their sets of keys; 0 means none. */
  readonly maxBatchRows: number
  readonly maxBatchKeySets: number
  readonly aggregatesEnabled: boolean
  /** True if updates and deletions of all rows are refused. */
  readonly safeUpdates: boolean
  readonly isExposed: IsExposed
}

/** The range of the response applies to what was written, and not to what is written. */
const ALL_ROWS: RowRange = { offset: 0, limit: null }

/** A write in progress. */
interface Writing {
  readonly request: DoorRequest
  readonly caller: Caller
  readonly reply: SessionReply
  readonly parts: WriteDependencies
  readonly table: Table
  readonly level: BoundLevel
  readonly values: Values
  /** The rows of the response. */
  readonly returning: ReturningShape
  /** The part of the key of the plan for the level, and for whether its rows are returned. */
  readonly levelKey: string
}

/** The step that answers a write. */
export function writeTable(
  request: DoorRequest,
  name: string,
  caller: Caller,
  reply: SessionReply,
  parts: WriteDependencies,
): RequestStep | Answer {
  const { incoming, schema, parameters, preferences } = request
  const table = tableIn(schema, name, caller.view)
  const { aggregatesEnabled, isExposed } = parts
  const returns = preferences.return === 'representation'
  const values = new Values()
  const { level, name: levelName } = parts.binder.bind(parameters, ALL_ROWS, values)
  if (returns && request.mediaType.form === 'raw') assertWhole(parameters.root, level)
  const writing: Writing = {
    request,
    caller,
    reply,
    parts,
    table,
    level,
    values,
    returning: {
      level: returns ? level : null,
      context: { view: caller.view, aggregatesEnabled, isExposed, isFolded: request.mediaType.handler !== undefined },
    },
    levelKey: `${returns ? 'returning' : 'only'} ${levelName}`,
  }
  switch (incoming.method) {
    case 'POST':
      return insert(writing)
    case 'PUT':
      return put(writing)
    case 'PATCH':
      return update(writing)
    default:
      return remove(writing)
  }
}

/** A value is made of all rows that are written. */
function assertWhole({ range }: QueryParameters['root'], { embedded }: BoundLevel): void {
  const isRestricted = range.offset > 0 || range.limit !== null || embedded.some(({ join }) => join === 'inner')
  if (isRestricted) throw notImplemented('A media type of the database for a part of the rows that are written')
}

/** The value that the rows of the response are made into; null for the rows themselves. */
function foldingOfWrite({ request, table, returning }: Writing): Folding | null {
  return returning.level === null ? null : foldingOf(request.mediaType, table)
}

function payloadOf({ request, parts }: Writing): Payload {
  const { maxBatchRows } = parts
  return readPayload(request.incoming, maxBatchRows === 0 ? Number.POSITIVE_INFINITY : maxBatchRows)
}

/** The written columns: those of `columns`, or the keys of the rows. */
function columnsOf({ request, table }: Writing, payload: Payload): readonly string[] {
  const columns = request.parameters.shared.columns ?? keysOf(payload)
  const unknown = columns.find(name => !table.columnByName.has(name))
  if (unknown !== undefined) throw unknownBodyColumn(unknown, table.name)
  return columns
}

/** @throws {PostgrestError} `428C9` for a column that PostgreSQL fills in itself. */
function assertWritten(table: Table, columns: readonly string[], statement: 'INSERT' | 'UPDATE'): void {
  for (const name of columns) {
    const column = table.columnByName.get(name)
    if (column?.generated != null) throw notWritable(name, 'generated', statement)
    if (column?.identity === 'always') throw notWritable(name, 'identity', statement)
  }
}

// ---- inserts ----------------------------------------------------------------------------------------------

function insert(writing: Writing): RequestStep | Answer {
  const { request, table } = writing
  const payload = payloadOf(writing)
  const columns = columnsOf(writing, payload)
  const upsert = upsertOf(writing)
  if (payload.kind === 'array' && payload.items.length === 0) return respondInsert(writing, [], upsert)
  const inserted = insertStatements(writing, payload, columns, upsert)
  return {
    runs: 'write',
    parts: inserted,
    failed: error => refuseTooMany(error, request),
    respond: results => respondInsert(writing, results, upsert),
  }

  function upsertOf({ request: { preferences, parameters } }: Writing): ConflictResolution | null {
    const target = parameters.shared.onConflict ?? table.primaryKey
    if (preferences.resolution === null || target.length === 0) return null
    assertConflictTarget(table, target)
    return { target, existing: preferences.resolution === 'merge-duplicates' ? 'update' : 'ignore' }
  }
}

/** One statement, or one for each set of keys if missing values are defaults. */
function insertStatements(
  writing: Writing,
  payload: Payload,
  columns: readonly string[],
  upsert: ConflictResolution | null,
): readonly BoundStatement<WriteStatement>[] {
  const { request, parts } = writing
  const usesDefaults = request.preferences.missing === 'default' && request.parameters.shared.columns !== null
  if (!usesDefaults) return [insertStatement(writing, payload.bytes, payload.kind, columns, upsert)]
  const present = (keys: readonly string[]) => columns.filter(name => keys.includes(name))
  if (payload.kind === 'object') {
    const keys = payload.members.map(({ key }) => key)
    return [insertStatement(writing, payload.bytes, 'object', present(keys), upsert)]
  }
  const groups = batches(payload, parts.maxBatchKeySets === 0 ? Number.POSITIVE_INFINITY : parts.maxBatchKeySets)
  return groups.map(group => insertStatement(writing, group.bytes, 'array', present(group.columns), upsert))
}

function insertStatement(
  writing: Writing,
  bytes: Buffer,
  kind: Payload['kind'],
  columns: readonly string[],
  upsert: ConflictResolution | null,
  where: InsertShape['where'] = [],
): BoundStatement<WriteStatement> {
  const { caller, parts, table, request } = writing
  assertWritten(table, columns, 'INSERT')
  const values = new Values(writing.values)
  const { returning, levelKey } = writing
  const shape: InsertShape = { columns, rows: kind === 'array' ? 'many' : 'one', upsert, where }
  const value = values.add(bytes)
  // One object is at most one row.
  const rowsMax = kind === 'array' ? boundMax(request, values) : null
  const folding = foldingOfWrite(writing)
  const answer = { key: keyOf(writing), created: upsert !== null, rowsMax, folding }
  const key = `insert ${table.oid} ${levelKey}\0${insertKey(shape)}`
  return parts.statements.write(caller, key, answer, () => buildInsert(table, shape, value, returning), values)
}

/** Names of columns contain no NUL. */
function insertKey({ columns, rows, upsert, where }: InsertShape): string {
  const conflicts = upsert === null ? '' : JSON.stringify(upsert)
  const selects = where.length > 0 ? 'selected' : ''
  return [rows, selects, conflicts, ...columns].join('\0')
}

/** The columns of `Location`. */
function keyOf({ request, table }: Writing): readonly string[] {
  return request.preferences.return === 'headers-only' ? table.primaryKey : []
}

function assertConflictTarget(table: Table, target: readonly string[]): void {
  const isKey = [table.primaryKey, ...table.unique].some(
    key => key.length === target.length && key.every(name => target.includes(name)),
  )
  const isView = table.kind === 'view'
  const unknown = target.find(name => !table.columnByName.has(name))
  if (unknown !== undefined) throw new PostgrestError(400, '42703', `column "${unknown}" does not exist`)
  if (isKey || isView) return
  const message = 'there is no unique or exclusion constraint matching the ON CONFLICT specification'
  throw new PostgrestError(400, '42P10', message)
}

function respondInsert(writing: Writing, results: readonly WriteResult[], upsert: ConflictResolution | null): Answer {
  const { request, table, returning } = writing
  const { preferences, parameters } = request
  const keyed = upsert === null ? 0 : 1
  const [first] = results
  const all = results.length === 1 && first !== undefined ? first.rows : results.flatMap(result => result.rows)
  const rows = shown(writing, all, keyed + keyOf(writing).length)
  const written = results.reduce((sum, result) => sum + result.count, 0)
  const count = returning.level === null ? written : rows.length
  const at = returning.level === null ? 0 : 1
  const isCreated = upsert === null || rows.some(row => row[at]?.toString() === 't')
  const status = upsert?.existing === 'update' && !isCreated ? 200 : 201
  const key = rows.length === 1 ? keyOf(writing).map((_, index) => rows[0]?.[at + keyed + index]) : []
  const hasTarget = table.primaryKey.length > 0 || parameters.shared.onConflict !== null
  const range = printContentRange(1, 0, preferences.count === null ? null : count)
  const headers: Record<string, string> = { 'Content-Range': range }
  if (key.length > 0) headers.Location = printLocation(table, key)
  return finished(writing, { status, headers, rows, count, applied: hasTarget ? OF_UPSERT : OF_INSERT })
}

const OF_INSERT: readonly AppliedPreference[] = ['missing', 'return', 'count']
const OF_UPSERT: readonly AppliedPreference[] = ['resolution', ...OF_INSERT]

function printLocation(table: Table, key: readonly (Buffer | null | undefined)[]): string {
  const filters = table.primaryKey.map((name, index) => {
    const value = key[index]
    const test = value == null ? 'is.null' : `eq.${encodeURIComponent(value.toString())}`
    return `${encodeURIComponent(name)}=${test}`
  })
  return `/${encodeURIComponent(table.name)}?${filters.join('&')}`
}

/** Creates or replaces the row that the filters name. */
function put(writing: Writing): RequestStep {
  const { request, table } = writing
  const payload = payloadOf(writing)
  const columns = columnsOf(writing, payload)
  const row = rowOfPut(request, table, payload)
  if (row === null && !hasComparableKey(writing, columns)) throw otherPutKey()
  const upsert: ConflictResolution = { target: table.primaryKey, existing: 'update' }
  const inserted =
    row === null
      ? insertStatement(writing, payload.bytes, payload.kind, columns, upsert, writing.level.where)
      : insertStatement(writing, row, 'object', columns, upsert)
  return {
    runs: 'write',
    parts: [inserted],
    failed: error => refuseTooMany(error, request),
    respond([result]) {
      if (row === null && result?.count !== 1) throw otherPutKey()
      const rows = shown(writing, result?.rows ?? [], 1)
      const { level } = writing.returning
      const isCreated = rows[0]?.[level === null ? 0 : 1]?.toString() === 't'
      const status = level === null ? 204 : isCreated ? 201 : 200
      const applied = ['return', 'count'] as const
      return finished(writing, { status, headers: {}, rows, count: rows.length, applied })
    },
  }
}

/** True if PostgreSQL can compare the key of the body with filters: it is there, in the form of its type. */
function hasComparableKey({ table, caller }: Writing, columns: readonly string[]): boolean {
  return table.primaryKey.every(name => {
    const known = table.columnByName.get(name)
    return known !== undefined && columns.includes(name) && !isRepresented(known.type, caller.view.catalog)
  })
}

// ---- updates and deletions --------------------------------------------------------------------------------

function update(writing: Writing): RequestStep | Answer {
  const { request, table, level, levelKey, caller, parts, returning } = writing
  const payload = payloadOf(writing)
  const columns = columnsOf(writing, payload)
  const [first] = payload.kind === 'array' ? payload.items : []
  const updated = updatedColumns(writing, columns, payload.kind === 'object' ? keysOf(payload) : (first?.keys ?? []))
  if (columns.length === 0 || (payload.kind === 'array' && first === undefined)) return respondChange(writing, null)
  assertFiltered(writing, 'UPDATE')
  assertWritten(table, updated.given, 'UPDATE')
  const bytes = payload.kind === 'array' && first !== undefined ? partBytes(payload, first) : payload.bytes
  const values = new Values(writing.values)
  const value = values.add(bytes)
  return {
    runs: 'write',
    parts: [
      parts.statements.write(
        caller,
        `update ${table.oid} ${JSON.stringify(updated)} ${levelKey}`,
        { key: [], created: false, rowsMax: boundMax(request, values), folding: foldingOfWrite(writing) },
        () => buildUpdate(table, updated, level.where, value, returning),
        values,
      ),
    ],
    failed: error => refuseTooMany(error, request),
    respond: ([result]) => respondChange(writing, result ?? null),
  }
}

function remove(writing: Writing): RequestStep {
  assertFiltered(writing, 'DELETE')
  const { request, table, level, levelKey, caller, parts, returning } = writing
  const values = new Values(writing.values)
  return {
    runs: 'write',
    parts: [
      parts.statements.write(
        caller,
        `delete ${table.oid} ${levelKey}`,
        { key: [], created: false, rowsMax: boundMax(request, values), folding: foldingOfWrite(writing) },
        () => buildDelete(table, level.where, returning),
        values,
      ),
    ],
    failed: error => refuseTooMany(error, request),
    respond: ([result]) => respondChange(writing, result ?? null),
  }
}

/** With `missing=default`, the columns of `columns` without a value are set to their defaults. */
function updatedColumns(
  { request: { preferences, parameters } }: Writing,
  columns: readonly string[],
  keys: readonly string[],
): UpdatedColumns {
  if (preferences.missing !== 'default' || parameters.shared.columns === null) return { given: columns, defaults: [] }
  const isGiven = (name: string) => keys.includes(name)
  return { given: columns.filter(isGiven), defaults: columns.filter(name => !isGiven(name)) }
}

/** @throws {PostgrestError} `21000` for a change of all rows, if it is not permitted. */
function assertFiltered({ level, parts }: Writing, statement: 'UPDATE' | 'DELETE'): void {
  if (!parts.safeUpdates || level.where.length > 0) return
  throw new PostgrestError(400, '21000', `${statement} requires a WHERE clause`)
}

function boundMax(request: DoorRequest, values: Values): ReturnType<Values['add']> | null {
  const max = limitOf(request)
  return max === null ? null : values.add(String(max))
}

function respondChange(writing: Writing, result: WriteResult | null): Answer {
  const { request, returning } = writing
  const rows = shown(writing, result?.rows ?? [], 0)
  const count = returning.level === null ? (result?.count ?? 0) : rows.length
  const total = request.preferences.count === null ? null : count
  const isUpdate = request.incoming.method === 'PATCH'
  return finished(writing, {
    status: returning.level === null ? 204 : 200,
    headers: { 'Content-Range': isUpdate ? printContentRange(0, count - 1, total) : printContentRange(1, 0, total) },
    ...{ rows, count },
    applied: [...(isUpdate ? (['missing'] as const) : []), ...(['return', 'count', 'max-affected'] as const)],
  })
}

/**
 * The rows of the response: those that have the relations that `!inner` requires, within `limit` and
 * `offset`. All rows are fetched, because each was written. `columns`: the columns between the row and the
 * condition.
 */
function shown({ request, returning }: Writing, rows: readonly ResultRow[], columns: number): readonly ResultRow[] {
  const { level } = returning
  if (level === null) return rows
  const { range } = request.parameters.root
  const isRestricted = level.embedded.some(({ join }) => join === 'inner')
  const kept = isRestricted ? rows.filter(row => row[1 + columns]?.toString() === 't') : rows
  const { offset, limit } = range
  return kept.slice(offset, limit === null ? undefined : offset + Math.max(limit, 0))
}

// ---- limits and responses ---------------------------------------------------------------------------------

/** A limit on inserted rows is only that of a single object. */
function limitOf(request: DoorRequest): number | null {
  const { method } = request.incoming
  return request.mediaType.form === 'object' || method === 'PATCH' || method === 'DELETE' ? rowsMaxOf(request) : null
}

interface Finished {
  readonly status: number
  /** Their own; those of all writes are added. */
  readonly headers: Record<string, string>
  readonly rows: readonly ResultRow[]
  /** The number of rows written. */
  readonly count: number
  readonly applied: readonly AppliedPreference[]
}

function finished(writing: Writing, { status, headers, rows, count, applied }: Finished): Answer {
  const { request, returning, reply } = writing
  const { mediaType, preferences } = request
  if (mediaType.form === 'object' && count !== 1) throw notSingular(count)
  const preference = printApplied(preferences, applied)
  if (returning.level !== null) addType(headers, request)
  addWarning(headers, request)
  if (preference !== null) headers['Preference-Applied'] = preference
  const body = returning.level === null ? null : bodyOf(rows, mediaType)
  return withReply({ status, headers, rows: count, body }, reply)
}

function bodyOf(rows: readonly ResultRow[], mediaType: ResponseMediaType): Answer['body'] {
  if (mediaType.form === 'raw') return aggregatedValue(rows, mediaType)
  const written = asWritten(rows, mediaType)
  return printResponseBody(written.rows, mediaType, written.names)
}
