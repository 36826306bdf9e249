/** A gateway of several worker processes: the program, started with `--workers`. */
import { once } from 'node:events'
import { SECRET } from './gateway.ts'
import { type Svc, startSvc } from './process.ts'

/** A running gateway with workers. */
export interface WorkersFixture extends Svc {
  readonly url: string
  /** The process ids of the last workers that were started, by number, as the log reports them. */
  pids(): ReadonlyMap<number, number>
  /** Resolves when the log has had `count` lines with this message, or reason. */
  logged(message: string, count?: number): Promise<void>
}

interface LogLine {
  readonly msg: string
  readonly worker?: number
  readonly pid?: number
}

/** Starts the program and waits until all workers listen. */
export async function startWithWorkers(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<WorkersFixture> {
  const svc = startSvc(['serve', ...argv], { JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0', ...environment })
  const url = await svc.says(/"url":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/)
  const lines = () =>
    svc.said.out
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line) as LogLine)
  return {
    ...svc,
    url,
    pids: () =>
      new Map(
        lines()
          .filter(({ msg }) => msg === 'worker: started')
          .map(({ worker = 0, pid = 0 }) => [worker, pid]),
      ),
    async logged(message, count = 1) {
      while (svc.said.out.split(`"${message}"`).length <= count) {
        const hasEnded = await Promise.race([once(svc.child.stdout ?? svc.child, 'data').then(() => false), svc.exited])
        if (hasEnded !== false) throw new Error(`the gateway ended before it logged ${message}: ${svc.said.error}`)
      }
    },
  }
}
