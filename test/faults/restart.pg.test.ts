/**
 * The database restarts under load: the process survives, errors are UNAVAILABLE, recovery is automatic, and
 * nothing leaks.
 */
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute, privateServer } from '../support/postgres.ts'

let token: string
const server = databaseFixture(
  privateServer,
  `create table notes (id int primary key, body text);
   insert into notes select n, 'note' from generate_series(1, 100) n;
   grant select on notes to app`,
)
const gateway = gatewayFixture(server, { toml: 'acquire_timeout_ms = 300' })

beforeAll(async () => {
  token = await gateway.token({ tenantId: 't1' })
})

async function ask(): Promise<{ status: number; text: string; retryAfter: string | null }> {
  const response = await fetch(`${gateway.url}/api/notes/7`, { headers: { Authorization: `Bearer ${token}` } })
  return { status: response.status, text: await response.text(), retryAfter: response.headers.get('retry-after') }
}

/** Repeats the request until it is answered `status`. */
async function until(status: number): Promise<void> {
  for (;;) if ((await ask()).status === status) return
}

test.each(['restart', 'kill'] as const)('the gateway survives a %s of the database', { timeout: 60_000 }, async how => {
  await until(200)
  let running = true
  const seen = new Map<number, number>()
  const load = Array.from({ length: 16 }, async () => {
    while (running) {
      const { status, text, retryAfter } = await ask()
      seen.set(status, (seen.get(status) ?? 0) + 1)
      if (status === 503) {
        expect(JSON.parse(text).error.code).toBe('UNAVAILABLE')
        expect(retryAfter).toBe('1')
      } else expect(status, text).toBe(200)
    }
  })
  if (how === 'kill') await server.kill()
  else await server.stop()
  await until(503)
  expect((await fetch(`${gateway.url}/health`)).status).toBe(503)
  await server.start()
  await until(200)
  running = false
  await Promise.all(load)
  expect([...seen.keys()].sort()).toEqual([200, 503])
  const [row] = await execute(
    server.adminUrl,
    `select count(*)::int as open from pg_stat_activity where usename = 'app'`,
  )
  expect(row?.open).toBeLessThanOrEqual(11)
})
