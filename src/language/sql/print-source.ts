/** Prints sources of rows: tables, derived tables, joins, and their conditions. */

import type {
  ArraySource,
  Expression,
  FunctionSource,
  Get,
  Join,
  JoinType,
  RecordSource,
  Source,
  TableName,
} from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { type AliasedTable, keyByName } from '../tree/relation-name.ts'
import { lateralScope, type NameScope } from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import type { Printer } from './printer.ts'
import { quoteIdentifier, quoteQualifier } from './quote.ts'

const JOIN_WORDS: Readonly<Record<JoinType, string>> = {
  left: 'LEFT JOIN',
  right: 'RIGHT JOIN',
  full: 'FULL JOIN',
  inner: 'INNER JOIN',
  cross: 'CROSS JOIN',
}

/** `users`, `sales.orders`. */
export function printTableName(table: TableName): string {
  return table.schema === null
    ? quoteIdentifier(table.name)
    : `${quoteIdentifier(table.schema)}.${quoteIdentifier(table.name)}`
}

/** `users AS u`; an alias that equals the table's name is omitted. */
export function printTarget(table: TableName, alias: string | null): string {
  return alias === null || alias === table.name
    ? printTableName(table)
    : `${printTableName(table)} AS ${quoteIdentifier(alias)}`
}

/** Prints a source that cannot refer to the other sources; `scope` is that of the query that contains it. */
export function printSource(source: Source, scope: NameScope, printer: Printer): string {
  const outer = scope.parent ?? scope
  switch (source.kind) {
    case 'table source':
      return printTarget(source.table, source.alias)
    case 'query source':
      return `(${printer.query(source.query, outer)}) AS ${quoteIdentifier(source.alias)}`
    case 'record source':
      return printRecordSource(source, outer, printer)
    case 'array source':
      return printArraySource(source, outer, printer)
    case 'function source':
      return printFunctionSource(source, outer, printer)
    default:
      return unknownNode(source)
  }
}

/**
 * Prints a record source with explicit types. `json_populate_recordset` would look up the table's type for
 * each row.
 */
function printRecordSource(source: RecordSource, scope: NameScope, printer: Printer): string {
  const columns = source.columns.map(({ name, type }) => `${quoteIdentifier(name)} ${printer.type(type)}`)
  const value = printer.expression(source.value, scope, LEVEL.any)
  const expand = source.many ? 'json_to_recordset' : 'json_to_record'
  return `${expand}(${value}) AS ${quoteIdentifier(source.alias)}(${columns.join(', ')})`
}

/**
 * Prints an array source: texts, cast to the types of the columns. Arrays of these types are not possible,
 * because `unnest` flattens nested arrays. In the list of a SELECT, PostgreSQL reads arrays of equal length
 * in step; in FROM, it would first copy all their elements.
 */
function printArraySource(source: ArraySource, scope: NameScope, printer: Printer): string {
  const { columns, values } = source
  const names = columns.map(({ name }) => quoteIdentifier(name))
  const casts = columns.map(({ type }, index) => `CAST(u.${names[index]} AS ${printer.type(type)}) AS ${names[index]}`)
  const arrays = values.map(value => `CAST(${printer.expression(value, scope, LEVEL.any)} AS text[])`)
  const rows = arrays.map((array, index) => `pg_catalog.unnest(${array}) AS ${names[index]}`)
  const texts = `(SELECT ${rows.join(', ')}) AS u`
  return `(SELECT ${casts.join(', ')} FROM ${texts}) AS ${quoteIdentifier(source.alias)}`
}

/** Prints a function source; `scope` is that of its arguments. */
function printFunctionSource(source: FunctionSource, scope: NameScope, printer: Printer): string {
  const list = source.arguments.map(argument => {
    const name = argument.name === null ? '' : `${quoteQualifier(argument.name)} => `
    return `${argument.variadic ? 'VARIADIC ' : ''}${name}${printer.expression(argument.value, scope, LEVEL.any)}`
  })
  // In FROM, PostgreSQL requires the columns of a record.
  if (source.selected === true) {
    const name = quoteIdentifier(source.columns[0] ?? '')
    const selected = `SELECT ${printTableName(source.function)}(${list.join(', ')}) AS ${name}`
    return `LATERAL (${selected}) AS ${quoteIdentifier(source.alias)}`
  }
  const columns = source.columns.length === 0 ? '' : `(${source.columns.map(quoteIdentifier).join(', ')})`
  return `${printTableName(source.function)}(${list.join(', ')}) AS ${quoteIdentifier(source.alias)}${columns}`
}

/**
 * Prints one join of a read. `index` is its position among the joins, which determines what a `lateral` query
 * sees.
 */
export function printJoin(join: Join, index: number, get: Get, scope: NameScope, printer: Printer): string {
  const source = printJoined(join, index, scope, printer)
  if (join.type === 'cross') {
    if (join.on !== null) throw new LanguageError('cross join takes no "on"; write inner join', join.span)
    return `CROSS JOIN ${source}`
  }
  const on = join.lateral && join.on === null ? 'true' : printOn(joinCondition(join, get.source), scope, printer)
  return `${JOIN_WORDS[join.type]} ${source} ON ${on}`
}

/** Prints the joined source, with `LATERAL` if the text has it. */
export function printJoined(join: Join, index: number, scope: NameScope, printer: Printer): string {
  const left = lateralScope(scope.relations.slice(0, index + 1), scope.parent ?? scope)
  // A function sees the sources to its left even without LATERAL (PostgreSQL manual, 7.2.1.5).
  if (join.source.kind === 'function source') return printFunctionSource(join.source, left, printer)
  if (!join.lateral) return printSource(join.source, scope, printer)
  if (join.source.kind !== 'query source') {
    throw new LanguageError(
      'join lateral takes a query, "(get …) alias": a table cannot refer to the sources on its left',
      join.span,
    )
  }
  return `LATERAL (${printer.query(join.source.query, left)}) AS ${quoteIdentifier(join.source.alias)}`
}

/** The join condition: as written, or derived from the names of a foreign key. */
export function joinCondition(join: Join, first: Source): Expression {
  if (join.on !== null) return join.on
  if (join.source.kind !== 'table source') {
    throw new LanguageError(
      `the join of the query ${join.source.alias} needs "on": it has no foreign key to follow`,
      join.span,
    )
  }
  return keyByName(sideOf(join.source), sideOf(first))
}

function printOn(condition: Expression, scope: NameScope, printer: Printer): string {
  return condition.kind === 'literal' && condition.value === 'true'
    ? 'true'
    : printer.expression(condition, scope, LEVEL.any)
}

/** The conditions of sources, `users[active = true]`, which become part of the statement's `where`. */
export function sourceConditions(sources: readonly Source[]): readonly Expression[] {
  const conditions: Expression[] = []
  for (const source of sources) {
    if (source.kind === 'table source' && source.condition !== null) conditions.push(source.condition)
  }
  return conditions
}

/** ` WHERE a AND b`, or an empty text without conditions. */
export function printConditions(
  word: 'WHERE' | 'HAVING',
  conditions: readonly Expression[],
  scope: NameScope,
  printer: Printer,
): string {
  if (conditions.length === 0) return ''
  const floor = conditions.length > 1 ? LEVEL.and : LEVEL.any
  return ` ${word} ${conditions.map(condition => printer.expression(condition, scope, floor)).join(' AND ')}`
}

function sideOf(source: Source): AliasedTable {
  return source.kind === 'table source'
    ? { table: source.table.name, alias: source.alias ?? source.table.name }
    : { table: source.alias, alias: source.alias }
}
