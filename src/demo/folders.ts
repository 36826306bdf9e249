/** Where the embedded PostgreSQL keeps its binaries (if they must be copied) and its data. */
import { mkdir, stat } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { EmbeddedError } from './error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The cache folder of this user, made if need be. Root's own home is closed to the user PostgreSQL runs as,
 * so root uses /var/cache. An unwritable home (a container's made-up user) falls back to the folder for
 * temporary files.
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
