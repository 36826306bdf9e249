/** A worker process of `svc serve --workers`, which the primary process starts and configures. */
import { parentPort } from '../cluster/ipc.ts'
import { joinPrimary, type Membership } from '../cluster/worker.ts'
import type { Environment } from '../config/expand.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { printFailure } from './failure.ts'
import { EXIT, type World } from './world.ts'

/** Marks a worker in the environment of its process. */
const WORKER_VARIABLE = 'SVC_WORKER_PROCESS'

/** The environment variables that make a process a worker. */
export const WORKER_ENVIRONMENT: Readonly<Record<string, string>> = { [WORKER_VARIABLE]: '1' }

/** Shells and supervisors send signals to all processes; the primary process passes on what they mean. */
const PRIMARY_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const

/** Reports whether this process is a worker. */
export function isWorker(environment: Environment): boolean {
  return environment[WORKER_VARIABLE] !== undefined && process.send !== undefined
}

/** Serves until the primary process ends this worker or itself ends. */
export async function work(world: World): Promise<void> {
  for (const signal of PRIMARY_SIGNALS) world.signals.on(signal, () => {})
  let gateway: Gateway | null = null
  let membership: Membership | null = null
  const fail = (error: unknown): void => {
    world.error(printFailure(error))
    world.signals.exit(EXIT.failed)
  }

  async function end(before: (running: Gateway) => Promise<void>): Promise<void> {
    if (gateway !== null) {
      await before(gateway)
      await membership?.leave(await gateway.figures().catch(() => null))
      await gateway.close()
    }
    world.signals.exit(EXIT.ok)
  }

  try {
    membership = await joinPrimary(parentPort(), {
      reload: () =>
        void gateway
          ?.reload()
          .catch((error: Error) => world.error(`reload failed; the previous state stays in use: ${error.message}`)),
      retire: () => void end(running => running.retire()).catch(fail),
      stop: () => void end(async () => {}).catch(fail),
    })
    const { startGateway } = await import('../gateway/gateway.ts')
    gateway = await startGateway(membership.config, { environment: world.environment, peers: membership.peers })
    membership.ready(gateway.url)
  } catch (error) {
    fail(error)
  }
}
