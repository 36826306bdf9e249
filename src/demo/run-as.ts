/** The user PostgreSQL runs as: it refuses to be root, so root lends it another existing user. */
import { execFileSync } from 'node:child_process'
import { EmbeddedError } from './error.ts'

export interface RunAs {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** In this order; `postgres` exists where PostgreSQL was installed, `nobody` everywhere else. */
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
    'PostgreSQL does not run as root, and it found none of the users ' +
      `${CANDIDATES.join(', ')} to run it as; start this as an ordinary user`,
  )
}

/**
 * What `child_process.spawn` takes to become that user; the parent's supplementary groups are dropped with
 * it.
 */
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
