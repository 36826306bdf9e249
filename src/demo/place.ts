/**
 * How PostgreSQL's programs are told of a data folder. Where root lends them a user, that user may be unable to get to the folder by its path: root's own
 * home is closed to everybody else. A process that is begun in a folder is in it all the same, and Linux has a path for that (proc(5), `/proc/pid/cwd`).
 */
import { spawnSync } from 'node:child_process'
import { basename } from 'node:path'
import type { Binaries } from './binaries.ts'
import { EmbeddedError } from './error.ts'
import { spawnAs } from './run-as.ts'

export interface Place {
  /** Where the program has to be started. */
  readonly cwd: string
  /** The data folder, as the program finds it. */
  readonly path: string
  /** Whether everybody finds it by that. */
  readonly isReal: boolean
  /** What lies beside the data folder, by its name and this suffix. */
  beside(suffix: string): string
}

/** The folder exists, and belongs to the server's user. */
export function placeOf({ runAs }: Pick<Binaries, 'runAs'>, dataDirectory: string): Place {
  const real: Place = {
    ...{ cwd: dataDirectory, path: dataDirectory, isReal: true },
    beside: suffix => `${dataDirectory}${suffix}`,
  }
  if (runAs === null || spawnSync('test', ['-x', dataDirectory], { ...spawnAs(runAs), cwd: '/' }).status === 0) {
    return real
  }
  if (process.platform !== 'linux') {
    throw new EmbeddedError(
      `PostgreSQL runs as user ${runAs.name}, who cannot get to ${dataDirectory}; name a folder that everybody may enter, or start this as an ordinary user`,
    )
  }
  return {
    ...{ cwd: dataDirectory, path: '/proc/self/cwd', isReal: false },
    beside: suffix => `/proc/self/cwd/../${basename(dataDirectory)}${suffix}`,
  }
}
