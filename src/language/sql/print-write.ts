/** Prints writes: `add`, `set`, `del` and `merge`. */

import type {
  Add,
  Assignment,
  Conflict,
  Del,
  Expression,
  Field,
  Join,
  Merge,
  MergeAction,
  MergeWhen,
  Name,
  Set as SetStatement,
  Source,
} from '../tree/ast.ts'
import { childrenOf } from '../tree/children.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { excludedRelation, joinSources, type NameScope, withCommonTables, writeScope } from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import { printField, printWith } from './print-query.ts'
import {
  joinCondition,
  printConditions,
  printJoined,
  printSource,
  printTableName,
  printTarget,
  sourceConditions,
} from './print-source.ts'
import type { Printer } from './printer.ts'
import { quoteIdentifier } from './quote.ts'

/** Prints an `add` statement. */
export function printAdd(add: Add, outer: NameScope, printer: Printer): string {
  const head = printWith(add.with, outer, printer)
  const around = withCommonTables(outer, add.with)
  const scope = writeScope(around, { table: add.table, alias: null })
  const columns = add.columns.length > 0 ? ` (${printNames(add.columns)})` : ''
  const rows = printRowsToAdd(add, around, printer)
  const conflict = add.conflict === null ? '' : ` ${printConflict(add.conflict, add, around, printer)}`
  const returning = printReturning(add.returning ?? EVERYTHING, scope, printer)
  return `${head}INSERT INTO ${printTableName(add.table)}${columns} ${rows}${conflict}${returning}`
}

function printRowsToAdd(add: Add, scope: NameScope, printer: Printer): string {
  const { rows } = add
  switch (rows.kind) {
    case 'values': {
      if (rows.rows.length === 0) throw new LanguageError('add has no rows', rows.span)
      const width = add.columns.length > 0 ? add.columns.length : (rows.rows[0]?.length ?? 0)
      const lists = rows.rows.map((row, index) => {
        if (row.length !== width || width === 0) {
          throw new LanguageError(`row ${index + 1} of add has ${row.length} values; expected ${width}`, rows.span)
        }
        return `(${row.map(value => printValue(value, scope, printer)).join(', ')})`
      })
      return `VALUES ${lists.join(', ')}`
    }
    case 'from':
      return printer.query(rows.query, scope)
    case 'defaults':
      if (add.columns.length > 0)
        throw new LanguageError('add with "defaults" takes no "fields": every column has its default', rows.span)
      if (rows.items === undefined) return 'DEFAULT VALUES'
      return `SELECT FROM json_array_elements(${printer.expression(rows.items, scope, LEVEL.any)})`
    default:
      return unknownNode(rows)
  }
}

function printConflict(conflict: Conflict, add: Add, around: NameScope, printer: Printer): string {
  const target = conflict.target.length > 0 ? ` (${printNames(conflict.target)})` : ''
  if (conflict.update === null) return `ON CONFLICT${target} DO NOTHING`
  if (target === '') {
    throw new LanguageError(
      'conflict … update needs the columns of the unique key: conflict (email) update …',
      conflict.span,
    )
  }
  const scope = writeScope(around, { table: add.table, alias: null }, [], [excludedRelation(add.table)])
  const update = printAssignments(conflict.update.assignments, 'conflict update', scope, printer)
  const { where } = conflict.update
  const condition = where === null ? '' : printConditions('WHERE', [where], scope, printer)
  return `ON CONFLICT${target} DO UPDATE SET ${update}${condition}`
}

/** Prints a `set` statement. */
export function printSet(set: SetStatement, outer: NameScope, printer: Printer): string {
  const head = printWith(set.with, outer, printer)
  const scope = writeScope(withCommonTables(outer, set.with), set, joinSources(set.joins))
  let text = `${head}UPDATE ${printTarget(set.table, set.alias)}`
  const defaults = (set.defaults ?? []).map(({ text: column }) => `${quoteIdentifier(column)} = DEFAULT`)
  const assigned =
    set.assignments.length === 0 && defaults.length > 0
      ? []
      : [printAssignments(set.assignments, 'set', scope, printer)]
  text += ` SET ${[...assigned, ...defaults].join(', ')}`
  text += printWriteJoins('FROM', set, scope, printer)
  text += printWriteWhere(set, scope, printer)
  return text + printReturning(set.returning, scope, printer)
}

