/**
 * Runs statements under the session settings of the caller: one transaction, one packet, one round trip
 * (decision 0007).
 */

import type {
  BoundStatement,
  CallStatement,
  ReadableStatement,
  StreamStatement,
  WriteStatement,
} from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import type {
  Command,
  Database,
  Isolation,
  Result,
  ResultFormat,
  ResultRow,
  RunningRequest,
} from '../postgres/types.ts'
import { isOversize, isStaleSchema, timedOut, toGatewayError } from './errors.ts'
import {
  type Effect,
  isUndone,
  JointTransaction,
  type KnownFailures,
  type Part,
  type Work,
} from './joint-transaction.ts'
import { toCommand } from './key-lists.ts'
import type { NotifyingWrites } from './notifying-writes.ts'
import type { ReadRoutes } from './replicas/read-routes.ts'
import { textForRole } from './role-text.ts'
import { type SessionFrame, sessionFrame } from './session-frame.ts'
import { RESET, RESET_AFTER_READ, RESET_AFTER_WRITE, RUN_DEFERRED, type SessionReset } from './session-reset.ts'
import type { Access, SettingsSource } from './settings.ts'

export type { ResultRow, RunningRequest, ServerTime } from '../postgres/types.ts'
export type { Work } from './joint-transaction.ts'

/**
 * Runs statements. All transactions of a request share one statement timeout: `worked` is the server time of
 * the request so far, and a transaction gets what is left.
 */
export interface Runner {
  /** Runs reads in one transaction; one result for each statement. Rejects with a `GatewayError`. */
  read(identity: Identity, statements: readonly BoundStatement<ReadableStatement>[], worked: Work): RunningRead
  /** Like `read`, for statements that change data: all of them, or none. */
  write(
    identity: Identity,
    statements: readonly BoundStatement<WriteStatement>[],
    worked: Work,
  ): RunningRequest<readonly WriteResult[]>
  /**
   * Runs a statement that calls a database function, and resets all state that the function can leave in the
   * session.
   */
  call(
    identity: Identity,
    statement: BoundStatement<CallStatement>,
    how: CallMode,
    worked: Work,
  ): RunningRequest<CallResult>
  /** Has PostgreSQL parse a statement without running it. */
  parse(identity: Identity, statement: CallStatement, worked: Work): RunningRequest<void>
  /** Streams rows as PostgreSQL produces them, in batches; the connection is held until the end. */
  stream(
    identity: Identity,
    statement: BoundStatement<StreamStatement>,
    worked: Work,
  ): AsyncIterableIterator<readonly ResultRow[]>
  /**
   * Opens one transaction for several operations of a request, whose statements name their part of it in
   * `worked`. Nothing is sent before the first of them.
   */
  open(identity: Identity, options: TransactionOptions, worked: Work): Promise<JointTransaction>
}

/** How a transaction of several operations runs. */
export interface TransactionOptions {
  /** Null for the default of the database. */
  readonly isolation: Isolation | null
  /** The failures in earlier runs of the same operations. */
  readonly known: KnownFailures
  /** The claim on an idempotency key; null without one. */
  readonly claim: Command | null
  /** True if each statement has the whole statement timeout, however long the transaction is open. */
  readonly hasOwnTime?: boolean
}

/** A running read. */
export interface RunningRead extends RunningRequest<readonly (readonly ResultRow[])[]> {
  /** The result if it was cached and nothing was executed. */
  readonly kept?: readonly (readonly ResultRow[])[]
}

/** The result of a write. */
export interface WriteResult {
  readonly rows: readonly ResultRow[]
  /** The number of rows that the statement changed, or that it counted itself. */
  readonly count: number
  /** The transaction number, `pg_current_xact_id()`. */
  readonly txid: string
}

/** How a function is called. */
export interface CallMode {
  readonly access: Access
  readonly format: ResultFormat
  /** True if the function is STABLE or IMMUTABLE, so that its call is a read like others. */
  readonly isStable?: boolean
}

/** The result of a call. */
export type CallResult = Pick<Result, 'rows' | 'fields'>

const NO_COMMANDS: readonly Command[] = []

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
  /** Runs reads on replicas; null, the default, if there are none. */
  readonly routes?: ReadRoutes | null
}

