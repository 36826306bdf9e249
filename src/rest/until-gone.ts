/** Cancels work in PostgreSQL when the client that requested it disconnects. */
import type { Incoming } from '../exchange.ts'
import type { Row, RunningRead, RunningRequest } from '../run/run.ts'

/**
 * The result of `running`. If the client disconnects first, the request is cancelled and a write is rolled
 * back.
 */
export function untilGone<T>(incoming: Incoming, running: RunningRequest<T>): Promise<T> {
  incoming.onAbort(() => running.cancel())
  incoming.usage.waits()
  return running.result
}

/** The same, and marks the database work as finished. */
export function whenRun<T>(incoming: Incoming, running: RunningRequest<T>): Promise<T> {
  return untilGone(incoming, running).then(result => {
    incoming.usage.answered()
    return result
  })
}

/** The same for a read whose rows may already be cached. Cached rows are answered synchronously. */
export function whenRead<T>(
  incoming: Incoming,
  reading: RunningRead,
  answer: (results: readonly (readonly Row[])[]) => T | Promise<T>,
): T | Promise<T> {
  if (reading.kept !== undefined) return answer(reading.kept)
  return untilGone(incoming, reading).then(results => {
    incoming.usage.answered()
    return answer(results)
  })
}
