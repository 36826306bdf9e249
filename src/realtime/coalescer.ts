/**
 * Coalesces calls: the first runs immediately, and all calls within the following interval become one call at
 * its end.
 */

/** Calls that can be coalesced. */
export interface Coalescer<T> {
  call(value: T): void
  /** The value of a postponed call; null without one. */
  readonly postponed: T | null
  close(): void
}

/** The clock and the callbacks of a coalescer. */
export interface CoalescerParts<T> {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly run: (value: T) => void
  /** Receives the last value of the coalesced calls. */
  readonly runPostponed: (value: T) => void
  /** Called when a call is postponed. */
  readonly onPostpone: () => void
}

/** Creates a coalescer; an interval of 0 runs every call immediately. */
export function createCoalescer<T>(
  intervalMs: number,
  { now, run, runPostponed, onPostpone }: CoalescerParts<T>,
): Coalescer<T> {
  let ranAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | null = null
  let last: { readonly value: T } | null = null

  function due(): void {
    timer = null
    const value = last
    last = null
    if (value === null) return
    ranAt = now()
    runPostponed(value.value)
  }

  return {
    call(value) {
      const waitMs = ranAt + intervalMs - now()
      if (timer === null && waitMs <= 0) {
        ranAt = now()
        run(value)
        return
      }
      onPostpone()
      last = { value }
      timer ??= setTimeout(due, waitMs)
      timer.unref()
    },
    get postponed() {
      return last?.value ?? null
    },
    close() {
      if (timer !== null) clearTimeout(timer)
      timer = null
      last = null
    },
  }
}