/** Creates a runner. */
export function createRunner(parts: RunnerParts): Runner {
  const { database, settings, reset, onStaleSchema, announcements, routes = null } = parts
  const fail = (error: unknown, statements: readonly BoundStatement[], access: Access): Promise<never> => {
    if (isStaleSchema(error)) onStaleSchema()
    return Promise.reject(toGatewayError(error, { statements, access }))
  }

  /** Sends a transaction in one packet; nothing is sent if the request has no time left. */
  function send(commands: readonly Command[], worked: Work): RunningRequest<readonly Result[]> {
    if (settings.isOver(worked.ms)) return { result: Promise.reject(timedOut()), cancel() {} }
    return database.run(commands, worked)
  }

  /**
   * Sends a transaction that only reads to a replica or to the primary. `commands` makes them for the time
   * that is left. `text` is that of its statement, or of the first.
   */
  function sendRead(
    identity: Identity,
    text: string,
    commands: () => readonly Command[],
    worked: Work,
  ): RunningRequest<readonly Result[]> {
    const onPrimary = () => send(commands(), worked)
    const route = routes?.routeOf(identity, text, worked.consistency) ?? null
    if (routes === null || route === null || settings.isOver(worked.ms)) return onPrimary()
    return routes.run(route, worked, commands, onPrimary)
  }

  /** The same for a transaction that may have written; its response waits until its position is known. */
  function sendWrite(
    identity: Identity,
    commands: readonly Command[],
    worked: Work,
  ): RunningRequest<readonly Result[]> {
    const running = send(commands, worked)
    if (routes === null) return running
    return {
      result: running.result.then(
        async results => {
          await routes.wrote(identity, worked)
          return results
        },
        error => {
          if (!isUndone(error) || isOversize(error)) routes.mayWrite(identity)
          throw error
        },
      ),
      cancel: () => running.cancel(),
    }
  }

  /** The result of one packet; `take` receives all results, those of the settings first. */
  function taken<T>(
    access: Access,
    statements: readonly BoundStatement[],
    running: RunningRequest<readonly Result[]>,
    take: (results: readonly Result[]) => T,
  ): RunningRequest<T> {
    return {
      result: running.result.then(take, error => fail(error, statements, access)),
      cancel: () => running.cancel(),
    }
  }

  /** All statements of a transaction share one timeout: with several, each gets the time that is left. */
  function withDeadlines(identity: Identity, statements: readonly BoundStatement[], worked: Work): readonly Command[] {
    const commands = statements.map(statement => commandFor(identity, statement))
    if (commands.length <= 1) return commands
    const deadline = settings.deadline(identity, worked.ms)
    return commands.flatMap((command, index) => (index === 0 ? [command] : [deadline, command]))
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
  function withReset(
    call: Command,
    frame: SessionFrame,
    identity: Identity,
    access: Access,
    worked: Work,
  ): readonly Command[] {
    const first = settings.for(identity, access, worked.ms, worked.trace)
    const called = [first, ...frame.before, call, ...frame.after]
    if (access === 'read only') return [...called, ...RESET_AFTER_READ]
    const deferred = [...beforeDeferred(identity, worked), ...RUN_DEFERRED]
    return [...called, ...RESET, first, ...deferred, ...RESET_AFTER_WRITE, ...frame.end]
  }

  /** Deferred triggers get the time that is left as well. Without any, no statement is needed. */
  function beforeDeferred(
    identity: Identity,
    worked: Work,
    statements?: readonly BoundStatement<WriteStatement>[],
  ): readonly Command[] {
    return reset.canDefer(statements) ? [settings.deadline(identity, worked.ms)] : []
  }

  /**
   * Runs statements as a part of a transaction, each within the time that is left. The results are those of
   * `first` and of the statements.
   */
  function runWithin(part: Part, worked: Work, statements: readonly BoundStatement[], how: Enclosed) {
    const { identity, first, commands, after, access, effect, isLast } = how
    if (settings.isOver(worked.ms)) return { result: Promise.reject(timedOut()), cancel() {} }
    const timing = part.hasOwnTime === true ? [] : [settings.deadline(identity, worked.ms)]
    const sent = [...first, ...commands.flatMap(command => [...timing, command]), ...after]
    const running = part.run(sent, effect, isLast)
    return {
      result: running.result.then(
        (results): readonly Result[] => [
          ...results.slice(0, first.length),
          ...commands.map((_, index) => results[first.length + index + timing.length * (index + 1)] as Result),
        ],
        // The transaction is rolled back, so its outcome is known.
        error => fail(error, statements, isOversize(error) ? 'read only' : access),
      ),
      cancel: () => running.cancel(),
    }
  }

  /** A read runs in a subtransaction, which can be read-only while the transaction is not. */
  function readWithin(
    worked: Work & { readonly within: Part },
    identity: Identity,
    statements: readonly BoundStatement[],
    commands: readonly Command[],
    { leavesState, isLast }: { readonly leavesState: boolean; readonly isLast: boolean },
  ): RunningRequest<readonly Result[]> {
    const first = [SAVEPOINT, settings.for(identity, 'read only', worked.ms)]
    const after = [...(leavesState ? RESET_AFTER_READ : []), RELEASE]
    const effect = { writes: false, leavesState }
    const how = { identity, first, commands, after, access: 'read only', effect, isLast } as const
    return mapped(runWithin(worked.within, worked, statements, how), results => results.slice(first.length))
  }

  function writeWithin(
    part: Part,
    identity: Identity,
    statements: readonly BoundStatement<WriteStatement>[],
    more: readonly Command[],
    worked: Work,
  ): RunningRequest<readonly Result[]> {
    const leavesState = reset.leavesState(statements)
    return runWithin(part, worked, statements, {
      identity,
      first: [settings.numbered(identity, worked.ms, worked.trace)],
      commands: statements.map(statement => commandFor(identity, statement)),
      after: [...more, ...(leavesState ? RESET_AFTER_READ : [])],
      ...{ access: 'read write', effect: { writes: true, leavesState }, isLast: true },
    })
  }

  return {
    read(identity, statements, worked) {
      const leavesState = identity.session?.before != null || reset.leavesState(statements)
      // Only a function sets headers of the response, and `set_config` counts as one.
      const frame = sessionFrame(identity, 'read only', leavesState)
      const after = leavesState ? RESET_AFTER_READ : NO_COMMANDS
      if (isWithin(worked)) {
        const isLast = !worked.within.writesRows && statements.every(({ statement }) => statement.kind !== 'explain')
        const how = { leavesState: after.length > 0, isLast }
        const commands = statements.map(statement => commandFor(identity, statement))
        const running = readWithin(worked, identity, statements, commands, how)
        return mapped(running, results => results.map(({ rows }) => rows))
      }
      const commands = () => [
        settings.for(identity, 'read only', worked.ms),
        ...frame.before,
        ...withDeadlines(identity, statements, worked),
        ...frame.after,
        ...after,
      ]
      const running = sendRead(identity, statements[0]?.statement.text ?? '', commands, worked)
      return taken('read only', statements, running, results => {
        const own = frame.without(results, countWithDeadlines(statements))
        return statements.map((_, index) => resultOf(own, index, statements.length).rows)
      })
    },
    write(identity, statements, worked) {
      // Only a function sets headers of the response, also one of a trigger.
      const canReply = identity.session?.before != null || reset.leavesState(statements)
      const frame = sessionFrame(identity, 'read write', canReply)
      const resetting = callsFirst(frame) ? [...RUN_DEFERRED, ...RESET_AFTER_WRITE] : reset.afterWrite(statements)
      const after = [...beforeDeferred(identity, worked, statements), ...resetting, ...frame.end]
      const attempt = (
        statements: readonly BoundStatement<WriteStatement>[],
        more: readonly Command[],
      ): RunningRequest<readonly Result[]> => {
        if (isWithin(worked)) return writeWithin(worked.within, identity, statements, more, worked)
        const first = settings.numbered(identity, worked.ms, worked.trace)
        const middle = [...withDeadlines(identity, statements, worked), ...more]
        const running = sendWrite(identity, [first, ...frame.before, ...middle, ...frame.after, ...after], worked)
        return {
          result: running.result.then(
            results => plainResults(frame.without(results, middle.length), statements.length),
            error => fail(error, statements, 'read write'),
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
    call(identity, statement, { access, format, isStable = false }, worked) {
      const { text, parameters } = commandFor(identity, statement)
      const command: Command = { text, parameters, resultFormat: format }
      const leavesState = identity.session?.before != null || reset.leavesState([statement])
      const frame = sessionFrame(identity, access, leavesState)
      const take = (called: Result | undefined): Result => {
        if (called === undefined) throw new Error('a call must have a result')
        return called
      }
      if (!isWithin(worked)) {
        const commands = () =>
          leavesState
            ? withReset(command, frame, identity, access, worked)
            : [settings.for(identity, access, worked.ms, worked.trace), command, ...frame.end]
        const running =
          access === 'read write'
            ? sendWrite(identity, commands(), worked)
            : isStable
              ? sendRead(identity, command.text, commands, worked)
              : send(commands(), worked)
        return taken(access, [statement], running, results => take(frame.without(results, 1)[1]))
      }
      if (access === 'read only') {
        const how = { leavesState, isLast: true }
        return mapped(readWithin(worked, identity, [statement], [command], how), ([called]) => take(called))
      }
      const running = runWithin(worked.within, worked, [statement], {
        identity,
        first: [settings.for(identity, access, worked.ms, worked.trace)],
        ...{ commands: [command], after: leavesState ? RESET_AFTER_READ : NO_COMMANDS, access },
        ...{ effect: { writes: true, leavesState }, isLast: true },
      })
      return mapped(running, ([, called]) => take(called))
    },
    parse(identity, { text }, worked) {
      if (settings.isOver(worked.ms)) return { result: Promise.reject(timedOut()), cancel() {} }
      if (isWithin(worked)) {
        const parsing = { text, parameters: [], parsesOnly: true } as const
        const first = [SAVEPOINT, settings.for(identity, 'read only', worked.ms), parsing]
        const effect = { writes: false, leavesState: false }
        const how = {
          identity,
          first,
          commands: [],
          after: [RELEASE],
          access: 'read only',
          effect,
          isLast: false,
        } as const
        return mapped(runWithin(worked.within, worked, [], how), () => undefined)
      }
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
      const after = reset.afterRead([statement])
      const open = (from: Pick<Database, 'stream'>, more: readonly Command[]) => {
        if (settings.isOver(worked.ms)) throw timedOut()
        const before = [settings.for(identity, 'read only', worked.ms), ...more]
        return from.stream(before, commandFor(identity, statement), STREAM_BATCH_ROWS, after, worked)
      }
      const onPrimary = () => open(database, NO_COMMANDS)
      const route = routes?.routeOf(identity, statement.statement.text, worked.consistency) ?? null
      const rows = routes === null || route === null ? onPrimary() : routes.stream(route, worked, open, onPrimary)
      return translating(rows, error => fail(error, [statement], 'read only'))
    },
    async open(identity, { isolation, known, claim, hasOwnTime = false }, worked) {
      return new JointTransaction({
        ...{ database, isolation, worked, known },
        flow: settings.for(identity, 'read write').flow,
        opening: claim === null ? [] : [settings.deadline(identity, worked.ms), claim],
        written:
          routes === null
            ? null
            : { committed: () => routes.wrote(identity, worked), unknown: () => routes.mayWrite(identity) },
        closing: ({ writes, leavesState }) => [
          ...(writes
            ? [
                settings.numbered(identity, worked.ms, worked.trace),
                ...(hasOwnTime ? [] : [settings.deadline(identity, worked.ms)]),
                ...RUN_DEFERRED,
              ]
            : []),
          ...(leavesState ? (writes ? RESET_AFTER_WRITE : RESET_AFTER_READ) : []),
        ],
        failed: error => {
          if (isStaleSchema(error)) onStaleSchema()
          return toGatewayError(error, { statements: [], access: 'read write' })
        },
      })
    },
  }
}

/** The command of a statement. Database roles share no prepared statement. */
function commandFor(identity: Identity, statement: BoundStatement): Command {
  const command = toCommand(statement)
  return identity.session === undefined ? command : { ...command, text: textForRole(command.text, identity) }
}

/** The number of commands that `withDeadlines` makes. */
function countWithDeadlines({ length }: readonly BoundStatement[]): number {
  return length === 0 ? 0 : 2 * length - 1
}

/** A function that is called first can leave state in the session, whatever the statements do. */
function callsFirst({ before }: SessionFrame): boolean {
  return before.length > 0
}

/** The commands of one run within a transaction of several operations. */
interface Enclosed {
  readonly identity: Identity
  readonly first: readonly Command[]
  readonly commands: readonly Command[]
  readonly after: readonly Command[]
  readonly access: Access
  readonly effect: Effect
  /** True if the operation sends nothing more. */
  readonly isLast: boolean
}

const SAVEPOINT: Command = { text: 'SAVEPOINT svc_read', parameters: [] }
const RELEASE: Command = { text: 'RELEASE SAVEPOINT svc_read', parameters: [] }

function isWithin(worked: Work): worked is Work & { readonly within: Part } {
  return worked.within !== undefined
}

function mapped<T, U>(running: RunningRequest<T>, take: (result: T) => U): RunningRequest<U> {
  return { result: running.result.then(take), cancel: () => running.cancel() }
}

/** The last word of `INSERT 0 3`, `UPDATE 3`, `SELECT 3`. */
function countOf(tag: string): number {
  return Number(tag.slice(tag.lastIndexOf(' ') + 1))
}

/**
 * Not a generator: `return` must reach the database while a batch is awaited, or nothing could be cancelled.
 */
function translating(
  rows: AsyncIterableIterator<readonly ResultRow[]>,
  fail: (error: unknown) => Promise<never>,
): AsyncIterableIterator<readonly ResultRow[]> {
  return {
    next: () => rows.next().catch(fail),
    return: async () => (await rows.return?.()) ?? { done: true, value: undefined },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
