/**
 * Runs statements under the session settings of the caller: one transaction, one packet, one round trip
 * (decision 0007).
 */

import type { BoundStatement, CallStatement, Readable, StreamStatement, WriteStatement } from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import type { Command, Database, Result, ResultFormat, Row, RunningRequest, ServerTime } from '../postgres/types.ts'
import { isStaleSchema, timedOut, toGatewayError } from './errors.ts'
import type { NotifyingWrites } from './notifying-writes.ts'
import { RESET, RESET_AFTER_READ, RESET_AFTER_WRITE, RUN_DEFERRED, type SessionReset } from './session-reset.ts'
import type { Access, SettingsSource } from './settings.ts'

export type { Row, RunningRequest, ServerTime } from '../postgres/types.ts'

/**
 * Runs statements. All transactions of a request share one statement timeout: `worked` is the server time of
 * the request so far, and a transaction gets what is left.
 */
export interface Runner {
  /** Runs reads in one transaction; one result for each statement. Rejects with a `GatewayError`. */
  read(identity: Identity, statements: readonly BoundStatement<Readable>[], worked: ServerTime): RunningRead
  /** Like `read`, for statements that change data: all of them, or none. */
  write(
    identity: Identity,
    statements: readonly BoundStatement<WriteStatement>[],
    worked: ServerTime,
  ): RunningRequest<readonly WriteResult[]>
  /**
   * Runs a statement that calls a database function, and resets whatever the function leaves in the session.
   */
  call(
    identity: Identity,
    statement: BoundStatement<CallStatement>,
    how: CallMode,
    worked: ServerTime,
  ): RunningRequest<CallResult>
  /** Has PostgreSQL parse a statement without running it. */
  parse(identity: Identity, statement: CallStatement, worked: ServerTime): RunningRequest<void>
  /** Streams rows as PostgreSQL produces them, in batches; the connection is held until the end. */
  stream(
    identity: Identity,
    statement: BoundStatement<StreamStatement>,
    worked: ServerTime,
  ): AsyncIterableIterator<readonly Row[]>
}

/** A running read. */
export interface RunningRead extends RunningRequest<readonly (readonly Row[])[]> {
  /** The result if it was cached and nothing was executed. */
  readonly kept?: readonly (readonly Row[])[]
}

/** The result of a write. */
export interface WriteResult {
  readonly rows: readonly Row[]
  /** The number of rows that the statement changed, or that it counted itself. */
  readonly count: number
  /** The transaction number, `pg_current_xact_id()`. */
  readonly txid: string
}

/** How a function is called. */
export interface CallMode {
  readonly access: Access
  readonly format: ResultFormat
}

/** The result of a call. */
export type CallResult = Pick<Result, 'rows' | 'fields'>

/** Rows requested at a time in a stream: enough to keep PostgreSQL busy, little enough to hold in memory. */
const STREAM_BATCH_ROWS = 1_000

/** The dependencies of a runner. */
export interface RunnerParts {
  readonly database: Database
  readonly settings: SettingsSource
  readonly reset: SessionReset
  /** Called when a statement named something that no longer exists: the schema has changed. */
  readonly onStaleSchema: () => void
  /** Adds notifications to writes; null if the gateway has no connection that can listen. */
  readonly announcements: NotifyingWrites | null
}

