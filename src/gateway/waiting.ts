/** What a developer is told while the database cannot be reached: what was tried, once and in a sentence, and then how long it has been. */
import type { PoolEvent } from '../postgres/pool.ts'
import type { ConnectionTarget } from '../postgres/target.ts'

/** Until the next line about it; each is twice as far away as the one before. */
const FIRST_LINE_AFTER_MS = 5_000

/** Takes every event of the pool and returns the line to write, if any. `now` gives milliseconds, from any monotonic clock. */
export function createWaitingLines(
  { address, user, database }: ConnectionTarget,
  now: () => number,
): (event: PoolEvent) => string | null {
  const server = address.kind === 'tcp' ? `${address.host}:${address.port}` : address.path
  let since: number | null = null
  let nextAfterMs = FIRST_LINE_AFTER_MS
  return event => {
    if (event.kind !== 'connect-failed') return null
    if (since === null) {
      since = now()
      return `cannot reach PostgreSQL at ${server} as user "${user}" with database "${database}": ${event.error.message}; trying again about every second until it answers (set DATABASE_URL if this is the wrong server)`
    }
    const waitedMs = now() - since
    if (waitedMs < nextAfterMs) return null
    nextAfterMs *= 2
    return `still waiting for PostgreSQL at ${server} after ${Math.round(waitedMs / 1_000)} s`
  }
}
