/** A checked tree as SQL: the only way from the tree to text that runs. */
import { randomUUID } from 'node:crypto'
import type { CheckedQuery, CheckedWrite, ParameterKey, ParameterUse, Write } from '../access/check.ts'
import { keyOf } from '../access/parameters.ts'
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import { printSql } from '../language/sql/print.ts'
import { printRows } from '../language/sql/print-rows.ts'
import { type Announcement, printWriteRows, type WriteRowsOptions } from '../language/sql/print-write-rows.ts'
import type { Sql } from '../language/sql/printer.ts'
import type { Storing } from '../language/sql/storing.ts'
import type { Expression, Get, Parameter, TableName } from '../language/tree/ast.ts'
import { and, cast, column, compare, exists, get, integer, isDistinct, isNull, not } from '../language/tree/build.ts'
import { LanguageError } from '../language/tree/error.ts'
import { targetName } from '../language/tree/scope.ts'
import { isEstimatedEachTime } from './each-time.ts'
import { type Extent, extentOf } from './extent.ts'
import { assignedBy, type Happened, mayDo, showsOld, withBefore, withImages } from './images.ts'
import { type Mention, mentionsOf } from './mentions.ts'
import { TOUCHES_NOTHING, type Touches, touchesOf } from './touches.ts'

declare const printed: unique symbol

/** Text that may run, with what each of its `$1 …` is. It depends on the shape of the request, never on its values. */
export interface Statement {
  readonly [printed]: true
  readonly text: string
  readonly parameters: readonly StatementParameter[]
  /** Its estimate depends on its values too much to be kept. */
  readonly eachTime?: true
  /** Of a read, for advice on it. */
  readonly extent?: Extent
  /** The columns that a read filters and sorts by: what advice on it may name. */
  readonly mentions?: readonly Mention[]
  /** Of an `EXPLAIN`: the statement that it runs, null for none. */
  readonly runs?: Statement | null
  /** The tables it reads and writes; without it, nobody knows. */
  readonly touches?: Touches
  /** Of a write whose rows can be told of: the same write telling (run/announce). */
  readonly announced?: Announced
  /** Resource names of the tables that it writes to besides, of whose rows nothing can be told. */
  readonly writes?: readonly string[]
  /** Of a write: what it does to which table, and the same write answering that. */
  readonly captured?: Captured
  /** What its common tables write to, which nothing can be answered of. */
  readonly hidden?: readonly HiddenWrite[]
}

export interface AnnouncedHow extends Pick<Announcement, 'tellOne' | 'tellAll'> {
  readonly before: 'with rows before' | 'keys alone'
  /** The column that says whom a row concerns; null: none. */
  readonly route: { readonly column: string; readonly number: (value: string) => string } | null
}

/** Prints the write anew; the columns in front stay as they are, its parameters may stand elsewhere. */
export interface Announced {
  /** Resource name. */
  readonly table: string
  /** Whether `old` rows can be had besides, which a creation has none of. */
  readonly hasBefore: boolean
  print(how: AnnouncedHow): Statement
  /** Whether its table has a column of this name. */
  hasColumn(name: string): boolean
  /** Columns behind the answer's own: of an announcement, and of rows before. */
  readonly telling: 0 | 1
  /** Columns that a change assigns; null where rows as a whole come and go. */
  readonly assigned: readonly string[] | null
}

/** The same write with three more columns at the end: what happened to the row (`Happened`), and it as JSON, after and before. */
export interface Captured {
  readonly table: Table
  readonly happened: readonly Happened[]
  /** Printed when it is first asked for; its literals may be others, and stand elsewhere. */
  statement(): Statement
  /** The same write, which hands what it did to `by` instead of answering it. Printed anew only for another `by`. */
  stored(by: Storing): Statement
}

export interface HiddenWrite {
  readonly table: TableName
  readonly happened: readonly Happened[]
}

export type StatementParameter =
  /** A value of the caller: which of the tree's parameters, `$n` or `:name`. */
  | { readonly key: ParameterKey; readonly use: ParameterUse }
  /** A literal of the query, lifted out of the text so that this depends on the shape only. */
  | { readonly literal: string }

/** Text as PostgreSQL reads it, or bytes of a body that are JSON text. */
export type StatementValue = string | Buffer | null

/** A statement with the values of its parameters, in the statement's order and PostgreSQL's text form. */
export interface BoundStatement {
  readonly statement: Statement
  readonly values: readonly StatementValue[]
}

/**
 * Each row of the answer is one row of PostgreSQL's: column 1 the row as JSON text, then the text of each sort key, for cursors.
 */
export function printRead(checked: CheckedQuery, keys: 'with keys' | 'without keys'): Statement {
  const { query } = checked
  const orders = keys === 'with keys' ? query.orderBy : []
  return reading(checked, () => printRows(query, { keys: orders.map(order => order.expression) }))
}

