/**
 * `Server-Timing` (W3C Server Timing; docs/guides/monitoring.md#during-development): where the time of a
 * request was spent, for application developers. It exists in development mode only; otherwise nothing is
 * measured.
 *
 * `auth`: until the caller is known. `plan`: from there until the first statement is sent, for parsing,
 * checking and printing the request. `db`: from sending a statement to its result or the first rows of a
 * stream, including the wait for a connection. `total`: the whole request.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Database } from '../postgres/types.ts'

/** The measured times of a request in milliseconds; null for phases that were not reached. */
export interface RequestTiming {
  readonly startedAt: number
  auth: number | null
  plan: number | null
  db: number | null
}

/** A request with its measured times. */
export interface Timed {
  timing: RequestTiming | null
}

/** Measures requests. */
export interface ServerTiming {
  /** Wraps the pipeline and measures each request by its calls of `authenticate` and `database`. */
  pipeline<I, P extends Timed, A>(answer: (incoming: I, progress: P) => A): typeof answer
  authenticate<H, C, I>(
    authenticate: (headers: H, connection?: C) => I | Promise<I>,
  ): (headers: H, connection?: C) => Promise<I>
  database(database: Database): Database
}

/** Creates the measurement; `now` is the time in milliseconds of a monotonic clock. */
export function createServerTiming(now: () => number): ServerTiming {
  const current = new AsyncLocalStorage<RequestTiming>()

  /**
   * Records that a statement is about to be sent for the current request. Statements of the gateway itself,
   * such as reading the schema, have none.
   */
  function planned(): RequestTiming | undefined {
    const timing = current.getStore()
    if (timing !== undefined) timing.plan ??= now() - timing.startedAt - (timing.auth ?? 0)
    return timing
  }

  /** Adds the time until `answer` settles. */
  function awaited(timing: RequestTiming | undefined, answer: Promise<unknown>): void {
    if (timing === undefined) return
    const started = now()
    const add = () => {
      timing.db = (timing.db ?? 0) + now() - started
    }
    answer.then(add, add)
  }

  return {
    pipeline: answer => (incoming, progress) => {
      const timing = { startedAt: now(), auth: null, plan: null, db: null }
      progress.timing = timing
      return current.run(timing, () => answer(incoming, progress))
    },
    authenticate: authenticate => async (headers, connection) => {
      const started = now()
      try {
        return await authenticate(headers, connection)
      } finally {
        const timing = current.getStore()
        if (timing !== undefined) timing.auth = now() - started
      }
    },
    database: database => ({
      run(commands, worked) {
        const timing = planned()
        const running = database.run(commands, worked)
        awaited(timing, running.result)
        return running
      },
      describe(before, text, worked) {
        const timing = planned()
        const running = database.describe(before, text, worked)
        awaited(timing, running.result)
        return running
      },
      begin(flow, isolation, worked) {
        const timing = planned()
        const transaction = database.begin(flow, isolation, worked)
        awaited(timing, transaction.ended)
        return transaction
      },
      stream(before, command, batchRows, after, worked) {
        const timing = planned()
        const rows = database.stream(before, command, batchRows, after, worked)
        return {
          next() {
            const batch = rows.next()
            awaited(timing, batch)
            return batch
          },
          return: async () => (await rows.return?.()) ?? { done: true, value: undefined },
          [Symbol.asyncIterator]() {
            return this
          },
        }
      },
    }),
  }
}

/** Prints the header. `timing` is null for a request that did not reach the pipeline. */
export function printServerTiming(timing: RequestTiming | null, totalMs: number): string {
  const parts: readonly (readonly [string, number | null | undefined])[] = [
    ['auth', timing?.auth],
    ['plan', timing?.plan],
    ['db', timing?.db],
    ['total', totalMs],
  ]
  return parts.flatMap(([name, ms]) => (ms == null ? [] : [`${name};dur=${Math.round(ms * 1_000) / 1_000}`])).join(', ')
}
