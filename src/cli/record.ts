/** `svc check --record`: the gateway as `svc serve` starts it, writing down the shapes of the queries that it answers (decisions 7). */
import { resolve } from 'node:path'
import { loadConfig } from '../config/load.ts'
import { UsageError } from './failure.ts'
import { serve } from './serve.ts'
import type { World } from './world.ts'

export interface RecordCommand {
  readonly file: string | undefined
  /** True: the file that the configuration names. */
  readonly record: string | true
}

export async function record(command: RecordCommand, world: World): Promise<number> {
  const { file } = command
  if (command.record !== true) return serve({ file, record: resolve(world.workingDirectory, command.record) }, world)
  const { allowListPath } = loadConfig({ ...world, file }).config.gateway
  if (allowListPath === null) {
    throw new UsageError('--record needs a file to write to: svc check --record FILE, or set allow_list_path')
  }
  return serve({ file, record: allowListPath }, world)
}
