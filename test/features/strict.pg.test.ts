/** docs/guides/checking.md#at-boot: what boot only warns about, and what `svc check` finds besides, ends the start under `strict`. */
import { expect, test } from 'vitest'
import { databaseFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'

const database = databaseFixture(
  'create table a (tenant_id int primary key, b int references a); grant select on a to app',
)

/** Starts and stops; answers what was wrong, or null. */
async function start(toml: string): Promise<string | null> {
  try {
    const gateway = await testGateway(database.url, { toml })
    await gateway.close()
    return null
  } catch (error) {
    return String(error)
  }
}

test('without it the gateway starts, and keeps the dangers of boot alone for the operator', async () => {
  const gateway = await testGateway(database.url)
  const { json } = await gateway.get('/health/internal')
  await gateway.close()
  const told = json.warnings.map(({ message }: { message: string }) => message).join('\n')
  expect(told).toContain('without forced row-level security: a.')
  expect(told).not.toContain('a_b_fkey')
})

test('with it errors and warnings alike end the start, all told together', async () => {
  const told = await start('strict = true')
  expect(told).toMatch(
    /error: .*without forced row-level security: a\..* \[tenant-table-unprotected\]\n {2}alter table public\.a /,
  )
  expect(told).toMatch(
    /error: Foreign keys without an index .*a_b_fkey on a\..* \[foreign-key-index\]\n {2}create index /,
  )
})

test('what is accepted does not, except the dangers of boot', async () => {
  const told = await start('strict = true\naccepted_findings = ["foreign-key-index", "tenant-table-unprotected"]')
  expect(told).not.toContain('[foreign-key-index]')
  expect(told).toContain('[tenant-table-unprotected]')
  expect(told).toContain('accepted_findings names tenant-table-unprotected: boot never hides this danger')
})