/** Prints a `del` statement. */
export function printDel(del: Del, outer: NameScope, printer: Printer): string {
  const head = printWith(del.with, outer, printer)
  const scope = writeScope(withCommonTables(outer, del.with), del, joinSources(del.joins))
  let text = `${head}DELETE FROM ${printTarget(del.table, del.alias)}`
  text += printWriteJoins('USING', del, scope, printer)
  text += printWriteWhere(del, scope, printer)
  return text + printReturning(del.returning, scope, printer)
}

/**
 * Prints the joins of `set` and `del`. PostgreSQL joins the target to its `FROM` list by conditions in
 * `WHERE`, which is an inner join. Outer joins between the other tables are possible. An outer join of the
 * target is not, and is rejected instead of being narrowed.
 */
function printWriteJoins(
  word: 'FROM' | 'USING',
  write: SetStatement | Del,
  scope: NameScope,
  printer: Printer,
): string {
  if (write.joins.length === 0) return ''
  const sources = write.joins.map((join, index) => {
    refuseJoin(join, index, write.kind)
    const source = printJoined(join, index, scope, printer)
    if (index === 0) return source
    if (join.type !== 'left') return `CROSS JOIN ${source}`
    const condition = conditionOf(join, write)
    refuseTarget(condition, join, write)
    return `LEFT JOIN ${source} ON ${printer.expression(condition, scope, LEVEL.any)}`
  })
  return ` ${word} ${sources.join(' ')}`
}

/**
 * The target is not part of the `FROM` list, so the conditions of joins there cannot refer to it (PostgreSQL
 * manual, UPDATE).
 */
function refuseTarget(condition: Expression, join: Join, write: SetStatement | Del): void {
  const target = write.alias ?? write.table.name
  if (!mentions(condition, target)) return
  throw new LanguageError(
    `${write.kind} cannot left join on its own table "${target}"; join on another of the tables, or write inner join`,
    join.span,
  )
}

function mentions(expression: Expression, alias: string): boolean {
  if (expression.kind === 'column') return expression.path.length > 1 && expression.path[0] === alias
  return childrenOf(expression).some(part => mentions(part, alias))
}

function refuseJoin(join: Join, index: number, statement: 'set' | 'del'): void {
  if (join.type === 'cross' && join.on !== null)
    throw new LanguageError('cross join takes no "on"; write inner join', join.span)
  if (join.type === 'inner' || join.type === 'cross') return
  if (join.type === 'left' && index > 0) return
  throw new LanguageError(
    `${statement} cannot ${join.type} join its table; write inner join, or select the keys by "in (get …)"`,
    join.span,
  )
}

/** The conditions of the inner joins and of the sources, followed by those of the statement. */
function printWriteWhere(write: SetStatement | Del, scope: NameScope, printer: Printer): string {
  const joined = write.joins
    .filter(join => join.type === 'inner' && !(join.lateral && join.on === null))
    .map(join => conditionOf(join, write))
  const own = write.where === 'all' ? [] : [write.where]
  return printConditions('WHERE', [...joined, ...sourceConditions(joinSources(write.joins)), ...own], scope, printer)
}

function conditionOf(join: Join, write: SetStatement | Del): Expression {
  return joinCondition(join, {
    kind: 'table source',
    table: write.table,
    alias: write.alias,
    condition: null,
    span: write.span,
  })
}

function printAssignments(
  assignments: readonly Assignment[],
  clause: string,
  scope: NameScope,
  printer: Printer,
): string {
  if (assignments.length === 0) throw new LanguageError(`${clause} has no assignments`)
  return assignments
    .map(({ column, value }) => `${quoteIdentifier(column.text)} = ${printValue(value, scope, printer)}`)
    .join(', ')
}

