/** A clock that advances only when a test advances it. */
import type { Clock } from '../../src/clock.ts'

export interface TestClock extends Clock {
  /**
   * Advances the clock and runs the timers that become due, each at its time, including those they start in
   * the same turn.
   */
  advance(ms: number): Promise<void>
  /** The delay of each pending timer. */
  due(): readonly number[]
}

interface Timer {
  readonly atMs: number
  readonly run: () => void
}

export function testClock(startMs: number = Date.UTC(2026, 0, 1)): TestClock {
  const timers = new Set<Timer>()
  let nowMs = startMs
  return {
    now: () => nowMs,
    after(ms, run) {
      const timer = { atMs: nowMs + ms, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    async advance(ms) {
      const endMs = nowMs + ms
      for (;;) {
        await turn()
        const [next] = [...timers].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)
        if (next === undefined) break
        timers.delete(next)
        nowMs = Math.max(nowMs, next.atMs)
        next.run()
      }
      nowMs = endMs
    },
    due: () => [...timers].map(({ atMs }) => atMs - nowMs).sort((a, b) => a - b),
  }
}

/** Resolves when all pending promise callbacks have run. */
export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
