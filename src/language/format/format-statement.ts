/** Formats statements. */

import { BINDING } from '../syntax/binding.ts'
import type {
  Add,
  AddValues,
  Assignment,
  ColumnDefinition,
  Conflict,
  Del,
  Expression,
  Field,
  Index,
  Make,
  Merge,
  MergeAction,
  MergeWhen,
  Set as SetStatement,
  Statement,
} from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { commaList, concat, type Doc, enclosed, group, indent, join, line, lines } from './document.ts'
import { formatExpression } from './format-expression.ts'
import { formatList, nonEmpty } from './format-list.ts'
import { formatType } from './format-literal.ts'
import { formatAnyName, formatName, noTextForm } from './format-name.ts'
import {
  formatCondition,
  formatFields,
  formatGet,
  formatJoins,
  formatNames,
  formatSource,
  formatTable,
  formatTarget,
  formatWith,
} from './format-query.ts'
import type { Formatter } from './formatter.ts'

/**
 * The document of a statement, with one clause per line.
 *
 * @throws LanguageError if a part of the tree has no text form.
 */
export function statementDocument(statement: Statement): Doc {
  return FORMATTER.statement(statement)
}

/** The functions that format the parts of a tree. */
export const FORMATTER: Formatter = {
  expression(expression, floor = BINDING.any) {
    return formatExpression(expression, floor, this)
  },
  query(get) {
    if (get.purpose !== 'rows') throw new LanguageError(`${get.purpose} is not possible in parentheses`, get.span)
    return formatGet(get, this)
  },
  statement(statement) {
    switch (statement.kind) {
      case 'get':
        return formatGet(statement, this)
      case 'add':
        return formatAdd(statement, this)
      case 'set':
        return formatSet(statement, this)
      case 'del':
        return formatDel(statement, this)
      case 'merge':
        return formatMerge(statement, this)
      case 'make':
        return formatMake(statement, this)
      case 'index':
        return formatIndex(statement, this)
      case 'call':
        return [`call ${formatTable(statement.function)}`, enclosed('(', formatList(statement.arguments, this), ')')]
      case 'begin':
      case 'commit':
      case 'rollback':
        return statement.kind
      case 'explain':
        return ['explain ', this.statement(statement.statement)]
      default:
        return unknownNode(statement)
    }
  },
}

// ---- writes -----------------------------------------------------------------------------------------------

function formatAdd(add: Add, formatter: Formatter): Doc {
  if (add.returning?.length === 0) throw noTextForm('an add that returns nothing', add.span)
  const columns = commaList(add.columns.map(name => formatName(name.text)))
  return lines([
    formatWith(add.with, formatter),
    `add ${formatTable(add.table)}`,
    add.columns.length > 0 ? group('fields', indent(line, columns)) : '',
    formatRows(add, formatter),
    add.conflict === null ? '' : formatConflict(add.conflict, formatter),
    formatReturning(add.returning, formatter),
  ])
}

function formatRows({ rows }: Add, formatter: Formatter): Doc {
  switch (rows.kind) {
    case 'values':
      return formatValues(rows, formatter)
    case 'from':
      return ['from ', enclosed('(', formatter.query(rows.query), ')')]
    case 'defaults':
      return 'defaults'
    default:
      return unknownNode(rows)
  }
}

function formatValues({ rows }: AddValues, formatter: Formatter): Doc {
  for (const row of nonEmpty(rows, 'the rows of an add')) nonEmpty(row, 'the values of a row')
  const [only] = rows
  // A single row that consists of a row in parentheses would be parsed as its values.
  if (only !== undefined && rows.length === 1 && only.every(({ kind }) => kind !== 'row')) {
    return group('values', indent(line, formatList(only, formatter)))
  }
  return group('values', indent(line, commaList(rows.map(row => enclosed('(', formatList(row, formatter), ')')))))
}

function formatConflict({ target, update }: Conflict, formatter: Formatter): Doc {
  const head = ['conflict ', target.length > 0 ? [formatNames(target), ' '] : '']
  if (update === null) return [head, 'nothing']
  return [
    group(head, 'update', indent(line, formatAssignments(update.assignments, formatter))),
    update.where === null ? '' : indent(line, formatCondition('where', update.where, formatter)),
  ]
}