/** Creates a runner. */
export function createRunner({ database, settings, reset, onStaleSchema, announcements }: RunnerParts): Runner {
  const fail = (error: unknown, statements: readonly BoundStatement[], access: Access): Promise<never> => {
    if (isStaleSchema(error)) onStaleSchema()
    return Promise.reject(toGatewayError(error, { statements, access }))
  }

  /** Sends a transaction in one packet; nothing is sent if the request has no time left. */
  function send(commands: readonly Command[], worked: ServerTime): RunningRequest<readonly Result[]> {
    if (settings.isOver(worked.ms)) return { result: Promise.reject(timedOut()), cancel() {} }
    return database.run(commands, worked)
  }

  /** Runs one packet; `take` receives all results, those of the settings first. */
  function run<T>(
    access: Access,
    statements: readonly BoundStatement[],
    commands: readonly Command[],
    worked: ServerTime,
    take: (results: readonly Result[]) => T,
  ): RunningRequest<T> {
    const running = send(commands, worked)
    return {
      result: running.result.then(take, error => fail(error, statements, access)),
      cancel: () => running.cancel(),
    }
  }

  /** All statements of a transaction share one timeout: with several, each gets the time that is left. */
  function withDeadlines(statements: readonly BoundStatement[], worked: ServerTime): readonly Command[] {
    if (statements.length <= 1) return statements.map(toCommand)
    const deadline = settings.deadline(worked.ms)
    return statements.flatMap((statement, index) =>
      index === 0 ? [toCommand(statement)] : [deadline, toCommand(statement)],
    )
  }

  /** The result of a statement, after that of the settings. */
  function resultOf(results: readonly Result[], index: number, count: number): Result {
    const found = results[1 + (count === 1 ? index : 2 * index)]
    if (found === undefined) throw new Error('a statement must have a result')
    return found
  }

  /** The results of the settings and the statements only. */
  function plainResults(results: readonly Result[], count: number): readonly Result[] {
    const [first] = results
    if (count === 1 || first === undefined) return results
    return [first, ...Array.from({ length: count }, (_, index) => resultOf(results, index, count))]
  }

  /**
   * A function can change session settings and leave other state (decision 0011). All of it is reset in the
   * same transaction. Deferred triggers run before that, under the caller's own settings.
   */
  function withReset(call: Command, identity: Identity, access: Access, worked: ServerTime): readonly Command[] {
    const first = settings.for(identity, access, worked.ms)
    if (access === 'read only') return [first, call, ...RESET_AFTER_READ]
    return [first, call, ...RESET, first, ...beforeDeferred(worked), ...RUN_DEFERRED, ...RESET_AFTER_WRITE]
  }

  /** Deferred triggers get the time that is left as well. Without any, no statement is needed. */
  function beforeDeferred(
    worked: ServerTime,
    statements?: readonly BoundStatement<WriteStatement>[],
  ): readonly Command[] {
    return reset.canDefer(statements) ? [settings.deadline(worked.ms)] : []
  }

  return {
    read(identity, statements, worked) {
      const after = reset.afterRead(statements)
      const first = settings.for(identity, 'read only', worked.ms)
      return run('read only', statements, [first, ...withDeadlines(statements, worked), ...after], worked, results =>
        statements.map((_, index) => resultOf(results, index, statements.length).rows),
      )
    },
    write(identity, statements, worked) {
      const after = [...beforeDeferred(worked, statements), ...reset.afterWrite(statements)]
      const attempt = (
        asked: readonly BoundStatement<WriteStatement>[],
        more: readonly Command[],
      ): RunningRequest<readonly Result[]> => {
        const first = settings.numbered(identity, worked.ms)
        const running = send([first, ...withDeadlines(asked, worked), ...more, ...after], worked)
        return {
          result: running.result.then(
            results => plainResults(results, asked.length),
            error => fail(error, asked, 'read write'),
          ),
          cancel: () => running.cancel(),
        }
      }
      const running = announcements === null ? attempt(statements, []) : announcements.run(statements, attempt)
      return {
        result: running.result.then(([numbered, ...results]) => {
          const txid = numbered?.rows[0]?.[0]?.toString() ?? ''
          return results.slice(0, statements.length).map(({ rows, tag }) => ({ rows, count: countOf(tag), txid }))
        }),
        cancel: () => running.cancel(),
      }
    },
    call(identity, statement, { access, format }, worked) {
      const command = { text: statement.statement.text, parameters: statement.values, resultFormat: format }
      return run(access, [statement], withReset(command, identity, access, worked), worked, ([, called]) => {
        if (called === undefined) throw new Error('a call must have a result')
        return called
      })
    },
    parse(identity, { text }, worked) {
      if (settings.isOver(worked.ms)) return { result: Promise.reject(timedOut()), cancel() {} }
      const running = database.describe([settings.for(identity, 'read only', worked.ms)], text, worked)
      return {
        result: running.result.then(
          () => undefined,
          error => fail(error, [], 'read only'),
        ),
        cancel: () => running.cancel(),
      }
    },
    stream(identity, statement, worked) {
      if (settings.isOver(worked.ms)) throw timedOut()
      const before = [settings.for(identity, 'read only', worked.ms)]
      const after = reset.afterRead([statement])
      const rows = database.stream(before, toCommand(statement), STREAM_BATCH_ROWS, after, worked)
      return translating(rows, error => fail(error, [statement], 'read only'))
    },
  }
}

/** The last word of `INSERT 0 3`, `UPDATE 3`, `SELECT 3`. */
function countOf(tag: string): number {
  return Number(tag.slice(tag.lastIndexOf(' ') + 1))
}

/**
 * Not a generator: `return` must reach the database while a batch is awaited, or nothing could be cancelled.
 */
function translating(
  rows: AsyncIterableIterator<readonly Row[]>,
  fail: (error: unknown) => Promise<never>,
): AsyncIterableIterator<readonly Row[]> {
  return {
    next: () => rows.next().catch(fail),
    return: async () => (await rows.return?.()) ?? { done: true, value: undefined },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function toCommand({ statement, values }: BoundStatement): Command {
  return { text: statement.text, parameters: values }
}
