/**
 * The primary is lost under load, and its standby is promoted. Every write that was answered as done is
 * present afterwards, every refused one is absent, and only those with `details.outcome = "unknown"` can be
 * either (docs/guides/database-connections.md#failover).
 */
import { describe, expect, test } from 'vitest'
import { fixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { PASSWORD } from '../support/server.ts'
import { startReplication } from '../support/standby.ts'

const SCHEMA = `
create table notes (id int primary key, body text not null);
insert into notes values (0, 'first');
grant select, insert on notes to app;
`

describe.each(['stop', 'kill'] as const)('after a %s of the primary', how => {
  const servers = fixture(() => startReplication(SCHEMA, { synchronous: true }))
  const database = {
    get url() {
      const hosts = `127.0.0.1:${servers.primary.port},127.0.0.1:${servers.standby.port}`
      return `postgres://app:${PASSWORD}@${hosts}/postgres?target_session_attrs=read-write`
    },
  }
  const events: string[] = []
  const gateway = gatewayFixture(database, {
    toml: 'acquire_timeout_ms = 300',
    emit: event => {
      if (event.kind === 'database') events.push(event.event)
    },
  })

  const write = (id: number): Promise<Reply> =>
    gateway.get('/api/notes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, body: 'written' }),
    })

  test('no acknowledged write is lost, and no refused one is present', { timeout: 120_000 }, async () => {
    const done: number[] = []
    const refused: number[] = []
    const unknown: number[] = []
    let next = 1
    let running = true
    const load = Array.from({ length: 8 }, async () => {
      while (running) {
        const id = next++
        const { status, headers, json, text } = await write(id)
        if (status === 201) {
          done.push(id)
          continue
        }
        expect(status, text).toBe(503)
        expect(headers.get('retry-after')).toBe('1')
        expect(json.error.code).toBe('UNAVAILABLE')
        if (json.error.details?.outcome === 'unknown') unknown.push(id)
        else refused.push(id)
      }
    })
    await expect.poll(() => done.length, { timeout: 30_000 }).toBeGreaterThan(50)
    // A stop that waits for the standby would wait for the load to end.
    await servers.primary.stop(how === 'kill' ? 'kill' : 'immediate')
    await expect.poll(() => refused.length, { timeout: 30_000 }).toBeGreaterThan(0)
    const before = done.length
    expect((await gateway.get('/health')).status).toBe(503)
    await execute(servers.standby.adminUrl, 'select pg_promote()')
    await expect.poll(() => done.length, { timeout: 30_000 }).toBeGreaterThan(before + 50)
    running = false
    await Promise.all(load)

    const rows = await execute(servers.standby.adminUrl, 'select id from notes')
    const present = new Set(rows.map(({ id }) => id))
    expect(done.filter(id => !present.has(id))).toEqual([])
    expect(refused.filter(id => present.has(id))).toEqual([])
    expect(present.size).toBeLessThanOrEqual(1 + done.length + unknown.length)
    // The result of a failed check is used again for a second.
    await expect.poll(async () => (await gateway.get('/health')).status, { timeout: 30_000 }).toBe(200)
    expect(events).toContain('host-changed')
    const metrics = (await gateway.get('/metrics')).text
    expect(metrics).toMatch(/^svc_pool_failovers_total 1$/m)
  })
})
