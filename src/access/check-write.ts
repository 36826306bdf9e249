/** Checks writes: the values, the rows that they change, and the rows that they return. */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type {
  Add,
  Assignment,
  Conflict,
  Del,
  Expression,
  Name,
  Returned,
  Set as SetStatement,
} from '../language/tree/ast.ts'
import { allOf } from '../language/tree/build.ts'
import { unreachable } from '../unreachable.ts'
import { commonTablesIn } from './check-common.ts'
import { everyColumnIn, fieldsIn, outputsOf } from './check-fields.ts'
import { nestIn, refuseNameClash } from './check-read.ts'
import { conditionedJoins, joinIn, typeBody } from './check-source.ts'
import type { AnsweringWrite, Checking, Write } from './checking.ts'
import { deletion, isManaged, touched, withManaged } from './managed.ts'
import { assertAllowed, assertConflictAllowed, assertWritten } from './refusals.ts'
import { relationsBehind } from './relations-behind.ts'
import { qualified, tableOf } from './resources.ts'
import { type Operation, returnable } from './rights.ts'
import { conditionAfter, rowsFor, rowsOrFail, unmarked, unmarkedOrFail } from './row-filter.ts'
import {
  type AccessScope,
  resolveTarget,
  type ScopeSource,
  scopeWithin,
  sourceOf,
  type TypedField,
  tableRowset,
} from './scope.ts'
import { UNKNOWN } from './typed.ts'
import { assertConflictTarget, assertWritable } from './writable.ts'

/** Implements `Checking.write`. */
export function writeIn(checking: Checking, write: Write, outside: AccessScope): AnsweringWrite {
  const { clause, outer } = commonTablesIn(checking, write.with, outside)
  const { rights } = checking
  const table = tableOf(write.table, checking.catalog, rights)
  checking.writes.push(table)
  checking.tally.addRelations(relationsBehind(table, checking.catalog, 'write'), write.table.span)
  for (const operation of operationsOf(write)) assertAllowed(operation, table, rights, write.table.span)
  const { checkedWrite, answered, check } = changedIn(checking, write, table, outer)
  const listed = returningIn(checking, write, answered)
  const returning = listed.map(({ field }) => field)
  const returned = write.returned === undefined ? {} : { returned: returnedIn(checking, write.returned, answered) }
  refuseNameClash(returning, returned.returned?.nests ?? [])
  return { statement: { ...checkedWrite, with: clause, returning, ...returned }, outputs: outputsOf(listed), check }
}

/** The operations that the write needs; an upsert that changes existing rows needs two. */
function operationsOf(write: Write): readonly Operation[] {
  switch (write.kind) {
    case 'add':
      return write.conflict?.update ? ['create', 'update'] : ['create']
    case 'set':
      return ['update']
    case 'del':
      return ['delete']
    default:
      return unreachable(write)
  }
}

/**
 * Unlike in a read, an empty field list returns no fields. A missing `returning` on an `add` means
 * `returning *` (docs/reference/language.md#results-of-writes).
 */
function returningIn(checking: Checking, { kind, returning }: Write, scope: AccessScope): readonly TypedField[] {
  if (returning === null) return kind === 'add' ? everyAnswered(checking, scope) : []
  const [only] = returning
  if (returning.length === 1 && only?.kind === 'star') return everyAnswered(checking, scope)
  return returning.length === 0 ? [] : fieldsIn(checking, returning, scope)
}

function returnedIn(checking: Checking, returned: Returned, scope: AccessScope): Returned {
  const { expressions } = checking
  return {
    ...returned,
    nests: returned.nests.map(nest => nestIn(checking, nest, scope)),
    where: expressions.optional(returned.where, scope),
    orderBy: expressions.orders(returned.orderBy, scope),
  }
}

/** Every field that can be returned; possibly none, since the write takes place all the same. */
function everyAnswered(checking: Checking, scope: AccessScope): readonly TypedField[] {
  return scope.sources.every(({ rowset }) => rowset.readable.length === 0) ? [] : everyColumnIn(checking, scope, null)
}

/** A checked write without `returning`, and the scope of `returning`. */
interface Changed<T extends Write> extends Pick<AnsweringWrite, 'check'> {
  readonly checkedWrite: T
  readonly answered: AccessScope
}

