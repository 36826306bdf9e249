/** A database in virtual time: a number of cores, and a queue of work in the order of its arrival. */
import type { VirtualTime } from './virtual-time.ts'

export interface SimulatedDatabase {
  /** Takes CPU time; rejects while the database is away, and for work that was lost with it. */
  work(cpuMs: number): Promise<void>
  /** All work in progress is lost. */
  stop(): void
  start(): void
  /** CPU milliseconds since the start. */
  readonly busyMs: number
  /** The longest queue, in pieces of work, since the last call. */
  takeLongestQueue(): number
}

export function createSimulatedDatabase(time: VirtualTime, cores: number): SimulatedDatabase {
  const freeAt = Array.from({ length: cores }, () => 0)
  const lost = new Set<(error: Error) => void>()
  let isUp = true
  let busyMs = 0
  let longest = 0
  return {
    async work(cpuMs) {
      if (!isUp) throw new Error('the connection was refused')
      const core = freeAt.indexOf(Math.min(...freeAt))
      const begins = Math.max(time.now(), freeAt[core] ?? 0)
      freeAt[core] = begins + cpuMs
      await new Promise<void>((resolve, reject) => {
        lost.add(reject)
        longest = Math.max(longest, lost.size)
        time.after(begins + cpuMs - time.now(), () => {
          if (!lost.delete(reject)) return
          busyMs += cpuMs
          resolve()
        })
      })
    },
    stop() {
      isUp = false
      for (const reject of lost) reject(new Error('the database was shut down'))
      lost.clear()
    },
    start() {
      isUp = true
      freeAt.fill(time.now())
    },
    get busyMs() {
      return busyMs
    },
    takeLongestQueue() {
      const taken = longest
      longest = lost.size
      return taken
    },
  }
}
