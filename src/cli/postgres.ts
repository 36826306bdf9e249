/** `svc postgres`: the embedded PostgreSQL, empty, in a folder of the user's, until a signal stops it. */
import { join, resolve } from 'node:path'
import { cacheFolder } from '../demo/folders.ts'
import { startLocal } from '../demo/local.ts'
import { runUntilSignal } from './signals.ts'
import type { World } from './world.ts'

export interface PostgresCommand {
  /** Relative to the working directory. */
  readonly data: string
  readonly port: number
}

export function postgres({ data, port }: PostgresCommand, world: World): Promise<void> {
  const folder = resolve(world.workingDirectory, data)
  const start = async () => {
    const cache = await cacheFolder(world.environment)
    const local = await startLocal({ folder, port, cache, print: world.error })
    world.out(local.url)
    world.error(
      `PostgreSQL ${local.major} listens there, for you alone: the password of its owner is in the URL, and the ` +
        `URL in ${join(folder, 'url')} while it runs. Ctrl-C stops it.`,
    )
    return local
  }
  return runUntilSignal(start, world.signals, world.error)
}
