/**
 * Writes the notes of an explanation: effects of a statement that its parts do not show and that a reader may
 * overlook. Each note is a sentence.
 */

import { renderFlat } from '../format/document.ts'
import { formatAnyName } from '../format/format-name.ts'
import { formatNamedWindow, formatTable } from '../format/format-query.ts'
import { FORMATTER, formatWhen } from '../format/format-statement.ts'
import { nestName } from '../sql/print-nest.ts'
import { joinCondition, sourceConditions } from '../sql/print-source.ts'
import type {
  Add,
  Call,
  Conflict,
  Del,
  Expression,
  ExpressionField,
  Field,
  Get,
  Index,
  Join,
  JoinType,
  Lock,
  Make,
  Merge,
  Nest,
  Set as SetStatement,
  Source,
  With,
} from '../tree/ast.ts'
import { childrenOf } from '../tree/children.ts'
import { unknownNode } from '../tree/error.ts'
import { containsAggregate, containsWindow, impliedGroups } from '../tree/functions.ts'
import { joinSources, sourceName } from '../tree/scope.ts'
import {
  assignmentsText,
  expressionsText,
  expressionText,
  fieldText,
  nameText,
  nestText,
  sourceText,
  statementText,
  targetText,
} from './explain-text.ts'

// ---- reads ------------------------------------------------------------------------------------------------

/** Notes about a read. */
export function notesOfRead(get: Get): readonly string[] {
  return [
    ...notesOfWith(get.with),
    ...notesOfQueries([get.source, ...joinSources(get.joins)]),
    ...notesOfJoins(get.joins, get.source, get.where),
    ...notesOfPurpose(get),
    ...notesOfGroups(get),
    ...get.nests.map(noteOfNest),
    ...notesOfWindows(get),
    ...notesOfDistinct(get),
    ...notesOfCompounds(get),
    ...notesOfPage(get),
    ...(get.lock === null ? [] : [noteOfLock(get.lock)]),
  ]
}

function notesOfWith(clause: With | null): readonly string[] {
  return (clause?.tables ?? []).flatMap(({ name, columns, statement }) => {
    const called = nameText(name)
    const list = columns.length === 0 ? '' : ` (${columns.map(nameText).join(', ')})`
    const note = `${called}${list} stands for (${statementText(statement)}).`
    return statement.kind === 'get' ? [note] : [note, `${called} changes data, whether it is read or not.`]
  })
}

/** Notes about derived tables. */
function notesOfQueries(sources: readonly Source[]): readonly string[] {
  return sources.flatMap(source =>
    source.kind === 'query source' ? [`${sourceText(source)} stands for (${statementText(source.query)}).`] : [],
  )
}

/** Joins that keep rows without a match. */
const OUTER: ReadonlySet<JoinType> = new Set(['left', 'right', 'full'])

function notesOfJoins(joins: readonly Join[], first: Source, where: Expression | null): readonly string[] {
  const asked = new Set<string>()
  if (where !== null) collectQualifiers(where, asked)
  return joins.flatMap(join => {
    const name = sourceText(join.source)
    const { source } = join
    const notes = [...noteOfKeptRows(join, name)]
    if ((join.type === 'left' || join.type === 'full') && asked.has(sourceName(source))) {
      notes.push(`The filters use columns of ${name}, which are null in rows without a match.`)
    }
    if (join.lateral) notes.push(`${name} is computed for each row to its left (lateral).`)
    else if (join.on === null && join.type !== 'cross' && source.kind === 'table source') {
      const key = expressionText(joinCondition(join, first))
      notes.push(`${name} is joined by the foreign key; if none is known, on ${key}.`)
    }
    if (source.kind === 'table source' && source.condition !== null && OUTER.has(join.type)) {
      notes.push(
        `The condition of ${name} in brackets is part of where, so it also decides about rows without a match.`,
      )
    }
    return notes
  })
}

/**
 * Collects the first part of each dotted name, such as `o` of `o.total`; names in subqueries are left out.
 */
