/**
 * Schema `svc` as a gateway uses it: checked at startup and whenever the schema has changed, and cleaned up
 * regularly.
 */
import type { Query } from '../catalog/introspect.ts'
import { FORGOTTEN_AT_ONCE } from './idempotency-keys.ts'
import { type Installation, type OpenFeed, readInstallation, type Unusable } from './installation.ts'
import { EXPIRE_TICKETS, REGISTER_TICKET, RENEWAL_INTERVAL_MS } from './tickets.ts'

/** Interval between deletions of expired entries. One of several gateways does it. */
const CLEANUP_INTERVAL_MS = 600_000

/** Limit on how often one clean-up continues because it has deleted as many keys as one call deletes. */
const KEY_ROUNDS_MAX = 100

/** The installation in use. */
export interface Installed {
  /** The installation; null for none that can be used. */
  current(): Installation | null
  /** Checks again; if the database is unavailable, nothing changes. */
  refresh(): Promise<void>
  close(): void
}

/** The inputs of the check. */
export interface InstalledParts {
  readonly ask: Query
  readonly openFeed: OpenFeed
  /** Proves to functions in schema `svc` that this gateway calls them. */
  readonly ticket: string
  readonly warn: (message: string, fix: string) => void
}

/** Checks the installation. Rejects when the database is unavailable. */
export async function openInstalled({ ask, openFeed, ticket, warn }: InstalledParts): Promise<Installed> {
  let reported = ''
  let current = await read()
  const forgetting = setInterval(() => void forget().catch(() => {}), CLEANUP_INTERVAL_MS)
  forgetting.unref()
  const renewing = setInterval(() => void register(current).catch(() => {}), RENEWAL_INTERVAL_MS)
  renewing.unref()

  async function read(): Promise<Installation | null> {
    const found = await readInstallation(ask, openFeed)
    const problem = installationProblem(found)
    // The same problem is reported once, not again after every change of the schema.
    if (problem !== null && problem.message !== reported) warn(problem.message, problem.fix)
    reported = problem?.message ?? ''
    if (found === null || 'reason' in found) return null
    // If registering fails, the functions of schema svc refuse this gateway, which then checks again.
    await register(found).catch(() => {})
    return found
  }

  async function register(installation: Installation | null): Promise<void> {
    if (installation === null) return
    const feed = await openFeed(installation.feed)
    await feed(REGISTER_TICKET, [ticket])
    await feed(EXPIRE_TICKETS, [])
  }

  async function forget(): Promise<void> {
    if (current === null) return
    const feed = await openFeed(current.feed)
    await feed('SELECT svc.forget_changes()', [])
    await feed('SELECT svc.forget_attempts()', [])
    for (let round = 0; round < KEY_ROUNDS_MAX; round++) {
      const [[forgotten] = []] = await feed('SELECT svc.forget_keys()', [])
      if (Number(forgotten) < FORGOTTEN_AT_ONCE) return
    }
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
    close() {
      clearInterval(forgetting)
      clearInterval(renewing)
    },
  }
}

interface Problem {
  readonly message: string
  readonly fix: string
}

/** The findings about an installation, for operators. */
export function installationProblem(found: Installation | Unusable | null): Problem | null {
  if (found === null) return null
  if ('reason' in found)
    return { message: `The installation in schema svc is unusable: ${found.reason}`, fix: found.fix }
  if (found.broken.length === 0) return null
  return {
    message:
      `Changes of ${found.broken.join(', ')} are not captured: ` +
      (found.usesWal ? 'they are not published with their old rows.' : 'their capture triggers are missing.'),
    fix: 'SELECT svc.repair(); -- as the role that ran svc install',
  }
}
