/** Runs statements under the settings of the caller: one transaction, one packet, one round trip (decision 0007). */

import type { BoundStatement, CallStatement, Readable, StreamStatement, WriteStatement } from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import type { Command, Database, Result, ResultFormat, Row, RunningRequest, ServerTime } from '../postgres/types.ts'
import type { Announcements } from './announcements.ts'
import { isStaleSchema, timedOut, toGatewayError } from './errors.ts'
import { CONSTRAINTS_NOW, RESET, RESET_AFTER_CHANGE, RESET_AFTER_READ, type SessionReset } from './session-reset.ts'
import type { Access, SettingsSource } from './settings.ts'

export type { Row, RunningRequest, ServerTime } from '../postgres/types.ts'

/** All transactions of a request share one statement timeout. `worked`: of the request; what of the timeout is left is for the transaction. */
export interface Runner {
  /** One result for each statement, all of one transaction. Rejects with a `GatewayError`. */
  read(identity: Identity, statements: readonly BoundStatement<Readable>[], worked: ServerTime): Reading
  /** As `read`, for statements that change something: all of them, or none. */
  write(
    identity: Identity,
    statements: readonly BoundStatement<WriteStatement>[],
    worked: ServerTime,
  ): RunningRequest<readonly Written[]>
  /** Runs a statement that calls a function of the database, and undoes whatever settings the function leaves behind. */
  call(identity: Identity, statement: BoundStatement<CallStatement>, how: CallMode, worked: ServerTime): RunningRequest<Called>
  /** Has PostgreSQL read a statement without running it. */
  parse(identity: Identity, statement: CallStatement, worked: ServerTime): RunningRequest<void>
  /** Rows as PostgreSQL produces them, batch by batch as they are taken; the connection is held until the end. */
  stream(
    identity: Identity,
    statement: BoundStatement<StreamStatement>,
    worked: ServerTime,
  ): AsyncIterableIterator<readonly Row[]>
}

export interface Reading extends RunningRequest<readonly (readonly Row[])[]> {
  /** The result, where it was kept and nothing was executed. */
  readonly kept?: readonly (readonly Row[])[]
}

export interface Written {
  readonly rows: readonly Row[]
  /** How many rows the statement changed, or passed on where it counts them itself. */
  readonly count: number
  /** Of the transaction, `pg_current_xact_id()`. */
  readonly txid: string
}

export interface CallMode {
  readonly access: Access
  readonly format: ResultFormat
}

export type Called = Pick<Result, 'rows' | 'fields'>

/** Rows asked for at a time in a stream: enough to keep PostgreSQL busy, little enough to hold. */
const STREAM_BATCH_ROWS = 1_000

export interface RunnerParts {
  readonly database: Database
  readonly settings: SettingsSource
  readonly reset: SessionReset
  /** A statement named something that is not there any more: the schema has changed under it. */
  readonly onStaleSchema: () => void
  /** Null: nobody can listen, and no write tells of itself. */
  readonly announcements: Announcements | null
}

export function createRunner({ database, settings, reset, onStaleSchema, announcements }: RunnerParts): Runner {
  const fail = (error: unknown, statements: readonly BoundStatement[], access: Access): Promise<never> => {
    if (isStaleSchema(error)) onStaleSchema()
    return Promise.reject(toGatewayError(error, { statements, access }))
  }

  /** A transaction in one packet; nothing is sent where the request has no time left. */
  function send(commands: readonly Command[], worked: ServerTime): RunningRequest<readonly Result[]> {
    if (settings.isOver(worked.ms)) return { result: Promise.reject(timedOut()), cancel() {} }
    return database.run(commands, worked)
  }

  /** One packet; `take` gets all results, those of the settings first. */
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

  /** All statements of a transaction share one timeout: where there are several, each is given the time that is left. */
  function inTime(statements: readonly BoundStatement[], worked: ServerTime): readonly Command[] {
    if (statements.length <= 1) return statements.map(toCommand)
    const deadline = settings.deadline(worked.ms)
    return statements.flatMap((statement, index) =>
      index === 0 ? [toCommand(statement)] : [deadline, toCommand(statement)],
    )
  }

  /** The result of a statement, behind that of the settings. */
  function resultOf(results: readonly Result[], index: number, count: number): Result {
    const found = results[1 + (count === 1 ? index : 2 * index)]
    if (found === undefined) throw new Error('a statement has a result')
    return found
  }

  /** The results of the settings and the statements alone. */
  function plainResults(results: readonly Result[], count: number): readonly Result[] {
    const [first] = results
    if (count === 1 || first === undefined) return results
    return [first, ...Array.from({ length: count }, (_, index) => resultOf(results, index, count))]
  }

  /**
   * A function can set anything for the rest of the session, and leave more behind than settings (decision 0011). All of it is undone in the same
   * transaction. Deferred triggers run before that, under the caller's own settings and not what the function made of them.
   */
  function withReset(call: Command, identity: Identity, access: Access, worked: ServerTime): readonly Command[] {
    const first = settings.for(identity, access, worked.ms)
    if (access === 'read only') return [first, call, ...RESET_AFTER_READ]
    return [first, call, ...RESET, first, ...beforeDeferred(worked), ...CONSTRAINTS_NOW, ...RESET_AFTER_CHANGE]
  }

  /** Deferred triggers get the time that is left as well. Without any in the database, nothing is said before a transaction ends. */
  function beforeDeferred(worked: ServerTime): readonly Command[] {
    return reset.canDefer() ? [settings.deadline(worked.ms)] : []
  }

  return {
    read(identity, statements, worked) {
      const after = reset.afterRead(statements)
      const first = settings.for(identity, 'read only', worked.ms)
      return run('read only', statements, [first, ...inTime(statements, worked), ...after], worked, results =>
        statements.map((_, index) => resultOf(results, index, statements.length).rows),
      )
    },
    write(identity, statements, worked) {
      const after = reset.afterWrite(statements)
      const attempt = (
        asked: readonly BoundStatement<WriteStatement>[],
        more: readonly Command[],
      ): RunningRequest<readonly Result[]> => {
        const first = settings.numbered(identity, worked.ms)
        const running = send([first, ...inTime(asked, worked), ...more, ...beforeDeferred(worked), ...after], worked)
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
        if (called === undefined) throw new Error('a call has a result')
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

/** `INSERT 0 3`, `UPDATE 3`, `SELECT 3`: the last word. */
function countOf(tag: string): number {
  return Number(tag.slice(tag.lastIndexOf(' ') + 1))
}

/** Not a generator: `return` must reach the database while a batch is still awaited, or nothing could be cancelled. */
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
