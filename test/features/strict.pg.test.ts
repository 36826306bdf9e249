/**
 * docs/guides/checking.md#at-startup: with `strict`, the start fails on start-up warnings and on other
 * findings of `svc check`.
 */
import { expect, test } from 'vitest'
import { databaseFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'

const database = databaseFixture(
  'create table a (tenant_id int primary key, b int references a); grant select on a to app',
)

/** Starts and stops. Returns the problems, or null. */
async function start(toml: string): Promise<string | null> {
  try {
    const gateway = await testGateway(database.url, { toml })
    await gateway.close()
    return null
  } catch (error) {
    return String(error)
  }
}

test('without strict the gateway starts, and only start-up warnings are kept for the operator', async () => {
  const gateway = await testGateway(database.url)
  const { json } = await gateway.get('/health/internal')
  await gateway.close()
  const told = json.warnings.map(({ message }: { message: string }) => message).join('\n')
  expect(told).toContain('without forced row-level security: a.')
  expect(told).not.toContain('a_b_fkey')
})

test('with strict, errors and warnings prevent the start, and all are reported together', async () => {
  const told = await start('strict = true')
  expect(told).toMatch(
    /error: .*without forced row-level security: a\..* \[tenant-table-unprotected\]\n {2}alter table public\.a /,
  )
  expect(told).toMatch(
    /error: Foreign keys without an index .*a_b_fkey on a\..* \[foreign-key-index\]\n {2}create index /,
  )
})

test('accepted findings do not prevent the start, except start-up warnings', async () => {
  const told = await start('strict = true\naccepted_findings = ["foreign-key-index", "tenant-table-unprotected"]')
  expect(told).not.toContain('[foreign-key-index]')
  expect(told).toContain('[tenant-table-unprotected]')
  expect(told).toContain(
    'accepted_findings names tenant-table-unprotected, which cannot be accepted: it is checked at every start',
  )
})
