/**
 * Messages for a developer while the database is unreachable: what was attempted, once and in one sentence,
 * and then for how long.
 */
import type { PoolEvent } from '../postgres/pool.ts'
import type { ConnectionTarget } from '../postgres/target.ts'

/** The time until the first line; each further line waits twice as long as the one before. */
const FIRST_LINE_AFTER_MS = 5_000

/**
 * Takes every event of the pool and returns the line to write, if any. `now` gives milliseconds, from any
 * monotonic clock.
 */
export function createProgressLines(
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
      return (
        `cannot reach PostgreSQL at ${server} as user "${user}" with database "${database}": ` +
        `${event.error.message}; retrying about every second until it responds ` +
        '(set DATABASE_URL if this is the wrong server)'
      )
    }
    const waitedMs = now() - since
    if (waitedMs < nextAfterMs) return null
    nextAfterMs *= 2
    return `still waiting for PostgreSQL at ${server} after ${Math.round(waitedMs / 1_000)} s`
  }
}
