/** A number of tasks at a time, in fair turns: each owner has its own queue, and the queues are served one after the other. */

export interface Limiter {
  /** `owner`: whose task it is; one of them alone never has all the places. */
  run<T>(owner: string, work: () => Promise<T>): Promise<T>
  readonly waiting: number
}

export interface LimiterOptions {
  readonly places: number
  /** Of those, for one owner. */
  readonly placesPerOwner: number
}

export function createLimiter({ places, placesPerOwner }: LimiterOptions): Limiter {
  let running = 0
  let waiting = 0
  const runningOf = new Map<string, number>()
  /** Owners with waiting tasks; the first has waited longest for its turn. */
  const queues = new Map<string, (() => void)[]>()

  function begin(owner: string): void {
    running++
    runningOf.set(owner, (runningOf.get(owner) ?? 0) + 1)
  }

  function end(owner: string): void {
    running--
    const left = (runningOf.get(owner) ?? 1) - 1
    if (left === 0) runningOf.delete(owner)
    else runningOf.set(owner, left)
  }

  const mayRun = (owner: string) => running < places && (runningOf.get(owner) ?? 0) < placesPerOwner

  function wakeNext(): void {
    for (const [owner, queue] of queues) {
      if (running >= places) return
      if (!mayRun(owner)) continue
      const next = queue.shift()
      queues.delete(owner)
      // Behind everybody else.
      if (queue.length > 0) queues.set(owner, queue)
      if (next === undefined) continue
      waiting--
      begin(owner)
      next()
      return
    }
  }

  return {
    async run(owner, work) {
      if (mayRun(owner)) begin(owner)
      else {
        waiting++
        await new Promise<void>(resolve => {
          const queue = queues.get(owner) ?? []
          queues.set(owner, queue)
          queue.push(resolve)
        })
      }
      try {
        return await work()
      } finally {
        end(owner)
        wakeNext()
      }
    },
    get waiting() {
      return waiting
    },
  }
}