/**
 * Prints the value of a column. For a row, the column determines the types of its literals: a composite type
 * rejects parameters with other types, and a text column provides no types. Constants work in both cases.
 */
function printValue(value: Expression, scope: NameScope, printer: Printer): string {
  return printer.expression(value, scope, LEVEL.any, value.kind === 'row' ? 'constant' : 'known')
}

const EVERYTHING: readonly Field[] = [{ kind: 'star', of: null, span: { start: 0, end: 0 } }]

/** ` RETURNING id, name`, or an empty text. */
function printReturning(fields: readonly Field[] | null, scope: NameScope, printer: Printer): string {
  if (fields === null || fields.length === 0) return ''
  return ` RETURNING ${fields.map(field => printField(field, scope, printer)).join(', ')}`
}

/** Prints a `merge` statement. */
export function printMerge(merge: Merge, outer: NameScope, printer: Printer): string {
  const head = printWith(merge.with, outer, printer)
  const scope = writeScope(withCommonTables(outer, merge.with), merge, [merge.using])
  if (merge.whens.length === 0) throw new LanguageError('merge has no "when"', merge.span)
  return [
    `${head}MERGE INTO ${printTarget(merge.table, merge.alias)}`,
    `USING ${printMergeSource(merge.using, scope, printer)}`,
    // PostgreSQL does not infer a boolean here, so a literal alone has no type.
    `ON ${printer.expression(merge.on, scope, LEVEL.any, 'none')}`,
    ...merge.whens.map(when => printWhen(when, scope, printer)),
  ].join(' ')
}

/**
 * Prints the source of a merge. A condition on the source filters its rows before they are matched, because
 * `MERGE` has no `WHERE` clause.
 */
function printMergeSource(source: Source, scope: NameScope, printer: Printer): string {
  if (source.kind !== 'table source' || source.condition === null) return printSource(source, scope, printer)
  const alias = quoteIdentifier(source.alias ?? source.table.name)
  const inside: NameScope = { ...scope, relations: scope.relations.slice(1) }
  const condition = printer.expression(source.condition, inside, LEVEL.any)
  return `(SELECT * FROM ${printTarget(source.table, source.alias)} WHERE ${condition}) AS ${alias}`
}

function printWhen(when: MergeWhen, scope: NameScope, printer: Printer): string {
  const match = {
    matched: 'MATCHED',
    'not matched': 'NOT MATCHED',
    'not matched by target': 'NOT MATCHED',
    'not matched by source': 'NOT MATCHED BY SOURCE',
  }[when.match]
  const inserts = match === 'NOT MATCHED'
  const { kind } = when.action
  if (kind !== 'merge nothing' && (kind === 'merge insert') !== inserts) {
    const possible = inserts ? 'insert or nothing' : 'update, delete or nothing'
    throw new LanguageError(`"when ${when.match}" can only ${possible}`, when.span)
  }
  const condition = when.and === null ? '' : ` AND ${printer.expression(when.and, scope, LEVEL.any)}`
  return `WHEN ${match}${condition} THEN ${printAction(when.action, scope, printer)}`
}

function printAction(action: MergeAction, scope: NameScope, printer: Printer): string {
  switch (action.kind) {
    case 'merge update':
      return `UPDATE SET ${printAssignments(action.assignments, 'merge update', scope, printer)}`
    case 'merge insert': {
      if (action.values.length === 0 || (action.columns.length > 0 && action.columns.length !== action.values.length)) {
        throw new LanguageError(
          `merge inserts ${action.values.length} values into ${action.columns.length} columns`,
          action.span,
        )
      }
      const columns = action.columns.length > 0 ? ` (${printNames(action.columns)})` : ''
      const values = action.values.map(value => printValue(value, scope, printer)).join(', ')
      return `INSERT${columns} VALUES (${values})`
    }
    case 'merge delete':
      return 'DELETE'
    case 'merge nothing':
      return 'DO NOTHING'
    default:
      return unknownNode(action)
  }
}

function printNames(names: readonly Name[]): string {
  return names.map(name => quoteIdentifier(name.text)).join(', ')
}
