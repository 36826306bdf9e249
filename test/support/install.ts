/** Creates schema `svc` in a test's database with the SQL that `svc install` runs. */
import { expect, vi } from 'vitest'
import { installScript, type TableSelection } from '../../src/install/script.ts'
import { createSlotStatement } from '../../src/install/wal-capture.ts'
import { createPool, type Pool } from '../../src/postgres/pool.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { fixture } from './fixtures.ts'
import { execute, type TestDatabase } from './postgres.ts'
import { POSTGRES_MAJOR } from './postgres-version.ts'
import { PLAIN_ROLE } from './roles.ts'
import { CAPTURE, urlOf } from './server.ts'

/** The feed role that `svc install` creates for such gateways. */
export const FEED_ROLE: string = `${PLAIN_ROLE}_feed`

export function feedUrl({ port, database }: Pick<TestDatabase, 'port' | 'database'>): string {
  return urlOf(port, FEED_ROLE, database)
}

/**
 * Installs for gateways that connect as the plain role. Captures every table of `public` unless tables are
 * given.
 */
export async function installed(
  { adminUrl }: Pick<TestDatabase, 'adminUrl'>,
  chosen: readonly TableSelection[] = [{ schema: 'public', table: null }],
): Promise<void> {
  const script = installScript({ role: PLAIN_ROLE, selected: chosen, superuser: true, capture: CAPTURE })
  await execute(adminUrl, ['BEGIN', ...script, 'COMMIT'].join(';\n'))
  if (CAPTURE === 'wal') await execute(adminUrl, createSlotStatement(POSTGRES_MAJOR))
}

/** Installs, and opens one connection of the feed role. */
export function feedFixture(database: TestDatabase): Pool {
  return fixture(
    async () => {
      await installed(database)
      return createPool({ target: parseUrl(feedUrl(database)), maxConnections: 1 })
    },
    opened => opened.close({ deadlineMs: 0 }),
  )
}

/**
 * Resolves once the log has every change that was committed before. Only the write-ahead log is read later.
 */
export async function logged({ adminUrl }: Pick<TestDatabase, 'adminUrl'>): Promise<void> {
  if (CAPTURE === 'triggers') return
  const [position] = await execute(adminUrl, 'select pg_current_wal_insert_lsn() as end')
  await vi.waitFor(
    async () =>
      expect(await execute(adminUrl, `select from svc.wal where stored >= '${position?.end}'`)).toHaveLength(1),
    { timeout: 15_000 },
  )
}
