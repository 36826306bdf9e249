/**
 * Explains a statement as plain data for people and agents: its parts in canonical text, and notes about
 * effects that are easily overlooked.
 */

import { renderFlat } from '../format/document.ts'
import { formatParameter } from '../format/format-literal.ts'
import { formatAnyName } from '../format/format-name.ts'
import { formatTable } from '../format/format-query.ts'
import { FORMATTER, formatColumn } from '../format/format-statement.ts'
import { printSql } from '../sql/print.ts'
import { nestName } from '../sql/print-nest.ts'
import { sourceConditions } from '../sql/print-source.ts'
import type { Add, Count, Expression, Get, Join, Merge, Name, Order, Purpose, Source, Statement } from '../tree/ast.ts'
import { LanguageError, unknownNode } from '../tree/error.ts'
import { assertNesting } from '../tree/nesting.ts'
import { joinSources } from '../tree/scope.ts'
import { visit } from '../tree/walk.ts'
import {
  noteOfCall,
  notesOfAdd,
  notesOfDel,
  notesOfIndex,
  notesOfMake,
  notesOfMerge,
  notesOfRead,
  notesOfSet,
} from './explain-notes.ts'
import { conditionTexts, expressionText, fieldText, nameText } from './explain-text.ts'

/** The effect of a statement. */
export type Action =
  | 'read'
  | 'count'
  | 'export'
  | 'insert'
  /** An insert that updates existing rows. */
  | 'upsert'
  | 'update'
  | 'delete'
  | 'merge'
  | 'create table'
  | 'create index'
  | 'call'
  | 'begin'
  | 'commit'
  | 'rollback'
  /** The plan of that action. The other properties are those of the planned statement. */
  | `explain ${string}`

/** The explanation of a statement. */
export interface StatementExplanation {
  readonly action: Action
  /**
   * The table that is read or written, as in the query; null if absent or if the source is a query.
   */
  readonly table: string | null
  /**
   * The columns of the result (`*`, `count(*) as n`) of a read, a count or a delete; otherwise the columns
   * that are written (`*` is all, in order).
   */
  readonly columns: readonly string[]
  readonly joins: readonly ExplainedJoin[]
  /** The conditions that a row must satisfy, from `where` and from brackets. */
  readonly filters: readonly string[]
  readonly ordering: readonly ExplainedOrder[]
  /** A text if the limit is a parameter, or too large for a JavaScript number. */
  readonly limit: number | string | null
  readonly offset: number | string | null
  /** Each note is a sentence. */
  readonly notes: readonly string[]
}

/** A join, or the source of a merge. */
export interface ExplainedJoin {
  /** `using` is the source of a merge. */
  readonly type: Join['type'] | 'using'
  /** Null for a query, which a note shows. */
  readonly table: string | null
  readonly alias: string | null
  /** Null if the foreign key is used, and for a cross join. */
  readonly on: string | null
}

/** A member of `order by`. */
export interface ExplainedOrder {
  readonly by: string
  readonly direction: 'asc' | 'desc'
  /** PostgreSQL's default unless specified. */
  readonly nulls: 'first' | 'last'
}

/**
 * Explains a statement. A statement that has no SQL is explained too, and a note has the reason.
 *
 * @throws LanguageError if a part has no text form or the tree is too deep.
 */
export function explain(statement: Statement): StatementExplanation {
  assertNesting(statement)
  const explanation = explained(statement)
  const notes = [...refusalOf(statement), ...explanation.notes, ...parametersOf(statement)]
  return { ...explanation, notes }
}

const NOTHING: Omit<StatementExplanation, 'action'> = {
  table: null,
  columns: [],
  joins: [],
  filters: [],
  ordering: [],
  limit: null,
  offset: null,
  notes: [],
}

