/**
 * The path by which PostgreSQL's programs access a data folder. When root runs them as another user, that
 * user may not be able to reach the folder by its path, because root's home is closed to others. A process
 * started in a folder can use it nevertheless, and Linux has a path for that (proc(5), `/proc/pid/cwd`).
 */
import { spawnSync } from 'node:child_process'
import { basename } from 'node:path'
import type { Binaries } from './binaries.ts'
import { EmbeddedError } from './error.ts'
import { spawnAs } from './run-as.ts'

export interface Place {
  /** The working directory that the program needs. */
  readonly cwd: string
  /** The data folder, as the program finds it. */
  readonly path: string
  /** True if the path is valid for every process. */
  readonly isReal: boolean
  /** The path of a file next to the data folder, with its name and a suffix. */
  beside(suffix: string): string
}

/** The paths of a folder that exists and belongs to the server's user. */
export function dataPathOf({ runAs }: Pick<Binaries, 'runAs'>, dataDirectory: string): Place {
  const real: Place = {
    ...{ cwd: dataDirectory, path: dataDirectory, isReal: true },
    beside: suffix => `${dataDirectory}${suffix}`,
  }
  if (runAs === null || spawnSync('test', ['-x', dataDirectory], { ...spawnAs(runAs), cwd: '/' }).status === 0) {
    return real
  }
  if (process.platform !== 'linux') {
    throw new EmbeddedError(
      `PostgreSQL runs as user ${runAs.name}, which cannot access ${dataDirectory}; use a folder that ` +
        'every user can access, or start this command as an ordinary user',
    )
  }
  return {
    ...{ cwd: dataDirectory, path: '/proc/self/cwd', isReal: false },
    beside: suffix => `/proc/self/cwd/../${basename(dataDirectory)}${suffix}`,
  }
}
