/** Waiting for PostgreSQL on behalf of a client that may not wait as long. */
import type { Incoming } from '../http/types.ts'
import type { Reading, Running } from '../run/run.ts'

/** The result, unless the client goes away first: what nobody hears of is cancelled, and a write undone. */
export function untilGone<T>(incoming: Incoming, running: Running<T> & Pick<Reading, 'isCached'>): Promise<T> {
  if (running.isCached !== true) incoming.onAbort(() => running.cancel())
  return running.result
}
