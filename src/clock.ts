/** Time as a parameter, so that tests can control it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Runs `run` once, after `ms` milliseconds; returns a function that cancels it. */
  after(ms: number, run: () => void): () => void
}

/** The system's clock and timers. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
