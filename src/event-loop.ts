/**
 * Measures the delay of the event loop: while a timer waits, so does every request. All listeners share one
 * timer.
 */

export const PROBE_INTERVAL_MS = 100

/**
 * Reports after each interval how late its timer ran. `now` returns milliseconds of any monotonic clock. The
 * returned function stops the measurement.
 */
export function watchEventLoop(now: () => number, hear: (delayMs: number) => void): () => void {
  let dueAt = now() + PROBE_INTERVAL_MS
  const timer = setInterval(() => {
    const time = now()
    hear(Math.max(0, time - dueAt))
    dueAt = time + PROBE_INTERVAL_MS
  }, PROBE_INTERVAL_MS)
  timer.unref()
  return () => clearInterval(timer)
}
