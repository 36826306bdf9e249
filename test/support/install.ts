/** Creates schema `svc` in a test's database with the SQL that `svc install` runs. */
import { installScript, type TableSelection } from '../../src/install/script.ts'
import { execute, type TestDatabase } from './postgres.ts'
import { PLAIN_ROLE } from './roles.ts'
import { urlOf } from './server.ts'

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
  const script = installScript({ role: PLAIN_ROLE, selected: chosen, superuser: true })
  await execute(adminUrl, ['BEGIN', ...script, 'COMMIT'].join(';\n'))
}
