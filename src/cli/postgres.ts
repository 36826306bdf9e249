/** `svc postgres`: runs an empty embedded PostgreSQL, in a folder of the user, until a signal stops it. */
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
      `PostgreSQL ${local.major} listens at this URL, which contains the password of its owner. While it runs, ` +
        `the URL is also in ${join(folder, 'url')}. Ctrl-C stops it.`,
    )
    return local
  }
  return runUntilSignal(start, world.signals, world.error)
}
