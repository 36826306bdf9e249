/**
 * The user that PostgreSQL runs as. It refuses to run as root, so root starts it as another existing user.
 */
import { execFileSync } from 'node:child_process'
import { EmbeddedError } from './error.ts'

export interface RunAs {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/**
 * The users to try, in this order; `postgres` exists if PostgreSQL was installed, `nobody` on all other
 * systems.
 */
const CANDIDATES = ['postgres', 'nobody'] as const

/** The user to run PostgreSQL as, or null for an ordinary user (or on Windows), who runs it directly. */
export function runAs(): RunAs | null {
  if (process.getuid?.() !== 0) return null
  for (const name of CANDIDATES) {
    const uid = idOf('-u', name)
    const gid = idOf('-g', name)
    if (uid !== null && gid !== null && uid !== 0) return { name, uid, gid }
  }
  throw new EmbeddedError(
    'PostgreSQL does not run as root, and none of these users exists: ' +
      `${CANDIDATES.join(', ')}; start this command as an ordinary user`,
  )
}

/** Options of `child_process.spawn` to run as that user, without the supplementary groups of the parent. */
export function spawnAs(user: RunAs | null): { readonly uid?: number; readonly gid?: number } {
  return user === null ? {} : { uid: user.uid, gid: user.gid }
}

/** `id` also supports users not in /etc/passwd (macOS, LDAP). */
function idOf(flag: '-u' | '-g', name: string): number | null {
  try {
    const text = execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const id = Number(text.trim())
    return Number.isSafeInteger(id) ? id : null
  } catch {
    return null
  }
}
