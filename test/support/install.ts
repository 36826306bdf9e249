/** Schema `svc` in a test's database, by the SQL that `svc install` runs. */
import { type Choice, installScript } from '../../src/install/script.ts'
import { execute, type TestDatabase } from './postgres.ts'
import { PLAIN_ROLE } from './server.ts'

/** For gateways that connect as the plain role; captures every table of `public` unless others are chosen. */
export async function installed(
  { adminUrl }: Pick<TestDatabase, 'adminUrl'>,
  chosen: readonly Choice[] = [{ schema: 'public', table: null }],
): Promise<void> {
  const script = installScript({ role: PLAIN_ROLE, chosen, superuser: true })
  await execute(adminUrl, ['BEGIN', ...script, 'COMMIT'].join(';\n'))
}