function collectQualifiers(expression: Expression, into: Set<string>): void {
  if (expression.kind === 'column' && expression.path.length > 1) into.add(expression.path[0] ?? '')
  for (const child of childrenOf(expression)) collectQualifiers(child, into)
}

function noteOfKeptRows({ type }: Join, name: string): readonly string[] {
  switch (type) {
    case 'left':
      return [
        `The left join, which a bare join is too, keeps rows without a match in ${name}, with null for its columns.`,
      ]
    case 'right':
      return [`The right join keeps rows of ${name} without a match, with null for the columns before it.`]
    case 'full':
      return [`The full join with ${name} keeps the rows of both sides without a match, with null for the other side.`]
    case 'cross':
      return [`The cross join pairs every row with every row of ${name}.`]
    case 'inner':
      return []
    default:
      return unknownNode(type)
  }
}

function notesOfPurpose(get: Get): readonly string[] {
  if (get.purpose === 'count') return ['Returns one row with the number of rows in the column "count".']
  const conditions = sourceConditions([get.source, ...joinSources(get.joins)])
  const isWhole = get.where === null && conditions.length === 0 && get.limit === null
  return get.purpose === 'export' && isWhole ? ['Exports every row: there is no where.'] : []
}

function notesOfGroups(get: Get): readonly string[] {
  const notes: string[] = []
  const fields = get.fields.filter((field): field is ExpressionField => field.kind === 'field')
  if (get.groupBy.length > 0) {
    notes.push(`Rows with the same ${expressionsText(get.groupBy)} are combined into one.`)
  } else if (fields.some(field => containsAggregate(field.expression))) {
    const groups = [...new Set(impliedGroups(fields).map(expressionText))].join(', ')
    notes.push(
      groups === ''
        ? 'All rows are combined into one, because the fields are aggregates.'
        : `Groups by ${groups}: fields next to an aggregate are an implicit group by.`,
    )
  }
  if (get.having !== null) {
    notes.push(`Of the groups, only those with ${expressionText(get.having)} remain (having).`)
  }
  return notes
}

function noteOfNest(nest: Nest): string {
  const name = formatAnyName(nestName(nest))
  const holds = nest.many
    ? 'the related rows as an array, empty if there are none'
    : 'the related row as an object, or null'
  const key = nest.on === null ? ', by the foreign key' : ''
  return `The column ${name} holds ${holds}${key}: ${nestText(nest)}.`
}

function notesOfWindows(get: Get): readonly string[] {
  const fields = get.fields.filter(field => field.kind === 'field' && containsWindow(field.expression))
  return [
    ...get.windows.map(window => `Defines the ${renderFlat(formatNamedWindow(window, FORMATTER))}.`),
    ...fields.map(
      field => `${fieldText(field)} is computed over several rows (a window function); each stays in the result.`,
    ),
  ]
}

function notesOfDistinct({ distinct }: Get): readonly string[] {
  if (distinct === null) return []
  if (distinct.on.length === 0) return ['Rows that are equal in every column are returned once (distinct).']
  const list = expressionsText(distinct.on)
  return [`Of the rows with the same ${list}, only the first is returned (distinct on); order by determines which.`]
}

function notesOfCompounds({ compounds }: Get): readonly string[] {
  if (compounds.length === 0) return []
  return [
    ...compounds.map(({ operator, all, query }) => `Then ${operator}${all ? ' all' : ''} (${statementText(query)}).`),
    'The columns and filters shown are those of the first query; ' +
      'ordering, limit and offset apply to the whole compound.',
  ]
}

function notesOfPage({ orderBy, limit, offset }: Get): readonly string[] {
  if (orderBy.length > 0 || (limit === null && offset === null)) return []
  const clause = limit === null ? 'an offset' : 'a limit'
  return [`There is ${clause} without order by: the rows returned can differ each time.`]
}

function noteOfLock({ strength, wait }: Lock): string {
  const others = {
    'skip locked': 'skips rows that other transactions have locked',
    nowait: 'fails if another transaction has locked one of them',
    wait: 'waits for rows that other transactions have locked',
  }[wait ?? 'wait']
  return `Locks the rows for ${strength} until the transaction ends, and ${others}.`
}