function formatAssignments(assignments: readonly Assignment[], formatter: Formatter): Doc {
  return commaList(
    nonEmpty(assignments, 'assignments').map(({ column, value }) =>
      concat(`${formatName(column.text)} = `, formatter.expression(value)),
    ),
  )
}

function formatReturning(fields: readonly Field[] | null, formatter: Formatter): Doc {
  return formatFields('returning', fields ?? [], formatter)
}

function formatSet(set: SetStatement, formatter: Formatter): Doc {
  return lines([
    formatWith(set.with, formatter),
    [`set ${formatTarget(set.table, set.alias)}`, formatJoins(set.joins, formatter)],
    group('values', indent(line, formatAssignments(set.assignments, formatter))),
    formatWriteWhere(set.where, formatter),
    formatReturning(set.returning, formatter),
  ])
}

function formatDel(del: Del, formatter: Formatter): Doc {
  return lines([
    formatWith(del.with, formatter),
    [`del ${formatTarget(del.table, del.alias)}`, formatJoins(del.joins, formatter)],
    formatWriteWhere(del.where, formatter),
    formatReturning(del.returning, formatter),
  ])
}

function formatWriteWhere(where: Expression | 'all', formatter: Formatter): Doc {
  return where === 'all' ? 'where all' : formatCondition('where', where, formatter)
}

function formatMerge(merge: Merge, formatter: Formatter): Doc {
  return lines([
    formatWith(merge.with, formatter),
    `merge ${formatTarget(merge.table, merge.alias)}`,
    ['using ', formatSource(merge.using, formatter), formatCondition(' on', merge.on, formatter)],
    ...nonEmpty(merge.whens, 'the branches of a merge').map(when => formatWhen(when, formatter)),
  ])
}

/** `when matched and n > 1 then delete`. */
export function formatWhen({ match, and, action }: MergeWhen, formatter: Formatter): Doc {
  return [`when ${match}`, formatCondition(' and', and, formatter), ' then ', formatAction(action, formatter)]
}

function formatAction(action: MergeAction, formatter: Formatter): Doc {
  switch (action.kind) {
    case 'merge update':
      return group('update set', indent(line, formatAssignments(action.assignments, formatter)))
    case 'merge insert':
      return [
        'insert ',
        action.columns.length > 0 ? [formatNames(action.columns), ' '] : '',
        'values ',
        enclosed('(', formatList(nonEmpty(action.values, 'the values of an insert'), formatter), ')'),
      ]
    case 'merge delete':
      return 'delete'
    case 'merge nothing':
      return 'nothing'
    default:
      return unknownNode(action)
  }
}

// ---- definitions ------------------------------------------------------------------------------------------

function formatMake(make: Make, formatter: Formatter): Doc {
  const columns = nonEmpty(make.columns, 'the columns of make').map(column => formatColumn(column, formatter))
  const constraints = make.constraints.map(({ kind, columns: names }) => [`${kind} `, formatNames(names)])
  return [
    group(`make ${formatTable(make.table)}`, indent(line, commaList(columns))),
    constraints.map(constraint => [line, constraint]),
  ]
}

/** `id:int8:pk`. */
export function formatColumn(column: ColumnDefinition, formatter: Formatter): Doc {
  const parts: Doc[] = [formatName(column.name.text), formatType(column.type)]
  if (column.primaryKey) parts.push('pk')
  if (column.unique) parts.push('unique')
  if (column.nullable) parts.push('nullable')
  if (column.default !== null) parts.push(['default=', formatter.expression(column.default)])
  if (column.check !== null) parts.push(['check=', formatter.expression(column.check)])
  if (column.references !== null) {
    parts.push(`ref=${formatTable(column.references.table)}.${formatAnyName(column.references.column)}`)
  }
  return join(parts, ':')
}

function formatIndex(index: Index, formatter: Formatter): Doc {
  const columns = commaList(nonEmpty(index.columns, 'the columns of an index').map(name => formatName(name.text)))
  return lines([
    group(`index ${formatName(index.name.text)} on ${formatTable(index.table)}`, indent(line, columns)),
    index.unique ? 'unique' : '',
    formatCondition('where', index.where, formatter),
  ])
}
