/**
 * Resets, at the end of a transaction, whatever database functions left in the session: settings and role,
 * locks, LISTEN, temporary tables (decision 0011, decision 0026). Only statements that can run a function
 * that leaves something are affected (decision 0044).
 */
import type { Catalog, FunctionReach, Reach } from '../catalog/model.ts'
import type { BoundStatement, CompiledStatement } from '../compile/statement.ts'
import type { CalledFunction, TableDependencies } from '../compile/table-dependencies.ts'
import type { TableName } from '../language/tree/ast.ts'
import type { Command } from '../postgres/types.ts'
import { relationOid } from './relation-oid.ts'

/** Resets to the session's initial settings (PostgreSQL manual, RESET; it does not reset the role). */
export const RESET: readonly Command[] = commands('RESET ALL', 'RESET ROLE')

/** A rollback does not release session-level locks, so they are released after an error too. */
const UNLOCK: Command = { text: 'SELECT pg_advisory_unlock_all()', parameters: [], always: true }

/** A read-only transaction creates no tables. On a standby, UNLISTEN is allowed and has no effect. */
export const RESET_AFTER_READ: readonly Command[] = [...RESET, UNLOCK, ...commands('UNLISTEN *')]
/** Resets the session after a transaction that wrote. */
export const RESET_AFTER_WRITE: readonly Command[] = [...RESET_AFTER_READ, ...commands('DISCARD TEMP')]

/** Deferred triggers run before the reset, under the settings of the statement. */
export const RUN_DEFERRED: readonly Command[] = commands('SET CONSTRAINTS ALL IMMEDIATE')

const AFTER_WRITE_OF_FUNCTIONS: readonly Command[] = [...RUN_DEFERRED, ...RESET_AFTER_WRITE]
const NOTHING: readonly Command[] = []

/** The commands that end a transaction. */
export interface SessionReset {
  /** Reports whether these statements can run a function that leaves something in the session. */
  leavesState(statements: readonly BoundStatement[]): boolean
  /** Ends a transaction that only reads. */
  afterRead(statements: readonly BoundStatement[]): readonly Command[]
  /** Ends a transaction that writes. */
  afterWrite(statements: readonly BoundStatement[]): readonly Command[]
  /**
   * Reports whether these statements can defer a trigger or a constraint to the end of the transaction.
   * Without statements: whether a function can, which may write to any table.
   */
  canDefer(statements?: readonly BoundStatement[]): boolean
}

/** Chooses the commands by the current catalog. */
export function createSessionReset(catalog: () => Catalog): SessionReset {
  let from: Catalog | null = null
  let known = new WeakMap<CompiledStatement, boolean>()

  function canLeave(statement: CompiledStatement): boolean {
    const current = catalog()
    if (current !== from) {
      from = current
      known = new WeakMap()
    }
    const found = known.get(statement)
    if (found !== undefined) return found
    const leaves = canLeaveState(statement, current)
    known.set(statement, leaves)
    return leaves
  }
  const leavesState = (statements: readonly BoundStatement[]): boolean => {
    for (const { statement } of statements) if (canLeave(statement)) return true
    return false
  }
  const canDefer: SessionReset['canDefer'] = statements =>
    statements === undefined || leavesState(statements)
      ? catalog().functionReach.deferring.size > 0
      : statements.some(({ statement }) => canDeferWrite(statement, catalog()))
  return {
    leavesState,
    afterRead: statements => (leavesState(statements) ? RESET_AFTER_READ : NOTHING),
    afterWrite: statements =>
      leavesState(statements) ? AFTER_WRITE_OF_FUNCTIONS : canDefer(statements) ? RUN_DEFERRED : NOTHING,
    canDefer,
  }
}

/**
 * Reports whether running `statement` can run a database function. Planning can as well: PostgreSQL evaluates
 * constant expressions.
 */
export function canRunFunction({ dependencies }: CompiledStatement, catalog: Catalog): boolean {
  return dependencies.calls.length > 0 || reaches(dependencies, catalog, catalog.functionReach.running)
}

/** Reports whether it can run one that leaves something in the session. */
function canLeaveState({ dependencies }: CompiledStatement, catalog: Catalog): boolean {
  const { harmless, leaving } = catalog.functionReach
  const isHarmless = ({ schema, name }: CalledFunction) => schema !== null && harmless.get(schema)?.has(name) === true
  return !dependencies.calls.every(isHarmless) || reaches(dependencies, catalog, leaving)
}

function reaches(dependencies: TableDependencies, catalog: Catalog, { relations, types, everywhere }: Reach): boolean {
  if (everywhere) return true
  const reachOf = (name: TableName) => {
    const oid = relationOid(name, catalog)
    return oid === null ? 'read' : relations.get(oid)
  }
  return (
    dependencies.casts.some(name => types.has(name)) ||
    dependencies.reads.some(name => reachOf(name) === 'read') ||
    dependencies.writes.some(({ table }) => reachOf(table) !== undefined)
  )
}

/**
 * Reports whether statements that left nothing in the session before can leave something after: a function
 * is no longer harmless, or was dropped, or what a statement uses runs another one.
 */
export function leavesMore(before: FunctionReach, after: FunctionReach): boolean {
  for (const [schema, names] of before.harmless) {
    for (const name of names) if (after.harmless.get(schema)?.has(name) !== true) return true
  }
  for (const [relation, reach] of after.leaving.relations) {
    const known = before.leaving.relations.get(relation)
    if (known !== reach && known !== 'read') return true
  }
  for (const name of after.leaving.types) if (!before.leaving.types.has(name)) return true
  return after.leaving.everywhere && !before.leaving.everywhere
}

function canDeferWrite({ dependencies }: CompiledStatement, catalog: Catalog): boolean {
  const { deferring } = catalog.functionReach
  if (deferring.size === 0) return false
  return dependencies.writes.some(({ table }) => {
    const oid = relationOid(table, catalog)
    return oid === null || deferring.has(oid)
  })
}

function commands(...texts: readonly string[]): readonly Command[] {
  return texts.map(text => ({ text, parameters: [] }))
}