function changedIn(checking: Checking, write: Write, table: Table, outer: AccessScope): Changed<Write> {
  switch (write.kind) {
    case 'add':
      return addIn(checking, write, table, outer)
    case 'set': {
      const { target, scope, answered, common } = targetIn(checking, write, table, outer)
      const columns = [...write.assignments.map(({ column }) => column), ...(write.defaults ?? [])]
      assertColumns(columns, table, target)
      assertWritten(columns, checking.rights.of(table).update, table)
      const assignments = [...assignmentsIn(checking, write.assignments, table, target, scope), ...touched(table)]
      const check = rowsOrFail(checking, table, target.alias, 'update')
      return { checkedWrite: { ...write, ...common, assignments }, answered, check }
    }
    case 'del': {
      const { answered, common } = targetIn(checking, write, table, outer)
      return { checkedWrite: deletion({ ...write, ...common }, table), answered, check: null }
    }
    default:
      return unreachable(write)
  }
}

// ---- add
// ---------------------------------------------------------------------------------------------------

function addIn(checking: Checking, add: Add, table: Table, outer: AccessScope): Changed<Add> {
  const name = qualified(add.table, table)
  const rights = checking.rights.of(table)
  const target: ScopeSource = { ...sourceOf(table.name, tableRowset(table, rights.read)), name }
  // Without a column list the values are for all columns in order, as PostgreSQL defines it too.
  const columns = add.columns.length === 0 && add.rows.kind !== 'defaults' ? writtenInOrder(table) : add.columns
  assertColumns(columns, table, target)
  assertWritten(columns, rights.create, table)
  const rows = rowsIn(checking, { ...add, columns }, target, outer)
  const conflict = add.conflict && conflictIn(checking, add.conflict, table, target, outer)
  return {
    checkedWrite: withManaged({ ...add, columns, table: name, rows, conflict }, table),
    answered: scopeWithin(outer, [answeredTarget(checking, table, target, certainlyWritten(columns, add.conflict))]),
    check: rowsOrFail(checking, table, table.name, ...operationsOf(add)),
  }
}

/**
 * Columns that contain the caller's values even if the row existed: those that the conflict action assigns,
 * and those of the conflict target.
 */
function certainlyWritten(columns: readonly Name[], conflict: Conflict | null): readonly Name[] {
  if (conflict === null || conflict.update === null) return columns
  const kept = new Set(conflict.target.map(({ text }) => text))
  for (const { column, value } of conflict.update.assignments) {
    const [source, name, ...steps] = value.kind === 'column' ? value.path : []
    if (source === 'excluded' && name === column.text && steps.length === 0) kept.add(column.text)
  }
  return columns.filter(({ text }) => kept.has(text))
}

/** The columns of the target table that `returning` can use. */
function answeredTarget(
  { rights }: Checking,
  table: Table,
  target: ScopeSource,
  written: readonly Name[],
): ScopeSource {
  const columns = returnable(
    rights.of(table),
    written.map(({ text }) => text),
  )
  return { ...target, rowset: tableRowset(table, columns) }
}

function writtenInOrder(table: Table): readonly Name[] {
  return table.columns
    .filter(column => column.generated === null && !isManaged(column.name, table))
    .map(({ name }) => ({ kind: 'name', text: name, span: { start: 0, end: 0 } }))
}

function rowsIn(checking: Checking, { rows, columns }: Add, target: ScopeSource, outer: AccessScope): Add['rows'] {
  switch (rows.kind) {
    case 'values': {
      const targets = columns.map(({ text, span }) => resolveTarget(text, target, span))
      return {
        ...rows,
        rows: rows.rows.map(row =>
          row.map((value, index) => checking.expressions.meet(value, targets[index] ?? UNKNOWN, outer)),
        ),
      }
    }
    case 'from':
      return { ...rows, query: checking.read(rows.query, outer).statement }
    case 'defaults':
      if (rows.items !== undefined) typeBody(checking, rows.items)
      return rows
    default:
      return unreachable(rows)
  }
}

