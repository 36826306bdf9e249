/** A clock that stands until it is told to go on. */
import type { Clock } from '../../src/clock.ts'

export interface TestClock extends Clock {
  /** Goes on, and runs what is due on the way, each at its time; what they start in the same turn is seen too. */
  advance(ms: number): Promise<void>
  /** When each timer that is set will run, from now. */
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

/** Everything that was only waiting for promises has happened. */
export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
