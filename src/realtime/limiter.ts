/** So many at a time, the others in their turn. */

export interface Limiter {
  run<T>(work: () => Promise<T>): Promise<T>
  readonly waiting: number
}

export function createLimiter(atOnce: number): Limiter {
  let running = 0
  const waiting: (() => void)[] = []
  return {
    async run(work) {
      if (running >= atOnce) await new Promise<void>(resolve => waiting.push(resolve))
      else running++
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        // The place is handed on.
        if (next === undefined) running--
        else next()
      }
    },
    get waiting() {
      return waiting.length
    },
  }
}
