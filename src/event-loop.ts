/** How late the event loop comes to what is due: while a timer waits, every request does. One timer for all who want to know. */

export const PROBE_INTERVAL_MS = 100

/** Tells after each interval how late its end was noticed; `now` gives milliseconds, from any monotonic clock. The answer ends it. */
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
