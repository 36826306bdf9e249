/**
 * Schema `svc` as a gateway uses it: checked at startup and whenever the schema has changed, and cleaned up
 * regularly.
 */
import type { Query } from '../catalog/introspect.ts'
import { type Installation, type OpenFeed, readInstallation, type Unusable } from './installation.ts'

/** Interval between deletions of expired entries. One of several gateways does it. */
const CLEANUP_INTERVAL_MS = 600_000

/** The installation in use. */
export interface Installed {
  /** The installation; null for none that can be used. */
  current(): Installation | null
  /** Checks again; if the database is unavailable, nothing changes. */
  refresh(): Promise<void>
  close(): void
}

/** What this needs. */
export interface InstalledParts {
  readonly ask: Query
  readonly openFeed: OpenFeed
  readonly warn: (message: string, fix: string) => void
}

/** Checks the installation. Rejects when the database is unavailable. */
export async function openInstalled({ ask, openFeed, warn }: InstalledParts): Promise<Installed> {
  let told = ''
  let current = await read()
  const forgetting = setInterval(() => void forget().catch(() => {}), CLEANUP_INTERVAL_MS)
  forgetting.unref()

  async function read(): Promise<Installation | null> {
    const found = await readInstallation(ask, openFeed)
    const problem = installationProblem(found)
    // Once, not after every change of the schema.
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
        // The database is unavailable; the last known installation still applies.
      }
    },
    close: () => clearInterval(forgetting),
  }
}

interface Problem {
  readonly message: string
  readonly fix: string
}

/** What an operator should know about an installation. */
export function installationProblem(found: Installation | Unusable | null): Problem | null {
  if (found === null) return null
  if ('reason' in found)
    return { message: `The installation in schema svc is unusable: ${found.reason}`, fix: found.fix }
  if (found.broken.length === 0) return null
  return {
    message: `Changes of ${found.broken.join(', ')} are not captured: their capture triggers are missing.`,
    fix: 'SELECT svc.mend(); -- as the role that ran svc install',
  }
}
