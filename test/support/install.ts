/** Schema `svc` in a test's database, by the SQL that `svc install` runs. */
import { installScript, type TableSelection } from '../../src/install/script.ts'
import { execute, type TestDatabase } from './postgres.ts'
import { PLAIN_ROLE } from './roles.ts'
import { urlOf } from './server.ts'

/** The role that `svc install` makes for the feed of such gateways. */
export const FEED_ROLE: string = `${PLAIN_ROLE}_feed`

export function feedUrl({ port, database }: Pick<TestDatabase, 'port' | 'database'>): string {
  return urlOf(port, FEED_ROLE, database)
}

/** For gateways that connect as the plain role; captures every table of `public` unless others are chosen. */
export async function installed(
  { adminUrl }: Pick<TestDatabase, 'adminUrl'>,
  chosen: readonly TableSelection[] = [{ schema: 'public', table: null }],
): Promise<void> {
  const script = installScript({ role: PLAIN_ROLE, selected: chosen, superuser: true })
  await execute(adminUrl, ['BEGIN', ...script, 'COMMIT'].join(';\n'))
}