function conflictIn(
  checking: Checking,
  conflict: Conflict,
  table: Table,
  target: ScopeSource,
  outer: AccessScope,
): Conflict {
  for (const { text, span } of conflict.target) resolveTarget(text, target, span)
  const rights = checking.rights.of(table)
  assertConflictAllowed(conflict, table, checking.rights)
  assertConflictTarget(conflict, table, rights)
  const { update } = conflict
  if (update === null) return conflict
  // The row proposed for insertion contains the caller's own values.
  const excluded: ScopeSource = { alias: 'excluded', name: null, rowset: tableRowset(table, rights.create) }
  const scope = scopeWithin(outer, [target, excluded])
  // A bare name means the existing row; the proposed row needs the prefix `excluded`.
  const own = { ...scope, sources: [target], outer: scope }
  return {
    ...conflict,
    update: {
      assignments: [...assignmentsIn(checking, update.assignments, table, target, own), ...touched(table)],
      where: allOf([
        unmarkedOrFail(table, target.alias),
        rowsOrFail(
          checking,
          table,
          target.alias,
          'update',
          ...(rights.refused.read === null ? (['read'] as const) : []),
        ),
        checking.expressions.optional(update.where, own),
      ]),
    },
  }
}

// ---- set and del
// -------------------------------------------------------------------------------------------

/** The part that updates and deletions share. `answered` has no request body, which only supplied values. */
function targetIn(
  checking: Checking,
  write: SetStatement | Del,
  table: Table,
  outer: AccessScope,
): {
  readonly target: ScopeSource
  readonly scope: AccessScope
  readonly answered: AccessScope
  readonly common: Pick<Del, 'table' | 'joins' | 'where'>
} {
  const name = qualified(write.table, table)
  const rights = checking.rights.of(table)
  const target: ScopeSource = {
    ...sourceOf(write.alias ?? table.name, tableRowset(table, rights.read)),
    name: write.alias === null ? name : null,
  }
  checking.tally.assertJoins(write.joins)
  const sources = [target]
  const unconditioned = write.joins.map(join => joinIn(checking, join, sources, outer))
  const scope = scopeWithin(outer, sources)
  const { joins, where: displaced } = conditionedJoins(checking, write.joins, unconditioned, sources.slice(1), scope)
  const bodies = new Set(joins.map(({ source }) => (source.kind === 'record source' ? source.alias : null)))
  const written = write.kind === 'set' ? write.assignments.map(({ column }) => column) : []
  const rest = sources.slice(1).filter(({ alias }) => !bodies.has(alias))
  const answered = scopeWithin(outer, [answeredTarget(checking, table, target, written), ...rest])
  const asked = write.where === 'all' ? null : checking.expressions.expression(write.where, scope)
  const condition = allOf([...displaced, asked])
  const rows = changedRows(checking, table, target, write.kind === 'set' ? 'update' : 'delete')
  const where = condition === null ? (rows ?? 'all') : conditionAfter(checking, rows, condition)
  const guarded = checking.rowsFirst
    ? joins.map(join => ({ ...join, on: join.on && conditionAfter(checking, rows, join.on) }))
    : joins
  return { target, scope, answered, common: { table: name, joins: guarded, where } }
}

/**
 * If the caller can read the table, a write changes only rows that they can see; otherwise the number of
 * changed rows would reveal others. PostgreSQL's own policies do the same.
 */
function changedRows(
  checking: Checking,
  table: Table,
  target: ScopeSource,
  operation: 'update' | 'delete',
): Expression | null {
  const mayRead = checking.rights.of(table).refused.read === null
  const rows = rowsFor(checking, table, target.alias, operation, ...(mayRead ? (['read'] as const) : []))
  return mayRead ? rows : allOf([unmarked(table, target.alias), rows])
}

function assignmentsIn(
  { expressions, rights }: Checking,
  assignments: readonly Assignment[],
  table: Table,
  target: ScopeSource,
  scope: AccessScope,
): readonly Assignment[] {
  const columns = assignments.map(({ column }) => column)
  assertColumns(columns, table, target)
  assertWritten(columns, rights.of(table).update, table)
  return assignments.map(assignment => {
    const { text, span } = assignment.column
    return { ...assignment, value: expressions.meet(assignment.value, resolveTarget(text, target, span), scope) }
  })
}

/** Each column exists, can be written, and is written once. */
function assertColumns(names: readonly Name[], table: Table, target: ScopeSource): void {
  const seen = new Set<string>()
  for (const { text, span } of names) {
    resolveTarget(text, target, span)
    assertWritable(text, table, span)
    if (seen.has(text)) {
      throw new GatewayError('PARSE_ERROR', `column "${text}" is written twice; write it once`, { span })
    }
    seen.add(text)
  }
}
