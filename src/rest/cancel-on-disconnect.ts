/** Cancels work in PostgreSQL when the client that requested it disconnects. */
import type { Incoming } from '../exchange.ts'
import type { ResultRow, RunningRead, RunningRequest } from '../run/run.ts'

/**
 * The result of `running`. If the client disconnects first, the request is cancelled and a write is rolled
 * back.
 */
export function cancelOnDisconnect<T>(incoming: Incoming, running: RunningRequest<T>): Promise<T> {
  incoming.onAbort(() => running.cancel())
  incoming.usage.waits()
  return running.result
}

/** The same, and marks the database work as finished. */
export function awaitResult<T>(incoming: Incoming, running: RunningRequest<T>): Promise<T> {
  return cancelOnDisconnect(incoming, running).then(result => {
    incoming.usage.answered()
    return result
  })
}

/** The same for a read whose rows may already be cached. Cached rows are answered synchronously. */
export function awaitRead<T>(
  incoming: Incoming,
  reading: RunningRead,
  answer: (results: readonly (readonly ResultRow[])[]) => T | Promise<T>,
  failed?: (error: unknown) => T | Promise<T>,
): T | Promise<T> {
  if (reading.kept !== undefined) return answer(reading.kept)
  return cancelOnDisconnect(incoming, reading).then(results => {
    incoming.usage.answered()
    return answer(results)
  }, failed)
}
