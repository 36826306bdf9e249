/**
 * Prints the statement behind each response to a write: it writes, and PostgreSQL produces the JSON of each
 * row that `returning` asks for.
 */

import type { Add, Del, Expression, Field, Order, Set as SetStatement } from '../tree/ast.ts'
import { star } from '../tree/build.ts'
import { assertNesting } from '../tree/nesting.ts'
import {
  joinSources,
  type NamedSource,
  type NameScope,
  OUTERMOST,
  sourceName,
  targetName,
  withCommonTables,
  writeScope,
} from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import { createPrinter, printStatement } from './print.ts'
import { printFields, printWith } from './print-query.ts'
import { printRowImages, type RowBefore, type RowImages, relationBefore, rowImage } from './print-row-images.ts'
import { unusedName, WHOLE_ROW } from './print-rows.ts'
import type { ParameterMode, Printer, Sql } from './printer.ts'
import { quoteLiteral } from './quote.ts'

/** Options of `printWriteRows`. */
export interface WriteRowsOptions {
  /** Additional columns of the result; `old` and `new` are in scope for PostgreSQL 18. */
  readonly keys: readonly Expression[]
  /**
   * Maximum number of written rows, or the only number with `isExact`. With another number, the statement
   * fails with `marker` and the number in its message.
   */
  readonly rowsMax: { readonly limit: Expression; readonly marker: string; readonly isExact?: boolean } | null
  /** A condition that each written row must satisfy; otherwise the statement fails. */
  readonly check?: Expression | null
  readonly parameters?: ParameterMode
  /** See `PrintOptions`. */
  readonly repeatedCharactersMax?: number
  /** See `PrintOptions`. */
  readonly repetitionsMax?: number
  /** See `PrintOptions`. */
  readonly nestedBytesMax?: number
  /** Adds three columns after the keys: the operation, and the row as JSON after and before it. */
  readonly images?: RowImages | null
  /** Notifies listeners of the written rows, in the same statement. */
  readonly notify?: NotifyOptions | null
  /** Makes one value of the rows. It is column 1 of one of the rows, and NULL in all others. */
  readonly folding?: FoldingOptions | null
}

/** How to make one value of rows. The caller provides the SQL. */
export interface FoldingOptions {
  /** Makes the row that `value` takes from the SQL of a subquery's whole row. */
  readonly row: (row: string) => string
  /** Makes the value from the SQL of such a row. */
  readonly value: (row: string) => string
}

/**
 * How to send change notifications. The caller provides the SQL that notifies; the SQL of the change is
 * printed here, where the rows are in scope.
 */
export interface NotifyOptions {
  /** `one` if the write has at most one row. */
  readonly rows: 'one' | 'many'
  /** The key's columns by name; sent as a JSON object. */
  readonly key: ReadonlyMap<string, Expression>
  /**
   * The letter of the operation. If it differs by row, `insert` applies where `created` is true, and `update`
   * elsewhere.
   */
  readonly operation: string | { readonly created: Expression; readonly insert: string; readonly update: string }
  /** Returns two more columns: the key as JSON, and the row before the write. */
  readonly before: RowBefore
  /**
   * The column that determines which listeners the row concerns, and the SQL of a number that represents its
   * value.
   */
  readonly route: { readonly column: Expression; readonly number: (value: string) => string } | null
  /**
   * Makes an expression from the SQL of one row's change, the JSON `["I",{"id":7}]`, with `route` as the
   * third item. It is evaluated for the row.
   */
  readonly notifyOne: (change: string) => string
  /** Makes a condition over all rows, which is evaluated once, also without any row. */
  readonly notifyAll: (rows: NotifiedRows) => string
}

/** The rows of a write in a common table, as SQL. */
export interface NotifiedRows {
  /** The name of the common table. */
  readonly from: string
  /** The change of a row of `from`, an expression that costs more than the write of the row. */
  readonly change: string
  /** The number for the routing value of a row of `from`; null without a route. */
  readonly route: string | null
}

/**
 * Prints a statement that returns the written rows, in the order of the write or of `returned`. Column 1 is
 * the row as a JSON object of exactly the fields of `returning` and the nests of `returned`; it is omitted if
 * there are none. The keys, the condition of `returned` and the images follow. With none of these, the
 * statement returns no rows, and the command tag alone has their number. A notification of one row adds a
 * column without information, at the end or before those of `before`.
 *
 * @throws LanguageError for a write that has no SQL equivalent or is nested too deep.
 */
