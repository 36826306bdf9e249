/** Several gateway processes on one database. A killed process is replaced, so their number is constant. */
import { createCondition } from './condition.ts'
import { type Svc, startBuiltSvc } from './process.ts'

const LISTENING = /"url":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/

export interface Fleet {
  /** The URLs of the gateways that accept requests now, the oldest first. */
  urls(): readonly string[]
  /**
   * Resolves when this number of gateways accept requests. Rejects if a gateway exited without being killed.
   */
  until(count: number): Promise<void>
  /** Sends SIGKILL to the oldest gateway and starts another in its place. */
  killOldest(): void
  /** The number of gateways killed by `killOldest`. */
  kills(): number
  /** Kills all gateways and resolves when they have exited. Rejects if one had exited before. */
  close(): Promise<void>
}

/** Runs the built program, which starts in a third of the time that the TypeScript sources need. */
export function startFleet(size: number, environment: Readonly<Record<string, string>>): Fleet {
  const serving: { readonly url: string; readonly svc: Svc }[] = []
  /** Gateways that have been started and not killed. */
  const running = new Set<Svc>()
  const condition = createCondition()
  let kills = 0
  let failure: Error | null = null

  function start(): void {
    const svc = startBuiltSvc(['serve'], environment)
    running.add(svc)
    const served = (url: string): void => {
      serving.push({ url, svc })
      condition.notify()
    }
    // A process that exits before it listens is handled below.
    svc.says(LISTENING).then(served, () => {})
    void svc.exited.then(([code, signal]) => {
      if (!running.has(svc)) return
      failure ??= new Error(
        `a gateway exited unexpectedly, with ${code ?? signal}: ${svc.said.error}${svc.said.out.slice(-2_000)}`,
      )
      condition.notify()
    })
  }

  function kill(svc: Svc): void {
    running.delete(svc)
    svc.child.kill('SIGKILL')
  }

  for (let count = 0; count < size; count++) start()
  return {
    urls: () => serving.map(({ url }) => url),
    async until(count) {
      await condition.waitUntil(() => failure !== null || serving.length >= count)
      if (failure !== null) throw failure
    },
    killOldest() {
      const oldest = serving.shift()
      if (oldest === undefined) throw new Error('no gateway is running; wait for one with until(1)')
      kills += 1
      kill(oldest.svc)
      start()
    },
    kills: () => kills,
    async close() {
      const all = [...running]
      for (const svc of all) kill(svc)
      await Promise.all(all.map(({ exited }) => exited))
      if (failure !== null) throw failure
    },
  }
}
