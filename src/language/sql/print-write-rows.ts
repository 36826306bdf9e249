/** The statement behind a write's answer: it writes, and PostgreSQL makes the JSON of each row that `returning` asks for. */

import type { Add, Del, Expression, Field, Set as SetStatement } from '../tree/ast.ts'
import { star } from '../tree/build.ts'
import { assertNesting } from '../tree/nesting.ts'
import {
  joinSources,
  OUTERMOST,
  type Relation,
  type Scope,
  sourceName,
  targetName,
  withCommonTables,
  writeScope,
} from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import { createPrinter, printStatement } from './print.ts'
import { type Images, imageOf, printImages, type RowBefore, relationOf } from './print-images.ts'
import { printFields, printWith } from './print-query.ts'
import { unusedName } from './print-rows.ts'
import { answersWhole, printStored, type Stored } from './print-stored.ts'
import type { ParameterMode, Printer, Sql } from './printer.ts'
import { quoteLiteral } from './quote.ts'
import type { Storing } from './storing.ts'

export type { Images } from './print-images.ts'

export interface WriteRowsOptions {
  /** Columns of the answer beside the row; `old` and `new` are in scope for PostgreSQL 18. */
  readonly keys: readonly Expression[]
  /** How many rows may be written: one more, and the statement fails with `marker` and their number in its message. */
  readonly rowsMax: { readonly limit: Expression; readonly marker: string } | null
  /** What must be true of each row as it was written, or fail. */
  readonly check?: Expression | null
  readonly parameters?: ParameterMode
  /** As in `PrintOptions`. */
  readonly repeatedCharactersMax?: number
  /** Three more columns behind the keys: what happened to the row, and all of it as JSON, after and before. */
  readonly images?: Images | null
  /** The images are not answered, but handed to another statement in the same one, which writes them down. */
  readonly storing?: Storing | null
  /** All columns of the table, in its order: an answer of them is the row's image as well. */
  readonly columns?: readonly string[]
  /** Whoever wants to hear of the rows written is told in the same statement. */
  readonly announce?: Announcement | null
}

/** How the rows written are told of; the SQL that tells is the caller's, and what it tells is made here, where the rows are in scope. */
export interface Announcement {
  /** `one`: the write has one row at most. */
  readonly rows: 'one' | 'many'
  /** The columns of the key by their names; told as the JSON object that `jsonb_build_object` makes of them. */
  readonly key: ReadonlyMap<string, Expression>
  /** The letter that says what happened to a row; an expression where that differs: `created` if it is true. */
  readonly operation: string | { readonly created: Expression; readonly insert: string; readonly update: string }
  /** Answer two more columns: the key as JSON, and the row as it was before. */
  readonly before: RowBefore
  /** A column that says whom the row concerns, and the SQL of a number that stands for its value. */
  readonly route: { readonly column: Expression; readonly number: (value: string) => string } | null
  /** An expression over the SQL of one row's change, the JSON `["I",{"id":7}]`, with `route` as the third item; evaluated for the row. */
  readonly tellOne: (change: string) => string
  /** A condition over all rows of `from`, whose columns `change` and `route` (null: there is none) have them; evaluated once, also for none. */
  readonly tellAll: (from: string, change: string, route: string | null) => string
}

/**
 * Its rows are the rows written, in the order of the write: column 1 is the row as a JSON object of exactly the fields of `returning`, left out
 * where there are none; then the keys, then the images. Without any of them there are no rows, and only the command tag tells their number. An
 * announcement of one row adds a column that says nothing, at the end or before those of `before`.
 */
export function printWriteRows(write: Add | SetStatement | Del, options: WriteRowsOptions): Sql {
  assertNesting(write)
  assertNesting(options.keys)
  const printer = createPrinter({ ...options, parameters: options.parameters ?? 'keep' })
  const around = withCommonTables(OUTERMOST, write.with)
  const bare = { ...write, with: null, returning: [] }
  const head = printWith(write.with, OUTERMOST, printer)
  const statement = printStatement(bare, around, printer)
  const scope = returningScope(write, around)
  const row = write.returning === null || write.returning.length === 0 ? [] : [printRow(write, scope, printer)]
  const keys = options.keys.map(key => printer.expression(key, scope, LEVEL.any))
  const { announce = null, storing = null, images = null, rowsMax } = options
  const answersImages = storing === null && images !== null
  const columns = [...row, ...keys, ...(answersImages ? Object.values(printImages(write, images, scope, printer)) : [])]
  const check = options.check == null ? null : printer.expression(options.check, scope, LEVEL.any)
  const told = announce === null ? null : printTold(write, announce, scope, printer)
  // Of one row it is told as it is written; of several when all are.
  const isToldAtOnce = announce?.rows === 'one' && rowsMax === null && check === null
  const answered =
    told === null || !isToldAtOnce ? columns : [...columns, announce.tellOne(told.change), ...told.before]
  const gathered = isToldAtOnce ? null : told
  if (rowsMax === null && check === null && storing === null && gathered === null) {
    return { text: `${head}${statement}${returning(answered)}`, parameters: printer.parameters }
  }
  const name = unusedName(write)
  const conditions = [
    ...(check === null ? [] : [HELD]),
    ...(rowsMax === null ? [] : [printRowsMax(rowsMax, name, printer)]),
    ...(announce === null || gathered === null
      ? []
      : [announce.tellAll(name, CHANGE, gathered.route === null ? null : ROUTE)]),
  ]
  const whole = options.columns !== undefined && answersWhole(write, options.columns) ? columnName(0) : null
  const stored =
    storing === null || images === null ? null : printStored({ write, name, images, storing, whole, scope, printer })
  const text = printGathered({ head, statement, columns: answered, check, told: gathered, stored, conditions, name })
  return { text, parameters: printer.parameters }
}