export function printWriteRows(write: Add | SetStatement | Del, options: WriteRowsOptions): Sql {
  assertNesting(write)
  assertNesting(options.keys)
  const printer = createPrinter(write, { ...options, parameters: options.parameters ?? 'keep' })
  const around = withCommonTables(OUTERMOST, write.with)
  const { returned, ...own } = write
  const bare = { ...own, with: null, returning: [] }
  const head = printWith(write.with, OUTERMOST, printer)
  const statement = printStatement(bare, around, printer)
  const scope = returningScope(write, around)
  const hasRow = (write.returning?.length ?? 0) + (returned?.nests.length ?? 0) > 0
  const { notify = null, images = null, rowsMax, folding = null } = options
  const row = hasRow ? [printRow(write, scope, printer, folding)] : []
  const all = returned?.where == null ? options.keys : [...options.keys, returned.where]
  const keys = all.map(key => printer.expression(key, scope, LEVEL.any))
  const order = (returned?.orderBy ?? []).map(({ expression, descending, nulls }) => ({
    ...{ value: printer.expression(expression, scope, LEVEL.any), descending, nulls },
  }))
  const columns = [
    ...row,
    ...keys,
    ...(images === null ? [] : Object.values(printRowImages(write, images, scope, printer))),
  ]
  const check = options.check == null ? null : printer.expression(options.check, scope, LEVEL.any)
  // One row is notified as it is written; several rows when all are written.
  const notifiesPerRow = notify?.rows === 'one' && rowsMax === null && check === null && folding === null
  const within = notifiesPerRow ? 'the write' : 'the common table'
  const notification = notify === null ? null : printNotify(write, notify, scope, printer, within)
  const answered =
    notification === null || !notifiesPerRow
      ? columns
      : [...columns, notify.notifyOne(notification.change), ...notification.before]
  const gathered = notifiesPerRow ? null : notification
  const isPlain = rowsMax === null && check === null && gathered === null && folding === null
  if (isPlain && order.length === 0) {
    return { text: `${head}${statement}${returning(answered)}`, parameters: printer.parameters }
  }
  const name = unusedName(write)
  const conditions = [
    ...(check === null ? [] : [HELD]),
    ...(rowsMax === null ? [] : [printRowsMax(rowsMax, name, printer)]),
    ...(notify === null || gathered === null
      ? []
      : [notify.notifyAll({ from: name, change: gathered.change, route: gathered.route })]),
  ]
  const text = printGathered({
    head,
    statement,
    columns: answered,
    check,
    notify: gathered,
    conditions,
    order,
    folding,
    name,
  })
  return { text, parameters: printer.parameters }
}

/** The SQL of a row's change notification. */
interface PrintedNotify {
  /** The columns of the common table that `change` and `route` are computed from. */
  readonly columns: readonly string[]
  readonly change: string
  readonly route: string | null
  readonly before: readonly string[]
}

/**
 * Prints the change of a row: either where the row is written, or from the columns of a common table, so that
 * it is computed only if there is a listener.
 */