/** A query-language text: its literals are values too. `rowsMax`: how many rows are answered at most; 0: all. */
export function printText(checked: CheckedQuery, rowsMax: number): Statement {
  const limit = rowsMax === 0 ? null : rowsMax
  const printed = reading(checked, () => printRows(checked.query, { keys: [], parameters: 'all', limit }))
  return { ...printed, writes: resourcesOf(checked.writes), ...hiding(checked.query) }
}

/** As `printText`, for a write. */
export function printWriteText(checked: CheckedWrite, rowsMax: Parameter | null): Statement {
  const options = { keys: [], rowsMax: bounded(rowsMax), check: checked.check, parameters: 'all' } as const
  return writing(checked, options, rowsMax, 'many')
}

/** As `printRead`, for a read of one field: column 1 is the JSON of its value alone. */
export function printValues(checked: CheckedQuery): Statement {
  const printed = statement(checked, () => printRows(checked.query, { keys: [], form: 'value' }))
  return { ...printed, touches: touchesOf(checked.query) }
}

/**
 * A read whose rows are wanted only when they are others than before: one row with their digest, their number, the bytes of all of them, and all of them as
 * one JSON list without its brackets – unless they are those of `digest`, or more than `bytesMax`.
 */
export function ifChanged(
  { statement, values }: BoundStatement,
  digest: string | null,
  bytesMax: number,
): BoundStatement {
  const place = `$${values.length + 1}`
  const text = `WITH answer(item) AS MATERIALIZED (${statement.text}), whole AS (
  SELECT count(*) AS count, coalesce(string_agg(item::text, ','), '') AS list FROM answer
), judged AS (SELECT *, encode(sha256(convert_to(count || ' ' || list, 'UTF8')), 'base64') AS digest FROM whole)
SELECT digest, count, octet_length(list), CASE WHEN digest = ${place}::text OR octet_length(list) > ${bytesMax} THEN NULL ELSE list END FROM judged`
  return {
    statement: { ...statement, text, parameters: [...statement.parameters, { literal: digest ?? '' }] },
    values: [...values, digest],
  }
}

/** The columns of a read as they are, for results in PostgreSQL's binary format. */
export function printColumns(checked: CheckedQuery): Statement {
  return { ...statement(checked, () => printSql(checked.query)), touches: touchesOf(checked.query) }
}

/** What PostgreSQL would do to answer a statement, or with `analyze` did (PostgreSQL manual, EXPLAIN). */
const EXPLAIN_OPTIONS = {
  analyze: 'ANALYZE, FORMAT JSON',
  'plan only': 'FORMAT JSON',
} as const

export function explained(statement: Statement, mode: keyof typeof EXPLAIN_OPTIONS): Statement {
  return {
    ...statement,
    text: `EXPLAIN (${EXPLAIN_OPTIONS[mode]}) ${statement.text}`,
    runs: mode === 'analyze' ? statement : null,
  }
}

export interface WriteAnswer {
  /** Columns whose values are answered beside the row: the primary key for `Location`, or the target of an upsert. */
  readonly key: readonly string[]
  /** Of an upsert: whether the row was created. */
  readonly created: boolean
  /** How many rows may be written; more undo all of it. */
  readonly rowsMax: Parameter | null
}

