/**
 * Creates folders under a temporary name and renames them: a folder with its final name is complete, and if
 * two processes create it concurrently, one wins.
 */
import { access, chmod, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Age after which the remains of a killed process are removed. */
const ABANDONED_AFTER_MS = 3_600_000
const ASIDE = '.new-'

/**
 * Creates `folder` in `base`. Other users may enter it, as the server's user must; private contents have
 * their own mode.
 */
export async function createStaged(
  base: string,
  folder: string,
  fill: (staged: string) => Promise<void>,
): Promise<void> {
  const staged = await mkdtemp(join(base, ASIDE))
  try {
    await chmod(staged, 0o755)
    await fill(staged)
    await rename(staged, folder)
  } catch (error) {
    await rm(staged, { recursive: true, force: true })
    if (!(await pathExists(folder))) throw error
  }
}

export function isAside(name: string): boolean {
  return name.startsWith(ASIDE)
}

export async function removeAbandoned(base: string): Promise<void> {
  for (const name of await readdir(base)) {
    if (!isAside(name)) continue
    const path = join(base, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > ABANDONED_AFTER_MS) await rm(path, { recursive: true, force: true })
  }
}

export async function pathExists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
