/**
 * Limits concurrent tasks with fair turns: each owner has its own queue, and queues are served in rotation.
 */

/** Runs tasks under a limit. */
export interface Limiter {
  /** Runs a task for `owner`. A single owner never occupies all slots. */
  run<T>(owner: string, work: () => Promise<T>): Promise<T>
  readonly waiting: number
}

/** The limits. */
export interface LimiterOptions {
  readonly slots: number
  /** Slots that one owner may occupy. */
  readonly slotsPerOwner: number
}

/** Creates a limiter without tasks. */
export function createLimiter({ slots, slotsPerOwner }: LimiterOptions): Limiter {
  let running = 0
  let waiting = 0
  const runningOf = new Map<string, number>()
  /** Queues of waiting tasks by owner; the first owner has waited longest. */
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

  const canRun = (owner: string) => running < slots && (runningOf.get(owner) ?? 0) < slotsPerOwner

  function wakeNext(): void {
    for (const [owner, queue] of queues) {
      if (running >= slots) return
      if (!canRun(owner)) continue
      const next = queue.shift()
      queues.delete(owner)
      // Move to the end of the order.
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
      if (canRun(owner)) begin(owner)
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
