/**
 * Writes that report what they did to each row once they are committed, or that store it for webhooks in
 * their own transaction (decision 0020).
 */
import type { Table } from '../catalog/model.ts'
import type { Happened } from '../compile/images.ts'
import { printCaptured, printStored } from '../compile/print-write.ts'
import type { BoundStatement, HiddenWrite, OwnWrite, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import type { Storing } from '../language/sql/storing.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { rebound } from './rebound.ts'
import type { Row, Runner, RunningRequest, ServerTime, Written } from './run.ts'

export interface RowChange {
  readonly operation: Happened
  /** JSON objects of all columns; null where there is none. */
  readonly after: string | null
  readonly before: string | null
}

/** Who wants to know. Nothing here may throw or take long: the caller waits for the answer. */
export interface ChangeListeners {
  listeners(table: Table, operations: readonly Happened[]): WriteListeners
  wantsUnresolved(write: HiddenWrite): boolean
  /**
   * What a transaction did, after its commit, in the order of its statements, for those who wanted it when it
   * began.
   */
  committed(table: Table, changes: readonly RowChange[], names: readonly string[]): void
  /** Rows of the table were changed, and nobody knows which. */
  reportUnreadable(table: Table): void
  /** The write has written down something for them. */
  reportStored(names: readonly string[]): void
}

/** Who is told of a write, by name, and from where. */
export interface WriteListeners {
  /** From us. */
  readonly memory: readonly string[]
  /** Of those it is written down within the write, by the database or by the statement. */
  readonly outbox: readonly string[]
  /** How the statement itself writes it down; null: it need not. */
  readonly storing: Storing | null
}

/** Of the answer, behind the statement's own. */
const IMAGE_COLUMNS = 3

export function captureChanges(runner: Runner, watch: ChangeListeners): Runner {
  const variants = createVariants()
  const wanted = ({ statement: { own } }: BoundStatement<WriteStatement>): Wanted | null =>
    own === null ? null : { own, ...watch.listeners(own.table, own.happened) }

  function telling(wants: readonly (Wanted | null)[]) {
    return (bound: BoundStatement<WriteStatement>, index: number): BoundStatement<WriteStatement> => {
      const found = wants[index]
      if (!isAsked(found)) return bound
      const { statement } = bound
      const { storing } = found
      return rebound(bound, storing === null ? variants.captured(statement) : variants.stored(statement, storing))
    }
  }

  /**
   * First each statement stores what it does; if that cannot be, it answers it; if that cannot be either, it
   * only does it.
   */
  function write(
    identity: Identity,
    statements: readonly BoundStatement<WriteStatement>[],
    wants: readonly (Wanted | null)[],
    worked: ServerTime,
  ): RunningRequest<readonly Written[]> {
    const stores = wants.some(found => found !== null && found.storing !== null)
    let current: RunningRequest<readonly Written[]> = runner.write(identity, statements.map(telling(wants)), worked)
    let cancelled = false
    const unseen = (): void => {
      for (const found of wants) if (isAsked(found)) watch.reportUnreadable(found.own.table)
    }
    const again = async (error: unknown): Promise<readonly Written[]> => {
      if (isOversize(error) && !stores) {
        unseen()
        throw oversize(error)
      }
      if (cancelled) throw error
      // Nothing is left of it. If the write itself is refused, it is refused again.
      if (stores && isUnstored(error)) {
        current = write(identity, statements, wants.map(answering), worked)
        return current.result
      }
      if (!isUnseen(error)) throw error
      current = runner.write(identity, statements, worked)
      const written = await current.result
      unseen()
      return written
    }
    return {
      result: current.result.then(written => written.map((result, index) => told(result, wants[index])), again),
      cancel() {
        cancelled = true
        current.cancel()
      },
    }
  }

  /** Its answer as the plain statement's. */
  function told(result: Written, found: Wanted | null | undefined): Written {
    if (!isAsked(found) || found.storing !== null) return result
    watch.committed(found.own.table, result.rows.map(toChange), found.memory)
    return { ...result, rows: plainRows(result.rows) }
  }

  return {
    ...runner,
    write(identity, statements, worked) {
      for (const { statement } of statements) refuseHidden(statement, watch)
      const wants = statements.map(wanted)
      const running = wants.some(isAsked)
        ? write(identity, statements, wants, worked)
        : runner.write(identity, statements, worked)
      // A second hearer of the same promise: whoever waits for the answer waits for nothing else.
      const names = wants.flatMap(found => found?.outbox ?? [])
      if (names.length > 0)
        running.result.then(
          () => watch.reportStored(names),
          () => {},
        )
      return running
    },
  }
}

interface Wanted extends WriteListeners {
  readonly own: OwnWrite
}

/** The statement has to say what it does, or to write it down: one or the other. */
function isAsked(found: Wanted | null | undefined): found is Wanted {
  return found != null && (found.memory.length > 0 || found.storing !== null)
}

/** Who would have had it from the database has it from us, which is better than not at all. */
function answering(found: Wanted | null): Wanted | null {
  return found === null || found.storing === null ? found : { ...found, storing: null, memory: found.outbox }
}

/** The same write in other words, printed when it is first asked for: every write asks. */
interface Variants {
  captured(write: WriteStatement): WriteStatement
  /** Printed anew only for another `by`. */
  stored(write: WriteStatement, by: Storing): WriteStatement
}

function createVariants(): Variants {
  const captured = new WeakMap<WriteStatement, WriteStatement>()
  const stored = new WeakMap<WriteStatement, { readonly by: Storing; readonly statement: WriteStatement }>()
  return {
    captured(write) {
      const known = captured.get(write)
      if (known !== undefined) return known
      const statement = printCaptured(write)
      captured.set(write, statement)
      return statement
    },
    stored(write, by) {
      const known = stored.get(write)
      if (known?.by === by) return known.statement
      const statement = printStored(write, by)
      stored.set(write, { by, statement })
      return statement
    },
  }
}

/** To be silent about them would be worse: somebody relies on being told. */
function refuseHidden({ hidden }: WriteStatement, watch: ChangeListeners): void {
  for (const found of hidden) {
    if (!watch.wantsUnresolved(found)) continue
    throw new GatewayError(
      'FORBIDDEN',
      `a webhook is told of what happens to "${found.table.name}", which "with" cannot say; write it in a statement of its own`,
      { span: found.table.span },
    )
  }
}

/**
 * Whoever may write a row need not be able to see it, nor all of its columns. A table with rules answers
 * nothing of a statement within another.
 */
const CANNOT_SEE: ReadonlySet<string> = new Set(['42501', '0A000'])

function isUnseen(error: unknown): boolean {
  // A plan that has gone stale has 0A000 too, and is no answer.
  if (!(error instanceof GatewayError) || error.code === 'UNAVAILABLE') return false
  return error.cause instanceof DatabaseError && CANNOT_SEE.has(error.cause.sqlstate)
}

/** Or there is no outbox any more: undefined table, column or schema (PostgreSQL manual, appendix A). */
const UNSTORED: ReadonlySet<string> = new Set([...CANNOT_SEE, '42P01', '42703', '3F000'])

function isUnstored(error: unknown): boolean {
  if (!(error instanceof GatewayError) || error.code === 'UNAVAILABLE') return false
  return error.cause instanceof DatabaseError && UNSTORED.has(error.cause.sqlstate)
}

/**
 * Ours, not the server's (postgres/batch.ts): the rows are more than can be held, and the change is probably
 * made.
 */
function isOversize(error: unknown): error is GatewayError {
  if (!(error instanceof GatewayError) || !(error.cause instanceof DatabaseError)) return false
  return error.cause.sqlstate === '54000' && error.cause.routine === null
}

function oversize({ code, message, headers, cause }: GatewayError): GatewayError {
  return new GatewayError(code, message, {
    ...{ headers, cause },
    hint: 'the change may have been made or not; read the data before you send it again, and write fewer rows at a time: webhooks are told of each, as it is and as it was',
  })
}

function toChange(row: Row): RowChange {
  const [operation, after, before] = row.slice(-IMAGE_COLUMNS)
  return {
    operation: String(operation) as Happened,
    after: after?.toString() ?? null,
    before: before?.toString() ?? null,
  }
}

/** As the plain statement answers: without columns there are no rows. */
function plainRows(rows: readonly Row[]): readonly Row[] {
  return rows.map(row => row.slice(0, -IMAGE_COLUMNS)).filter(row => row.length > 0)
}
