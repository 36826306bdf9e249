/** Folders that are made aside and renamed: whatever is under its final name is complete, and of two that make it at once one wins. */
import { access, chmod, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** What a process that was killed while preparing left behind is removed after this. */
const ABANDONED_AFTER_MS = 3_600_000
const ASIDE = '.new-'

/** `folder` is in `base`. Others may enter it, as the server's user must; what is private in it has a mode of its own. */
export async function makeAside(base: string, folder: string, fill: (aside: string) => Promise<void>): Promise<void> {
  const aside = await mkdtemp(join(base, ASIDE))
  try {
    await chmod(aside, 0o755)
    await fill(aside)
    await rename(aside, folder)
  } catch (error) {
    await rm(aside, { recursive: true, force: true })
    if (!(await exists(folder))) throw error
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

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
