/** Schema `svc` as a gateway uses it: looked at when it starts and whenever the schema has changed, and kept small. */
import type { Query } from '../catalog/introspect.ts'
import { type Installation, type OpenFeed, readInstallation, type Unusable } from './installation.ts'

/** Between two times that what is too old is thrown away. One gateway of several does it. */
const FORGET_INTERVAL_MS = 600_000

export interface Installed {
  /** Null: there is none that can be used. */
  current(): Installation | null
  /** Looks again; an answer that cannot be had changes nothing. */
  refresh(): Promise<void>
  close(): void
}

export interface InstalledParts {
  readonly ask: Query
  readonly openFeed: OpenFeed
  readonly warn: (message: string, fix: string) => void
}

/** Rejects when the database cannot be asked. */
export async function openInstalled({ ask, openFeed, warn }: InstalledParts): Promise<Installed> {
  let told = ''
  let current = await read()
  const forgetting = setInterval(() => void forget().catch(() => {}), FORGET_INTERVAL_MS)
  forgetting.unref()

  async function read(): Promise<Installation | null> {
    const found = await readInstallation(ask, openFeed)
    const problem = problemOf(found)
    // Once, not every time that the schema changes.
    if (problem !== null && problem.message !== told) warn(problem.message, problem.fix)
    told = problem?.message ?? ''
    return found === null || 'reason' in found ? null : found
  }

  async function forget(): Promise<void> {
    if (current === null) return
    const feed = await openFeed(current.feed)
    await feed('SELECT svc.forget_changes()', [])
    await feed('SELECT svc.forget_attempts()', [])
  }

  return {
    current: () => current,
    async refresh() {
      try {
        current = await read()
      } catch {
        // The database is away: what was there still is.
      }
    },
    close: () => clearInterval(forgetting),
  }
}

interface Problem {
  readonly message: string
  readonly fix: string
}

/** What somebody should know of what was found. */
export function problemOf(found: Installation | Unusable | null): Problem | null {
  if (found === null) return null
  if ('reason' in found) return { message: `What svc install made cannot be used: ${found.reason}`, fix: found.fix }
  if (found.broken.length === 0) return null
  return {
    message: `Changes of ${found.broken.join(', ')} are not captured by triggers, although they were chosen.`,
    fix: 'SELECT svc.mend(); -- as the role that ran svc install',
  }
}
