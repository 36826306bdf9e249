/** Waiting for PostgreSQL on behalf of a client that may not wait as long. */
import type { Incoming } from '../exchange.ts'
import type { Row, RunningRead, RunningRequest } from '../run/run.ts'

/** The result, unless the client goes away first: what nobody hears of is cancelled, and a write undone. */
export function untilGone<T>(incoming: Incoming, running: RunningRequest<T>): Promise<T> {
  incoming.onAbort(() => running.cancel())
  incoming.usage.waits()
  return running.result
}

/** The same, for what is done with the database then. */
export function whenRun<T>(incoming: Incoming, running: RunningRequest<T>): Promise<T> {
  return untilGone(incoming, running).then(result => {
    incoming.usage.answered()
    return result
  })
}

/** The same for what may be at hand already: then the answer is made at once, and nobody has to wait for it or go away. */
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
