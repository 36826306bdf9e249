/**
 * Writes that return the change of each row after the commit, for webhooks that nothing in the database
 * stores (decision 0020).
 */
import type { Table } from '../catalog/model.ts'
import { printCaptured } from '../compile/print-write.ts'
import type { ChangeOperation } from '../compile/row-images.ts'
import type { BoundStatement, HiddenWrite, OwnWrite, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { TraceContext } from '../trace-context.ts'
import { rebind } from './rebind.ts'
import type { ResultRow, Runner, RunningRequest, Work, WriteResult } from './run.ts'

/** A change of one row. */
export interface CapturedChange {
  readonly operation: ChangeOperation
  /** JSON objects of all columns; null where there is no such row. */
  readonly after: string | null
  readonly before: string | null
}

/**
 * Receives captured changes. Calls must not throw or take long, because the caller waits for the response.
 */
export interface ChangeListeners {
  listeners(table: Table, operations: readonly ChangeOperation[]): WriteListeners
  wantsUnresolved(write: HiddenWrite): boolean
  /** The changes of a committed transaction, in statement order, for the listeners it had when it began. */
  committed(
    table: Table,
    changes: readonly CapturedChange[],
    names: readonly string[],
    trace: TraceContext | undefined,
  ): void
  /** Unknown rows of the table were changed. */
  reportUnreadable(table: Table): void
  /** The capture of the table stores webhooks of the write for these triggers. */
  reportStored(names: readonly string[]): void
}

/** The triggers that receive a write, by where their deliveries are stored. */
export interface WriteListeners {
  /** Triggers whose deliveries are kept in memory. */
  readonly memory: readonly string[]
  /** Triggers whose deliveries the capture of the table stores. */
  readonly outbox: readonly string[]
}

/** The columns of a captured change, after the statement's own result. */
const IMAGE_COLUMNS = 3

/** Wraps a runner so that writes report their changes. */
export function captureChanges(runner: Runner, watch: ChangeListeners): Runner {
  const captured = new WeakMap<WriteStatement, WriteStatement>()
  const wanted = ({ statement: { own } }: BoundStatement<WriteStatement>): NeededCapture | null =>
    own === null ? null : { own, ...watch.listeners(own.table, own.operations) }

  /** The statement with its changes, printed when first needed: every write looks it up. */
  function capturing(bound: BoundStatement<WriteStatement>): BoundStatement<WriteStatement> {
    const { statement } = bound
    const known = captured.get(statement) ?? printCaptured(statement)
    captured.set(statement, known)
    return rebind(bound, known)
  }

  /** Tries the write so that it returns its changes, and then without them. */
  function write(
    identity: Identity,
    statements: readonly BoundStatement<WriteStatement>[],
    captures: readonly (NeededCapture | null)[],
    worked: Work,
  ): RunningRequest<readonly WriteResult[]> {
    let current: RunningRequest<readonly WriteResult[]> = runner.write(
      identity,
      statements.map((bound, index) => (isNeeded(captures[index]) ? capturing(bound) : bound)),
      worked,
    )
    let cancelled = false
    const unseen = (): void => {
      for (const found of captures)
        if (isNeeded(found)) committed(worked, () => watch.reportUnreadable(found.own.table))
    }
    const again = async (error: unknown): Promise<readonly WriteResult[]> => {
      if (isOversize(error)) {
        unseen()
        throw oversize(error)
      }
      if (cancelled || !isUnreadable(error)) throw error
      // The attempt was rolled back. If the write itself is refused, it is refused again.
      current = runner.write(identity, statements, worked)
      const written = await current.result
      unseen()
      return written
    }
    return {
      result: current.result.then(
        written => written.map((result, index) => withChanges(result, captures[index], worked)),
        again,
      ),
      cancel() {
        cancelled = true
        current.cancel()
      },
    }
  }

  /** The result as the plain statement would return it. */
  function withChanges(result: WriteResult, found: NeededCapture | null | undefined, worked: Work): WriteResult {
    if (!isNeeded(found)) return result
    const changes = result.rows.map(toChange)
    committed(worked, () => watch.committed(found.own.table, changes, found.memory, worked.trace))
    return { ...result, rows: plainRows(result.rows) }
  }

  return {
    ...runner,
    write(identity, statements, worked) {
      // Changes that are rolled back did not happen.
      if (identity.session?.rollsBack === true) return runner.write(identity, statements, worked)
      for (const { statement } of statements) refuseHidden(statement, watch)
      const captures = statements.map(wanted)
      const running = captures.some(isNeeded)
        ? write(identity, statements, captures, worked)
        : runner.write(identity, statements, worked)
      // Handled separately from the caller's promise, so that the caller does not wait for it.
      const names = captures.flatMap(found => found?.outbox ?? [])
      if (names.length > 0)
        running.result.then(
          () => committed(worked, () => watch.reportStored(names)),
          () => {},
        )
      return running
    },
  }
}

/** Calls `call` after the commit: immediately, or at the commit if the transaction is still open. */
function committed({ within }: Work, call: () => void): void {
  if (within === undefined) call()
  else within.onCommit(call)
}

interface NeededCapture extends WriteListeners {
  readonly own: OwnWrite
}

/** Reports whether the statement must return its changes. */
function isNeeded(found: NeededCapture | null | undefined): found is NeededCapture {
  return found != null && found.memory.length > 0
}

/**
 * Refuses a write to a table that is not the statement's own: skipping its webhooks silently would be worse.
 */
function refuseHidden({ hidden }: WriteStatement, watch: ChangeListeners): void {
  for (const found of hidden) {
    if (!watch.wantsUnresolved(found)) continue
    throw new GatewayError(
      'FORBIDDEN',
      `a webhook trigger listens to "${found.table.name}", but changes within ` +
        '"with" cannot be captured; use a separate statement',
      { span: found.table.span },
    )
  }
}

/**
 * A role may write a row without being able to see it or all of its columns. A table with rules returns
 * nothing from a statement within another.
 */
const CANNOT_READ: ReadonlySet<string> = new Set(['42501', '0A000'])

function isUnreadable(error: unknown): boolean {
  // A stale plan also has 0A000.
  if (!(error instanceof GatewayError) || error.code === 'UNAVAILABLE') return false
  return error.cause instanceof DatabaseError && CANNOT_READ.has(error.cause.sqlstate)
}

/**
 * The gateway's own error (postgres/batch.ts): the rows exceed the limit on results, and the change has
 * probably been made.
 */
function isOversize(error: unknown): error is GatewayError {
  if (!(error instanceof GatewayError) || !(error.cause instanceof DatabaseError)) return false
  return error.cause.sqlstate === '54000' && error.cause.routine === null
}

function oversize({ code, message, headers, details, cause }: GatewayError): GatewayError {
  return new GatewayError(code, message, {
    ...{ headers, details, cause },
    hint:
      'the change may or may not have been made; read the data before sending it again, and write fewer rows ' +
      'at a time, because webhooks need the old and new version of each',
  })
}

function toChange(row: ResultRow): CapturedChange {
  const [operation, after, before] = row.slice(-IMAGE_COLUMNS)
  return {
    operation: String(operation) as ChangeOperation,
    after: after?.toString() ?? null,
    before: before?.toString() ?? null,
  }
}

/** The rows as the plain statement returns them: without columns, no rows. */
function plainRows(rows: readonly ResultRow[]): readonly ResultRow[] {
  return rows.map(row => row.slice(0, -IMAGE_COLUMNS)).filter(row => row.length > 0)
}
