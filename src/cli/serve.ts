/** `svc serve`, and `svc check --record`: the gateway, until a signal stops it. */
import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { parseBind } from './bind.ts'
import { UsageError } from './failure.ts'
import { runUntilSignal } from './signals.ts'
import { EXIT, type World } from './world.ts'

export interface ServeCommand {
  readonly file: string | undefined
  /** `HOST:PORT`, instead of the configured address. */
  readonly bind?: string | undefined
  /** Instead of the port of that address. */
  readonly port?: number | undefined
  /**
   * Where the shapes of queries are written to instead of being compared; true: to the file of
   * `allow_list_path`.
   */
  readonly record?: string | true
}

export async function serve({ file, record, ...at }: ServeCommand, world: World): Promise<number> {
  const loaded = loadConfig({ ...world, file, purpose: record === undefined ? 'serve' : 'record' })
  const config = listeningAt(at, loaded.config)
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

function listeningAt({ bind, port }: Pick<ServeCommand, 'bind' | 'port'>, config: Config): Config {
  if (bind === undefined && port === undefined) return config
  const { host, port: configured } = bind === undefined ? config.gateway.bind : parseBind(bind)
  return { ...config, gateway: { ...config.gateway, bind: { host, port: port ?? configured } } }
}
