/** `svc serve` and `svc check --record`: run the gateway until a signal stops it. */
import { resolve } from 'node:path'
import type { Workers } from '../cluster/primary.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { tooManyWorkers, workerCount } from '../config/worker-share.ts'
import { parseBind } from './bind.ts'
import { UsageError } from './failure.ts'
import { runUntilSignal } from './signals.ts'
import { isWorker, WORKER_ENVIRONMENT, work } from './worker.ts'
import { EXIT, type World } from './world.ts'

export interface ServeCommand {
  readonly file: string | undefined
  /** `HOST:PORT`, instead of the configured address. */
  readonly bind?: string | undefined
  /** Replaces the port of that address. */
  readonly port?: number | undefined
  /** Instead of the configured number. */
  readonly workers?: number | 'auto' | undefined
  /**
   * The file that shapes of queries are recorded in, instead of comparing them; true for the file of
   * `allow_list_path`.
   */
  readonly record?: string | true
}

export async function serve(command: ServeCommand, world: World): Promise<number> {
  const { file, record } = command
  if (isWorker(world.environment)) return new Promise(() => void work(world))
  const load = () =>
    overridden(command, loadConfig({ ...world, file, purpose: record === undefined ? 'serve' : 'record' }).config)
  const config = load()
  if (record === undefined && workerCount(config.gateway) > 1) return serveWithWorkers(config, load, world)
  const { allowListPath } = config.gateway
  const target = record === true ? allowListPath : record && resolve(world.workingDirectory, record)
  if (target === null) {
    throw new UsageError('--record needs a file to write to: svc check --record FILE, or set allow_list_path')
  }
  const { startGateway } = await import('../gateway/gateway.ts')
  const options = { environment: world.environment, ...(target === undefined ? {} : { record: target }) }
  await runUntilSignal(() => startGateway(config, options), world.signals, world.error)
  return EXIT.ok
}

/** SIGUSR2 replaces the workers one after the other. */
async function serveWithWorkers(config: Config, load: () => Config, world: World): Promise<number> {
  const [{ startWorkers, WorkersNotStarted }, { createLog }, { addEndedMetrics }] = await Promise.all([
    import('../cluster/primary.ts'),
    import('../ops/log.ts'),
    import('../ops/merge-metrics.ts'),
  ])
  const log = createLog(config.logLevel)
  let workers: Workers | null = null
  const restart = (): void => void workers?.restart()
  world.signals.on('SIGUSR2', restart)
  const start = async (): Promise<Workers> => {
    workers = await startWorkers({
      ...{ config, load, addFigures: addEndedMetrics, environment: WORKER_ENVIRONMENT, emit: log.emit },
    })
    return workers
  }
  try {
    await runUntilSignal(start, world.signals, world.error)
    return EXIT.ok
  } catch (error) {
    if (error instanceof WorkersNotStarted) return error.exitCode
    throw error
  } finally {
    world.signals.off('SIGUSR2', restart)
    await log.flush()
  }
}

/** The configuration with the options of the command line. */
function overridden({ bind, port, workers }: ServeCommand, config: Config): Config {
  const { host, port: configured } = bind === undefined ? config.gateway.bind : parseBind(bind)
  const gateway = {
    ...config.gateway,
    bind: { host, port: port ?? configured },
    workers: workers ?? config.gateway.workers,
  }
  const problem = tooManyWorkers(gateway)
  if (problem !== null) throw new UsageError(`--workers ${gateway.workers} ${problem}`)
  return { ...config, gateway }
}