function printNotify(
  write: Add | SetStatement | Del,
  { key, operation, before, route: by }: NotifyOptions,
  scope: NameScope,
  printer: Printer,
  within: 'the write' | 'the common table',
): PrintedNotify {
  const columns: string[] = []
  const print = (expression: Expression) => printer.expression(expression, scope, LEVEL.any)
  const known = (expression: Expression): string => {
    if (within === 'the write') return print(expression)
    const name = `n${columns.length + 1}`
    columns.push(`${print(expression)} AS ${name}`)
    return name
  }
  // Not printed from a tree: the column names would become parameters.
  const objectOf = (sqlOf: (value: Expression) => string) =>
    `pg_catalog.jsonb_build_object(${[...key]
      .flatMap(([name, value]) => [quoteLiteral(name), sqlOf(value)])
      .join(', ')})::text`
  const letter =
    typeof operation === 'string'
      ? quoteLiteral(`["${operation}",`)
      : `(CASE WHEN ${known(operation.created)} THEN ${quoteLiteral(`["${operation.insert}",`)} ` +
        `ELSE ${quoteLiteral(`["${operation.update}",`)} END)`
  const route = by === null ? null : by.number(known(by.column))
  const end = route === null ? "']'" : `',' || coalesce(${route}::text, 'null') || ']'`
  const change = `${letter} || ${objectOf(known)} || ${end}`
  if (before === 'none') return { columns, change, route, before: [] }
  return { columns, change, route, before: [objectOf(print), rowImage(relationBefore(before, write))] }
}

/**
 * `(SELECT row_to_json(r.*) FROM (SELECT orders.id, orders.total) AS r)`: an object of these columns, as in a
 * read.
 */
function printRow(
  write: Add | SetStatement | Del,
  scope: NameScope,
  printer: Printer,
  folding: FoldingOptions | null,
): string {
  const fields = (write.returning ?? []).flatMap(item =>
    item.kind === 'star' && item.of === null ? everything(write) : [item],
  )
  const nests = write.returned?.nests ?? []
  const list = printFields({ fields, nests, bare: fields.length === 0 }, scope, printer)
  if (folding !== null) return `(SELECT ${folding.row(WHOLE_ROW)} FROM (SELECT ${list}) AS ${WHOLE_ROW})`
  return `(SELECT row_to_json(r.*) FROM (SELECT ${list}) AS r)`
}

/**
 * The meaning of `returning *`: all columns of the target and of the joined sources. A plain `*` would need a
 * `FROM` clause.
 */
function everything(write: Add | SetStatement | Del): readonly Field[] {
  const target = targetName(write)
  const joined = write.kind === 'add' ? [] : joinSources(write.joins)
  return [target, ...joined.map(sourceName)].map(name => star(name))
}

function returning(columns: readonly string[]): string {
  return columns.length === 0 ? '' : ` RETURNING ${columns.join(', ')}`
}

/** Names of the common table's columns that are returned. */
function columnName(index: number): string {
  return `c${index + 1}`
}

/** The name of the common table's column with the check. */
const HELD = 'held'

/** A member of the order of the rows, with the SQL of its value. */
interface PrintedOrder extends Pick<Order, 'descending' | 'nulls'> {
  readonly value: string
}

interface Gathered {
  readonly head: string
  readonly statement: string
  readonly columns: readonly string[]
  readonly check: string | null
  readonly notify: PrintedNotify | null
  readonly conditions: readonly string[]
  readonly order: readonly PrintedOrder[]
  readonly folding: FoldingOptions | null
  /** Name of the common table. */
  readonly name: string
}

/**
 * Makes the write a common table, which PostgreSQL executes to completion whatever reads it (PostgreSQL
 * manual, 7.8.4). Its rows are then checked, counted and notified. The conditions thus hold within one
 * statement, even if rows are inserted concurrently.
 */
function printGathered({
  head,
  statement,
  columns,
  check,
  notify: notification,
  conditions,
  order,
  folding,
  name,
}: Gathered): string {
  const answered = [...columns, ...(notification?.before ?? [])]
  const names = answered.map((_, index) => columnName(index))
  const named = [
    ...answered.map((column, index) => `${column} AS ${names[index]}`),
    ...(check === null ? [] : [`${check} AS ${HELD}`]),
    ...(notification?.columns ?? []),
    ...order.map(({ value }, index) => `${value} AS ${orderName(index)}`),
  ]
  // The common table must have a column, so that its rows can be counted.
  const inner = named.length === 0 ? ['1 AS c1'] : named
  const shown = folding === null ? names : [printFoldedOnce(folding, name, order), ...names.slice(1)]
  const selected = answered.length === 0 ? '' : ` ${shown.join(', ')}`
  const table = `${name} AS (${statement}${returning(inner)})`
  const opening = head === '' ? 'WITH ' : `${head.trimEnd()}, `
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  return `${opening}${table} SELECT${selected} FROM ${name}${where}${printOrder(order)}`
}

/** The value of all rows in one of them, so that it is sent once. */
function printFoldedOnce({ value }: FoldingOptions, name: string, order: readonly PrintedOrder[]): string {
  const rows = `(SELECT * FROM ${name}${printOrder(order)}) AS f`
  return `CASE WHEN row_number() OVER () = 1 THEN (SELECT ${value('f.c1')} FROM ${rows}) END`
}

function orderName(index: number): string {
  return `o${index + 1}`
}

function printOrder(order: readonly PrintedOrder[]): string {
  if (order.length === 0) return ''
  const items = order.map(({ descending, nulls }, index) => {
    const placed = nulls === null ? '' : ` NULLS ${nulls.toUpperCase()}`
    return `${orderName(index)}${descending ? ' DESC' : ''}${placed}`
  })
  return ` ORDER BY ${items.join(', ')}`
}

/** If the number of rows is wrong, this casts a text to a number, which fails and quotes the text. */
function printRowsMax(
  { limit, marker, isExact = false }: NonNullable<WriteRowsOptions['rowsMax']>,
  name: string,
  printer: Printer,
): string {
  const count = 'COUNT(*)'
  const fails = `(${quoteLiteral(marker)} || ${count})::int4 = 0`
  const max = printer.expression(limit, OUTERMOST, LEVEL.any)
  return `(SELECT CASE WHEN ${count} ${isExact ? '<>' : '>'} ${max} THEN ${fails} ELSE true END FROM ${name})`
}

/**
 * The scope of `returning`: the target, the joined sources, and the target's row before and after the write
 * (PostgreSQL manual, 6.4).
 */
function returningScope(write: Add | SetStatement | Del, around: NameScope): NameScope {
  const target = { table: write.table, alias: write.kind === 'add' ? null : write.alias }
  const version = (name: string): NamedSource => ({ name, table: write.table, aliased: true, query: null })
  const joined = write.kind === 'add' ? [] : joinSources(write.joins)
  return writeScope(around, target, joined, [version('old'), version('new')])
}
