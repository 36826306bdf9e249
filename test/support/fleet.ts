/** Gateways on one database, as processes: always as many of them, however often one is killed. */
import { createMoments } from './moments.ts'
import { type Svc, startBuiltSvc } from './process.ts'

const LISTENING = /"url":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/

export interface Fleet {
  /** Where those that can be asked at the moment are; the one that has served longest comes first. */
  urls(): readonly string[]
  /** Resolves when so many serve; rejects if one has ended that nobody killed. */
  until(count: number): Promise<void>
  /** SIGKILL to the one that has served longest; another begins to start in its place. */
  killOldest(): void
  /** How many have been killed so. */
  kills(): number
  /** Kills all; resolves when they are gone. Rejects if one had ended by itself. */
  close(): Promise<void>
}

/** The built program: it starts in a third of the time that the sources take. */
export function startFleet(size: number, environment: Readonly<Record<string, string>>): Fleet {
  const serving: { readonly url: string; readonly svc: Svc }[] = []
  /** And nobody has killed them. */
  const running = new Set<Svc>()
  const moments = createMoments()
  let kills = 0
  let failure: Error | null = null

  function start(): void {
    const svc = startBuiltSvc(['serve'], environment)
    running.add(svc)
    const served = (url: string): void => {
      serving.push({ url, svc })
      moments.look()
    }
    // Whoever ends before it serves, ends.
    svc.says(LISTENING).then(served, () => {})
    void svc.exited.then(([code, signal]) => {
      if (!running.has(svc)) return
      failure ??= new Error(
        `a gateway ended by itself, with ${code ?? signal}: ${svc.said.error}${svc.said.out.slice(-2_000)}`,
      )
      moments.look()
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
      await moments.when(() => failure !== null || serving.length >= count)
      if (failure !== null) throw failure
    },
    killOldest() {
      const oldest = serving.shift()
      if (oldest === undefined) throw new Error('nobody serves who could be killed; wait until somebody does')
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
