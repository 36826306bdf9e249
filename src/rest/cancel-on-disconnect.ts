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
  return answerResult(incoming, running, result => result)
}

/** The response made of the result or of the error. */
export function answerResult<T, A>(
  incoming: Incoming,
  running: RunningRequest<T>,
  answer: (result: T) => A | Promise<A>,
  failed?: (error: unknown) => A | Promise<A>,
): Promise<A> {
  return cancelOnDisconnect(incoming, running).then(result => {
    incoming.usage.answered()
    return answer(result)
  }, failed)
}

/** The same for a read whose rows may already be cached. Cached rows are answered synchronously. */
export function answerRead<A>(
  incoming: Incoming,
  reading: RunningRead,
  answer: (results: readonly (readonly ResultRow[])[]) => A | Promise<A>,
  failed?: (error: unknown) => A | Promise<A>,
): A | Promise<A> {
  return reading.kept === undefined ? answerResult(incoming, reading, answer, failed) : answer(reading.kept)
}
