/**
 * What undoes, at the end of a transaction, whatever functions of the database left in the session: settings and the role, locks, LISTEN, temporary
 * tables (decision 0011, decision 0026). Only statements that can run such a function pay for it.
 */
import type { Catalog } from '../catalog/model.ts'
import type { BoundStatement, CallStatement, Statement } from '../compile/statement.ts'
import type { TableName } from '../language/tree/ast.ts'
import type { Command } from '../postgres/types.ts'
import { relationOid } from './relation-oid.ts'

/** Back to what the session began with (PostgreSQL manual, RESET; it leaves the role alone). */
export const RESET: readonly Command[] = commands('RESET ALL', 'RESET ROLE')

/** A rollback does not release locks of the session, so these are released after an error too. */
const UNLOCK: Command = { text: 'SELECT pg_advisory_unlock_all()', parameters: [], always: true }

/** A transaction that only reads makes no tables. On a standby UNLISTEN is allowed and does nothing. */
export const RESET_AFTER_READ: readonly Command[] = [...RESET, UNLOCK, ...commands('UNLISTEN *')]
export const RESET_AFTER_CHANGE: readonly Command[] = [...RESET_AFTER_READ, ...commands('DISCARD TEMP')]

/** Deferred triggers run before the reset, under the settings that the statement was made with. */
export const CONSTRAINTS_NOW: readonly Command[] = commands('SET CONSTRAINTS ALL IMMEDIATE')

/** A default or a trigger can be a function that the catalogue does not know yet, so every write ends with the settings it began with. */
const AFTER_WRITE: readonly Command[] = [...CONSTRAINTS_NOW, ...RESET]
const AFTER_WRITE_OF_FUNCTIONS: readonly Command[] = [...CONSTRAINTS_NOW, ...RESET_AFTER_CHANGE]
const NOTHING: readonly Command[] = []

/** A call is known to run one. */
type Told = Exclude<Statement, CallStatement>

export interface SessionReset {
  /** What ends a transaction that reads. */
  afterRead(statements: readonly BoundStatement<Told>[]): readonly Command[]
  afterWrite(statements: readonly BoundStatement<Told>[]): readonly Command[]
  /** Whether triggers of the database can be deferred to the end of a transaction. */
  canDefer(): boolean
}

export function createSessionReset(catalog: () => Catalog): SessionReset {
  let from: Catalog | null = null
  let known = new WeakMap<Told, boolean>()

  function runsFunction(statement: Told): boolean {
    const current = catalog()
    if (current !== from) {
      from = current
      known = new WeakMap()
    }
    const found = known.get(statement)
    if (found !== undefined) return found
    const runs = canRunFunction(statement, current)
    known.set(statement, runs)
    return runs
  }
  const anyRuns = (statements: readonly BoundStatement<Told>[]): boolean => {
    for (const { statement } of statements) if (runsFunction(statement)) return true
    return false
  }
  return {
    afterRead: statements => (anyRuns(statements) ? RESET_AFTER_READ : NOTHING),
    canDefer: () => catalog().functionReach.deferrable,
    afterWrite: statements => (anyRuns(statements) ? AFTER_WRITE_OF_FUNCTIONS : AFTER_WRITE),
  }
}

/** Whether running `statement` can run a function of the database. Planning can run one too: PostgreSQL folds constants and estimates. */
export function canRunFunction({ touches }: Told, catalog: Catalog): boolean {
  const { relations, types, everywhere } = catalog.functionReach
  if (touches.callsOwn || everywhere) return true
  const reachOf = (name: TableName) => {
    const oid = relationOid(name, catalog)
    return oid === null ? 'read' : relations.get(oid)
  }
  return (
    touches.casts.some(name => types.has(name)) ||
    touches.reads.some(name => reachOf(name) === 'read') ||
    touches.writes.some(({ table }) => reachOf(table) !== undefined)
  )
}

function commands(...texts: readonly string[]): readonly Command[] {
  return texts.map(text => ({ text, parameters: [] }))
}
