/**
 * The slowest shapes of requests of the last minutes, for operators. A shape is printed only if its request
 * was slow enough to be listed, so an ordinary request costs one comparison.
 */

/** Limit on the shapes that are listed. */
export const SLOW_REQUESTS_MAX = 20

/** How long a request is listed. */
export const SLOW_REQUEST_MS_MAX: number = 15 * 60_000

/** A request that was slow. */
export interface SlowRequest {
  /** Method and path without values, as in the access log. */
  readonly request: string
  readonly durationMs: number
  readonly databaseMs: number | null
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** The slowest requests of a process. */
export interface SlowRequests {
  /** Lists a request if it is among the slowest. `shape` is only called then. */
  note(durationMs: number, databaseMs: number | null, shape: () => string): void
  /** The slowest first. */
  list(): readonly SlowRequest[]
}

/** `clock` is the time in milliseconds since the epoch. */
export function createSlowRequests(clock: () => number): SlowRequests {
  let kept: readonly SlowRequest[] = []
  const current = () => {
    const since = clock() - SLOW_REQUEST_MS_MAX
    if (kept.some(({ at }) => at < since)) kept = kept.filter(({ at }) => at >= since)
    return kept
  }
  return {
    note(durationMs, databaseMs, shape) {
      const least = kept.length < SLOW_REQUESTS_MAX ? 0 : (kept.at(-1)?.durationMs ?? 0)
      if (durationMs <= least && current().length >= SLOW_REQUESTS_MAX) return
      const request = shape()
      const others = current().filter(other => other.request !== request)
      const before = current().find(other => other.request === request)
      const slowest =
        before !== undefined && before.durationMs > durationMs
          ? before
          : { request, durationMs, databaseMs, at: clock() }
      kept = [...others, slowest].toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SLOW_REQUESTS_MAX)
    },
    list: current,
  }
}