// ---- writes -----------------------------------------------------------------------------------------------

/** Notes about an insert. */
export function notesOfAdd(add: Add): readonly string[] {
  return [
    ...notesOfWith(add.with),
    noteOfRows(add),
    ...(add.conflict === null ? [] : [noteOfConflict(add.conflict)]),
    ...(add.returning === null
      ? ['Returns every column of the rows (returning *), because there is no returning clause.']
      : notesOfReturning(add.returning)),
  ]
}

function noteOfRows({ table, columns, rows }: Add): string {
  switch (rows.kind) {
    case 'values': {
      const number = rows.rows.length === 1 ? 'one row' : `${rows.rows.length} rows`
      const order = columns.length === 0 ? `, with the columns of ${formatTable(table)} in their order` : ''
      return `Adds ${number}${order}.`
    }
    case 'from':
      return `Adds the rows of (${statementText(rows.query)}).`
    case 'defaults':
      return 'Adds one row in which every column has its default.'
    default:
      return unknownNode(rows)
  }
}

function noteOfConflict({ target, update }: Conflict): string {
  const columns = target.map(nameText).join(', ')
  const meets = columns === '' ? 'A row that breaks any unique key' : `A row whose ${columns} exists already`
  if (update === null) return `${meets} is skipped and not returned.`
  const where = update.where === null ? '' : `, where ${expressionText(update.where)}`
  return `${meets} is not added: the existing one is updated by ${assignmentsText(update.assignments)}${where}.`
}

function notesOfReturning(returning: readonly Field[]): readonly string[] {
  return returning.length === 0 ? [] : [`Returns ${returning.map(fieldText).join(', ')} of each row.`]
}

/** Notes about an update. */
export function notesOfSet(set: SetStatement): readonly string[] {
  const { assignments, returning } = set
  return [...notesOfTarget(set), `Sets ${assignmentsText(assignments)}.`, ...notesOfReturning(returning ?? [])]
}

/** Notes about a delete. */
export function notesOfDel(del: Del): readonly string[] {
  return notesOfTarget(del)
}

function notesOfTarget(write: SetStatement | Del): readonly string[] {
  const { table, alias, joins } = write
  const first: Source = { kind: 'table source', table, alias, condition: null, span: write.span }
  const done = write.kind === 'set' ? 'updated' : 'deleted'
  const which = joins.length > 0 ? ' that the joins find' : ''
  return [
    ...notesOfWith(write.with),
    ...notesOfQueries(joinSources(joins)),
    ...notesOfJoins(joins, first, write.where === 'all' ? null : write.where),
    ...(write.where === 'all' ? [`Every row of ${targetText(table, alias)}${which} is ${done} (where all).`] : []),
  ]
}

/** Notes about a merge. */
export function notesOfMerge(merge: Merge): readonly string[] {
  const whens = merge.whens.map(when => renderFlat(formatWhen(when, FORMATTER)))
  return [
    ...notesOfWith(merge.with),
    ...notesOfQueries([merge.using]),
    `Each row takes the first branch that matches: ${whens.join('; ')}.`,
  ]
}

// ---- definitions and the rest -----------------------------------------------------------------------------

/** Notes about a table definition. */
export function notesOfMake({ columns, constraints }: Make): readonly string[] {
  const required = columns.filter(column => !column.nullable && !column.primaryKey)
  return [
    ...(required.length === 0
      ? []
      : [`Null is not allowed in ${required.map(({ name }) => nameText(name)).join(', ')}.`]),
    ...constraints.map(({ kind, columns: names }) => `Has the ${kind} (${names.map(nameText).join(', ')}).`),
  ]
}

/** Notes about an index definition. */
export function notesOfIndex({ name, unique, where }: Index): readonly string[] {
  return [
    `The index is called ${nameText(name)}.`,
    ...(unique ? ['No two rows may have the same values in these columns (unique).'] : []),
    ...(where === null ? [] : ['Only rows that pass the filters are in the index.']),
  ]
}

/** The note about a procedure call. */
export function noteOfCall(call: Call): string {
  return `Runs the procedure: ${statementText(call)}.`
}
