/** `svc serve`, and `svc check --record`: the gateway, until a signal stops it. */
import { resolve } from 'node:path'
import { loadConfig } from '../config/load.ts'
import { UsageError } from './failure.ts'
import { runUntilSignal } from './signals.ts'
import { EXIT, type World } from './world.ts'

export interface ServeCommand {
  readonly file: string | undefined
  /** Where the shapes of queries are written to instead of being compared; true: to the file of `allow_list_path` (decisions 7). */
  readonly record?: string | true
}

export async function serve({ file, record }: ServeCommand, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file, purpose: record === undefined ? 'serve' : 'record' })
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