function explained(statement: Statement): StatementExplanation {
  switch (statement.kind) {
    case 'get':
      return explainedRead(statement)
    case 'add':
      return {
        ...NOTHING,
        action: statement.conflict?.update ? 'upsert' : 'insert',
        table: formatTable(statement.table),
        columns: addedColumns(statement),
        notes: notesOfAdd(statement),
      }
    case 'set':
      return {
        ...NOTHING,
        action: 'update',
        table: formatTable(statement.table),
        columns: statement.assignments.map(({ column }) => nameText(column)),
        joins: statement.joins.map(explainedJoin),
        filters: filtersOf(joinSources(statement.joins), statement.where),
        notes: notesOfSet(statement),
      }
    case 'del':
      return {
        ...NOTHING,
        action: 'delete',
        table: formatTable(statement.table),
        columns: (statement.returning ?? []).map(fieldText),
        joins: statement.joins.map(explainedJoin),
        filters: filtersOf(joinSources(statement.joins), statement.where),
        notes: notesOfDel(statement),
      }
    case 'merge':
      return {
        ...NOTHING,
        action: 'merge',
        table: formatTable(statement.table),
        columns: mergedColumns(statement),
        joins: [{ type: 'using', ...placeOf(statement.using), on: expressionText(statement.on) }],
        filters: filtersOf([statement.using], null),
        notes: notesOfMerge(statement),
      }
    case 'make':
      return {
        ...NOTHING,
        action: 'create table',
        table: formatTable(statement.table),
        columns: statement.columns.map(column => renderFlat(formatColumn(column, FORMATTER))),
        notes: notesOfMake(statement),
      }
    case 'index':
      return {
        ...NOTHING,
        action: 'create index',
        table: formatTable(statement.table),
        columns: statement.columns.map(nameText),
        filters: filtersOf([], statement.where),
        notes: notesOfIndex(statement),
      }
    case 'call':
      return { ...NOTHING, action: 'call', notes: [noteOfCall(statement)] }
    case 'begin':
    case 'commit':
    case 'rollback':
      return { ...NOTHING, action: statement.kind }
    case 'explain': {
      const inner = explained(statement.statement)
      const note = 'Nothing is read or written: PostgreSQL returns the plan.'
      return { ...inner, action: `explain ${inner.action}`, notes: [note, ...inner.notes] }
    }
    default:
      return unknownNode(statement)
  }
}

const READS: Readonly<Record<Purpose, Action>> = { rows: 'read', count: 'count', export: 'export' }

function explainedRead(get: Get): StatementExplanation {
  const fields = get.fields.length === 0 ? ['*'] : get.fields.map(fieldText)
  const nests = get.nests.map(nest => formatAnyName(nestName(nest)))
  return {
    action: READS[get.purpose],
    table: placeOf(get.source).table,
    columns: get.purpose === 'count' ? ['count(*)'] : [...fields, ...nests],
    joins: get.joins.map(explainedJoin),
    filters: filtersOf([get.source, ...joinSources(get.joins)], get.where),
    ordering: get.orderBy.map(explainedOrder),
    limit: countOf(get.limit),
    offset: countOf(get.offset),
    notes: notesOfRead(get),
  }
}

function explainedJoin({ type, lateral, source, on }: Join): ExplainedJoin {
  // A lateral query without a condition joins all its rows to the row it was computed for.
  const condition = on === null ? (lateral ? 'true' : null) : expressionText(on)
  return { type, ...placeOf(source), on: condition }
}

function placeOf(source: Source): { readonly table: string | null; readonly alias: string | null } {
  return {
    table: source.kind === 'table source' ? formatTable(source.table) : null,
    alias: source.alias === null ? null : formatAnyName(source.alias),
  }
}

function explainedOrder({ expression, descending, nulls }: Order): ExplainedOrder {
  const direction = descending ? 'desc' : 'asc'
  return { by: expressionText(expression), direction, nulls: nulls ?? (descending ? 'first' : 'last') }
}

/** The filters, including conditions in brackets, which are part of the statement's `where`. */
function filtersOf(sources: readonly Source[], where: Expression | 'all' | null): readonly string[] {
  const own = where === null || where === 'all' ? [] : [where]
  return [...sourceConditions(sources), ...own].flatMap(conditionTexts)
}

function addedColumns({ columns, rows }: Add): readonly string[] {
  return columns.length === 0 && rows.kind !== 'defaults' ? ['*'] : columns.map(nameText)
}

function mergedColumns({ whens }: Merge): readonly string[] {
  const names = whens.flatMap(({ action }): readonly Name[] => {
    if (action.kind === 'merge update') return action.assignments.map(({ column }) => column)
    return action.kind === 'merge insert' ? action.columns : []
  })
  return [...new Set(names.map(nameText))]
}

function countOf(count: Count | null): number | string | null {
  if (count === null) return null
  if (count.kind !== 'literal') return formatParameter(count)
  const number = Number(count.value)
  return Number.isSafeInteger(number) ? number : count.value
}

/** A note with the reason if the statement has no SQL. */
function refusalOf(statement: Statement): readonly string[] {
  try {
    printSql(statement)
    return []
  } catch (error) {
    if (!(error instanceof LanguageError)) throw error
    return [`This cannot run: ${error.message}.`]
  }
}

function parametersOf(statement: Statement): readonly string[] {
  const positions = new Set<number>()
  const names = new Set<string>()
  visit(statement, {
    parameter(parameter) {
      if (parameter.kind === 'position') positions.add(parameter.n)
      else names.add(formatParameter(parameter))
    },
  })
  const needed = [...[...positions].sort((a, b) => a - b).map(n => `$${n}`), ...names]
  return needed.length === 0 ? [] : [`Needs values for ${needed.join(', ')}.`]
}
