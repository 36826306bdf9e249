/**
 * Finds the folder in which the embedded PostgreSQL stores its data, and its binaries if they must be copied.
 */
import { mkdir, stat } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../config/expand.ts'
import { EmbeddedError } from './error.ts'

/**
 * Returns the cache folder of this user, and creates it if necessary. Root uses /var/cache, because its home
 * is closed to the user that PostgreSQL runs as. If the home is not writable, as for a container's generated
 * user, the folder for temporary files is used.
 */
export async function cacheFolder(environment: Environment): Promise<string> {
  const uid = process.getuid?.()
  for (const folder of uid === 0 ? ['/var/cache/svc-gateway'] : [userCache(environment)]) {
    if (await makeOwn(folder)) return folder
  }
  const fallback = join(tmpdir(), `svc-gateway-${uid ?? 'cache'}`)
  if (await makeOwn(fallback)) return fallback
  throw new EmbeddedError(
    `no folder to keep PostgreSQL's data in: ${userCache(environment)} and ${fallback} cannot be written by this user`,
  )
}

function userCache(environment: Environment): string {
  const windows = environment.LOCALAPPDATA
  if (process.platform === 'win32') return join(windows ?? join(homedir(), 'AppData', 'Local'), 'svc-gateway')
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'svc-gateway')
  // The XDG base directory specification: a relative value is invalid and to be ignored.
  const xdg = environment.XDG_CACHE_HOME
  return join(xdg?.startsWith('/') ? xdg : join(homedir(), '.cache'), 'svc-gateway')
}

/**
 * True if the folder exists afterwards, belongs to this user, and is not writable by others, because its
 * contents will be executed.
 */
async function makeOwn(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o755 })
    const { uid, mode } = await stat(folder)
    return process.platform === 'win32' || (uid === process.getuid?.() && (mode & 0o022) === 0)
  } catch {
    return false
  }
}
