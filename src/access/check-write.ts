/** Writes: what is written, to which rows, and what of them is answered. */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Add, Assignment, Conflict, Del, Name, Set as SetStatement } from '../language/ast.ts'
import { unreachable } from '../unreachable.ts'
import { commonTablesIn } from './check-common.ts'
import { everyColumnIn, fieldsIn, outputsOf } from './check-fields.ts'
import { conditionedIn, joinIn } from './check-source.ts'
import type { Answering, Checking, Write } from './checking.ts'
import { qualified, tableOf } from './resources.ts'
import { resolveTarget, type Scope, type ScopeSource, sourceOf, type TypedField, tableRowset, within } from './scope.ts'
import { UNKNOWN } from './typed.ts'
import { assertConflictTarget, assertWritable } from './writable.ts'

/** As `Checking.write`. */
export function writeIn(checking: Checking, write: Write, outside: Scope): Answering<Write> {
  const { clause, outer } = commonTablesIn(checking, write.with, outside)
  const table = tableOf(write.table, checking.catalog)
  const { checkedWrite, answered } = changedIn(checking, write, table, outer)
  const listed = returningIn(checking, write, answered)
  const returning = listed.map(({ field }) => field)
  return { statement: { ...checkedWrite, with: clause, returning }, outputs: outputsOf(listed) }
}

/** Unlike in a read, no fields are none; not written, an `add` means `returning *` (language reference). */
function returningIn(checking: Checking, { kind, returning }: Write, scope: Scope): readonly TypedField[] {
  if (returning === null) return kind === 'add' ? everyColumnIn(checking, scope, null) : []
  return returning.length === 0 ? [] : fieldsIn(checking, returning, scope)
}

/** Everything but `returning`, and what that may see. */
interface Changed<T extends Write> {
  readonly checkedWrite: T
  readonly answered: Scope
}

function changedIn(checking: Checking, write: Write, table: Table, outer: Scope): Changed<Write> {
  switch (write.kind) {
    case 'add':
      return addIn(checking, write, table, outer)
    case 'set': {
      const { target, scope, answered, common } = targetIn(checking, write, table, outer)
      const assignments = assignmentsIn(checking, write.assignments, table, target, scope)
      return { checkedWrite: { ...write, ...common, assignments }, answered }
    }
    case 'del': {
      const { answered, common } = targetIn(checking, write, table, outer)
      return { checkedWrite: { ...write, ...common }, answered }
    }
    default:
      return unreachable(write)
  }
}

// ---- add ---------------------------------------------------------------------------------------------------

function addIn(checking: Checking, add: Add, table: Table, outer: Scope): Changed<Add> {
  const name = qualified(add.table, table)
  const target: ScopeSource = { ...sourceOf(table.name, tableRowset(table)), name }
  // Without a list the values are for all columns in order, which PostgreSQL knows as well.
  const columns = add.columns.length === 0 && add.rows.kind !== 'defaults' ? writtenInOrder(table) : add.columns
  assertColumns(columns, table, target)
  const rows = rowsIn(checking, { ...add, columns }, target, outer)
  const conflict = add.conflict && conflictIn(checking, add.conflict, table, target, outer)
  return { checkedWrite: { ...add, columns, table: name, rows, conflict }, answered: within(outer, [target]) }
}

function writtenInOrder(table: Table): readonly Name[] {
  return table.columns
    .filter(column => column.generated === null)
    .map(({ name }) => ({ kind: 'name', text: name, span: { start: 0, end: 0 } }))
}

function rowsIn(checking: Checking, { rows, columns }: Add, target: ScopeSource, outer: Scope): Add['rows'] {
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
      return rows
    default:
      return unreachable(rows)
  }
}

function conflictIn(checking: Checking, conflict: Conflict, table: Table, target: ScopeSource, outer: Scope): Conflict {
  for (const { text, span } of conflict.target) resolveTarget(text, target, span)
  assertConflictTarget(conflict, table)
  const { update } = conflict
  if (update === null) return conflict
  const scope = within(outer, [target, { ...target, alias: 'excluded', name: null }])
  // A bare name is the row that is there; the other one has to be called.
  const own = { ...scope, sources: [target], outer: scope }
  return {
    ...conflict,
    update: {
      assignments: assignmentsIn(checking, update.assignments, table, target, own),
      where: checking.expressions.optional(update.where, own),
    },
  }
}

// ---- set and del -------------------------------------------------------------------------------------------

/** What changes and deletions have in common. `answered` has no body: that only brought values. */
function targetIn(
  checking: Checking,
  write: SetStatement | Del,
  table: Table,
  outer: Scope,
): {
  readonly target: ScopeSource
  readonly scope: Scope
  readonly answered: Scope
  readonly common: Pick<Del, 'table' | 'joins' | 'where'>
} {
  const name = qualified(write.table, table)
  const target: ScopeSource = {
    ...sourceOf(write.alias ?? table.name, tableRowset(table)),
    name: write.alias === null ? name : null,
  }
  const sources = [target]
  const unconditioned = write.joins.map(join => joinIn(checking, join, sources, outer))
  const scope = within(outer, sources)
  const joins = unconditioned.map((join, index) => ({
    ...join,
    source: conditionedIn(checking, join.source, sources[index + 1], scope),
  }))
  const bodies = new Set(joins.map(({ source }) => (source.kind === 'record source' ? source.alias : null)))
  const rest = sources.filter(({ alias }) => !bodies.has(alias))
  const where = write.where === 'all' ? 'all' : checking.expressions.expression(write.where, scope)
  return { target, scope, answered: within(outer, rest), common: { table: name, joins, where } }
}

function assignmentsIn(
  { expressions }: Checking,
  assignments: readonly Assignment[],
  table: Table,
  target: ScopeSource,
  scope: Scope,
): readonly Assignment[] {
  assertColumns(
    assignments.map(({ column }) => column),
    table,
    target,
  )
  return assignments.map(assignment => {
    const { text, span } = assignment.column
    return { ...assignment, value: expressions.meet(assignment.value, resolveTarget(text, target, span), scope) }
  })
}

/** Each is there, can be written, and is written once. */
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
