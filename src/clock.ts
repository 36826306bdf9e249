/** Time, as a parameter: tests have one of their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Runs once, `ms` from now; the answer cancels it. */
  after(ms: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