/** The columns are: the row as JSON text if the write returns any fields; `t` if it was created, else `f`; the values of the key. */
export function printWrite(checked: CheckedWrite, { key, created, rowsMax }: WriteAnswer): Statement {
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

function writing(
  checked: CheckedWrite,
  options: WriteRowsOptions,
  rowsMax: Parameter | null,
  rows: 'one' | 'many',
): Statement {
  const { query, table } = checked
  const parameters = withRowsMax(checked.parameters, rowsMax)
  const touches = touchesOf(query)
  const print = (write: Write, how: WriteRowsOptions): Statement => {
    const printed = statement({ parameters }, () => printWriteRows(write, how))
    return announcing({ ...printed, touches }, { ...checked, query: write, parameters }, how, rows)
  }
  let captured: Statement | null = null
  let stored: { readonly by: Storing; readonly statement: Statement } | null = null
  const withImagesOf = (how: Pick<WriteRowsOptions, 'storing' | 'columns'>) => {
    const { query: write, images } = withImages(checked, () => createdBy(checked))
    return print(write, { ...options, ...how, images })
  }
  return {
    ...print(query, options),
    ...hiding(query),
    captured: {
      table,
      happened: mayDo(query),
      statement() {
        captured ??= withImagesOf({})
        return captured
      },
      stored(by) {
        // Every write asks for it.
        if (stored?.by === by) return stored.statement
        const columns = table.columns.map(({ name }) => name)
        stored = { by, statement: withImagesOf({ storing: by, columns }) }
        return stored.statement
      },
    },
  }
}

/** A row by its key, or one body. */
function writesOne(query: Write): boolean {
  if (query.kind !== 'add') return true
  if (query.rows.kind !== 'from') return query.rows.kind === 'defaults' && query.rows.items === undefined
  const { source } = query.rows.query
  return source.kind === 'record source' && !source.many
}

/**
 * Adds how the write tells of its rows. Rows without a key have no name to tell them by, those of a view are other tables' rows, and a change of the key
 * itself would have two names.
 */
function announcing(
  plain: Statement,
  checked: CheckedWrite,
  options: WriteRowsOptions,
  rows: 'one' | 'many',
): Statement {
  const { query, table } = checked
  const assigned = assignedBy(query)
  const isTable = table.kind !== 'view' && table.kind !== 'materialized view'
  if (!isTable || table.primaryKey.length === 0 || table.primaryKey.some(name => assigned?.includes(name))) {
    return { ...plain, writes: resourcesOf(checked.writes) }
  }
  const alias = targetName(query)
  const key = new Map(table.primaryKey.map(name => [name, column(alias, name)]))
  const upserts = query.kind === 'add' && query.conflict?.update != null
  const operation = upserts
    ? { created: createdBy(checked), insert: 'I', update: 'U' }
    : ({ add: 'I', set: 'U', del: 'D' } as const)[query.kind]
  const watched = watchable(checked, options)
  return {
    ...plain,
    // The statement itself comes last: what is left was written in its common tables.
    writes: resourcesOf(checked.writes.filter((_, index, all) => index < all.length - 1)),
    announced: {
      table: table.resource,
      hasBefore: watched.before !== 'none',
      telling: rows === 'one' ? 1 : 0,
      assigned,
      hasColumn: name => table.columnByName.has(name),
      print({ before: wanted, route, ...how }) {
        const { query: write, before } = wanted === 'with rows before' ? watched : ({ query, before: 'none' } as const)
        const by = route === null ? null : { ...route, column: column(alias, route.column) }
        const announce = { ...how, rows, key, operation, before, route: by }
        return statement(checked, () => printWriteRows(write, { ...options, announce }))
      },
    },
  }
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

function resourcesOf(tables: readonly Table[]): readonly string[] {
  return [...new Set(tables.map(({ resource }) => resource))]
}

/** The common tables that change data; further inside the printer refuses them. */
function hiding({ with: clause }: Get | Write): Pick<Statement, 'hidden'> {
  const hidden = (clause?.tables ?? []).flatMap(({ statement: inner }) =>
    inner.kind === 'add' || inner.kind === 'set' || inner.kind === 'del'
      ? [{ table: inner.table, happened: mayDo(inner) }]
      : [],
  )
  return hidden.length === 0 ? {} : { hidden }
}

/** Nobody can send a value that reads like it. */
export const TOO_MANY_ROWS: string = `${randomUUID()} `

function bounded(rowsMax: Parameter | null): WriteRowsOptions['rowsMax'] {
  return rowsMax === null ? null : { limit: cast(rowsMax, 'int8'), marker: TOO_MANY_ROWS }
}

function withRowsMax(parameters: CheckedQuery['parameters'], rowsMax: Parameter | null): CheckedQuery['parameters'] {
  return rowsMax === null ? parameters : new Map([...parameters, [keyOf(rowsMax), ROWS_MAX]])
}

const ROWS_MAX: ParameterUse = { typeName: 'bigint', type: null, subject: 'X-Max-Affected', list: false }

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

function reading(checked: CheckedQuery, print: () => Sql): Statement {
  const { query } = checked
  return {
    ...statement(checked, print),
    ...(isEstimatedEachTime(query) ? { eachTime: true } : {}),
    extent: extentOf(query),
    mentions: mentionsOf(query),
    touches: touchesOf(query),
  }
}

function statement({ parameters }: Pick<CheckedQuery, 'parameters'>, print: () => Sql): Statement {
  const sql = refusing(print)
  const numbered = sql.parameters.map((parameter): StatementParameter => {
    if (parameter.kind === 'literal') return { literal: parameter.value }
    const key = parameter.kind === 'position' ? parameter.n : parameter.name
    const use = parameters.get(key)
    if (use === undefined) throw new Error(`parameter ${key} met nothing that gives it a type`)
    return { key, use }
  })
  return { text: sql.text, parameters: numbered } as unknown as Statement
}

/** What the printer refuses – a tree too deep – has passed every check of names, and still is the request's doing. */
function refusing(print: () => Sql): Sql {
  try {
    return print()
  } catch (error) {
    if (error instanceof LanguageError) {
      const span = error.span === null ? {} : { span: error.span }
      throw new GatewayError('PARSE_ERROR', error.message, { cause: error, ...span })
    }
    throw error
  }
}

/**
 * A statement that no request has a part in but by its values: its text is made of what the catalogue of PostgreSQL says – names, the conditions of
 * policies – and of nothing else. `reads`: the tables whose policies or rows are in it.
 */
export function catalogueStatement(
  text: string,
  values: readonly StatementValue[],
  reads: readonly TableName[] = [],
): BoundStatement {
  const touches: Touches = { ...TOUCHES_NOTHING, reads }
  return { statement: { text, parameters: [], touches } as unknown as Statement, values }
}
