/**
 * `Server-Timing` (W3C Server Timing; docs/guides/monitoring.md#during-development): where the time of a request went, for developers of
 * applications. It exists in development mode alone; otherwise nothing here is made, and nothing is measured.
 *
 * `auth`: until the caller is known. `plan`: from there until the first statement is sent – reading, checking
 * and printing the request. `db`: from a statement's sending to its answer, or to the first rows of a stream,
 * waiting for a connection included. `total`: all of it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Database } from '../postgres/types.ts'

/** What was measured of a request, in milliseconds; null for what it did not come to. */
export interface Timing {
  readonly startedAt: number
  auth: number | null
  plan: number | null
  db: number | null
}

export interface Timed {
  timing: Timing | null
}

export interface ServerTiming {
  /** The same, measuring each request by what `authenticate` and `database` do for it. */
  pipeline<I, P extends Timed, A>(answer: (incoming: I, progress: P) => A): typeof answer
  authenticate<H, C, I>(
    authenticate: (headers: H, connection?: C) => I | Promise<I>,
  ): (headers: H, connection?: C) => Promise<I>
  database(database: Database): Database
}

/** `now`: milliseconds, from any monotonic clock. */
export function createServerTiming(now: () => number): ServerTiming {
  const current = new AsyncLocalStorage<Timing>()

  /**
   * A statement is about to be sent for the request at hand, if there is one: the schema is read for nobody.
   */
  function planned(): Timing | undefined {
    const timing = current.getStore()
    if (timing !== undefined) timing.plan ??= now() - timing.startedAt - (timing.auth ?? 0)
    return timing
  }

  /** Adds what goes by until it is answered, well or not. */
  function awaited(timing: Timing | undefined, answer: Promise<unknown>): void {
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

/** The header's value. `timing` is null for a request that did not come to the pipeline. */
export function printServerTiming(timing: Timing | null, totalMs: number): string {
  const parts: readonly (readonly [string, number | null | undefined])[] = [
    ['auth', timing?.auth],
    ['plan', timing?.plan],
    ['db', timing?.db],
    ['total', totalMs],
  ]
  return parts.flatMap(([name, ms]) => (ms == null ? [] : [`${name};dur=${Math.round(ms * 1_000) / 1_000}`])).join(', ')
}