/** The SQL of what is told of a row. */
interface Told {
  readonly change: string
  readonly route: string | null
  readonly before: readonly string[]
}

function printTold(
  write: Add | SetStatement | Del,
  { key, operation, before, route: by }: Announcement,
  scope: Scope,
  printer: Printer,
): Told {
  const print = (expression: Expression) => printer.expression(expression, scope, LEVEL.any)
  // Not a tree: its names would become parameters.
  const members = [...key].flatMap(([name, value]) => [quoteLiteral(name), print(value)])
  const keyJson = `pg_catalog.jsonb_build_object(${members.join(', ')})::text`
  const letter =
    typeof operation === 'string'
      ? quoteLiteral(`["${operation}",`)
      : `CASE WHEN ${print(operation.created)} THEN ${quoteLiteral(`["${operation.insert}",`)} ELSE ${quoteLiteral(`["${operation.update}",`)} END`
  const route = by === null ? null : by.number(print(by.column))
  const end = route === null ? "']'" : `',' || coalesce(${route}::text, 'null') || ']'`
  const change = `${typeof operation === 'string' ? letter : `(${letter})`} || ${keyJson} || ${end}`
  if (before === 'none') return { change, route, before: [] }
  return { change, route, before: [keyJson, imageOf(relationOf(before, write))] }
}

/** `(SELECT row_to_json(r.*) FROM (SELECT orders.id, orders.total) AS r)`: an object of these columns, as a read makes it. */
function printRow(write: Add | SetStatement | Del, scope: Scope, printer: Printer): string {
  const fields = (write.returning ?? []).flatMap(item =>
    item.kind === 'star' && item.of === null ? everything(write) : [item],
  )
  return `(SELECT row_to_json(r.*) FROM (SELECT ${printFields(fields, [], scope, printer)}) AS r)`
}

/** A bare `*` needs a `FROM` of its own; what `returning *` means is everything of the target and of what is joined. */
function everything(write: Add | SetStatement | Del): readonly Field[] {
  const target = targetName(write)
  const joined = write.kind === 'add' ? [] : joinSources(write.joins)
  return [target, ...joined.map(sourceName)].map(name => star(name))
}

function returning(columns: readonly string[]): string {
  return columns.length === 0 ? '' : ` RETURNING ${columns.join(', ')}`
}

/** Of the common table, what is answered. */
function columnName(index: number): string {
  return `c${index + 1}`
}

/** And what is not. */
const HELD = 'held'
const CHANGE = 'change'
const ROUTE = 'route'

interface Gathered {
  readonly head: string
  readonly statement: string
  readonly columns: readonly string[]
  readonly check: string | null
  readonly told: Told | null
  readonly stored: Stored | null
  readonly conditions: readonly string[]
  /** Of the common table. */
  readonly name: string
}

/**
 * The write becomes a common table, which PostgreSQL runs to its end whatever reads it (PostgreSQL manual, 7.8.4); then its rows are looked at, counted, and told
 * of. So what must hold of them does in the one statement, against rows that appear meanwhile too.
 */
function printGathered({ head, statement, columns, check, told, stored, conditions, name }: Gathered): string {
  const answered = [...columns, ...(told?.before ?? [])]
  const names = answered.map((_, index) => columnName(index))
  const named = [
    ...answered.map((column, index) => `${column} AS ${names[index]}`),
    ...(check === null ? [] : [`${check} AS ${HELD}`]),
    ...(told === null ? [] : [`${told.change} AS ${CHANGE}`]),
    ...(told?.route == null ? [] : [`${told.route} AS ${ROUTE}`]),
    ...(stored?.columns ?? []),
  ]
  // Something must come out of the common table to be counted.
  const inner = named.length === 0 ? ['1 AS c1'] : named
  const selected = answered.length === 0 ? '' : ` ${names.join(', ')}`
  const table = `${name} AS (${statement}${returning(inner)})`
  const opening = head === '' ? 'WITH ' : `${head.trimEnd()}, `
  const second = stored === null ? '' : `, ${stored.name} AS (${stored.statement})`
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  return `${opening}${table}${second} SELECT${selected} FROM ${name}${where}`
}

/** Too many rows make a number of a text that is none. */
function printRowsMax(
  { limit, marker }: NonNullable<WriteRowsOptions['rowsMax']>,
  name: string,
  printer: Printer,
): string {
  const count = 'COUNT(*)'
  const tooMany = `(${quoteLiteral(marker)} || ${count})::int4 = 0`
  return `(SELECT CASE WHEN ${count} > ${printer.expression(limit, OUTERMOST, LEVEL.any)} THEN ${tooMany} ELSE true END FROM ${name})`
}

/** The scope of `returning`: the target, what it is joined with, and the target's versions before and after (PostgreSQL manual, 6.4). */
function returningScope(write: Add | SetStatement | Del, around: Scope): Scope {
  const target = { table: write.table, alias: write.kind === 'add' ? null : write.alias }
  const version = (name: string): Relation => ({ name, table: write.table, aliased: true, query: null })
  const joined = write.kind === 'add' ? [] : joinSources(write.joins)
  return writeScope(around, target, joined, [version('old'), version('new')])
}
