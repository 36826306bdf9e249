/**
 * Webhooks delivered from memory (docs/guides/webhooks.md#delivery-guarantees): receivers that fail in every
 * way, a database that restarts, a gateway that stops. As long as the process lives, every acknowledged write
 * is delivered, and only committed rows are.
 */
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { OK, type Receiver, receiver } from '../support/receiver.ts'

const server = databaseFixture(privateServer)
const folder = folderFixture()
beforeAll(() =>
  execute(server.adminUrl, 'create table notes (id int primary key, n int not null); grant all on notes to app'),
)

async function open(hooks: readonly Receiver[], toml = '', emit?: (event: Event) => void): Promise<TestGateway> {
  const file = join(folder, 'triggers.yaml')
  const triggers = hooks.map(({ url }, index) => ({
    ...{ name: `hook ${index}`, table: 'notes', operations: ['create', 'update'], webhook_url: url },
    ...{ retry_count: 10, timeout_ms: 500 },
  }))
  await writeFile(file, JSON.stringify(triggers))
  return testGateway(server.url, {
    toml: `events_path = ${JSON.stringify(file)}\nwebhook_allow = ["127.0.0.1"]\nacquire_timeout_ms = 300\n${toml}`,
    ...(emit === undefined ? {} : { emit }),
  })
}

/** Ways to fail. */
const FAILURES: readonly ((response: ServerResponse) => void)[] = [
  response => response.writeHead(500).end('no'),
  response => response.writeHead(429, { 'Retry-After': '1' }).end(),
  response => response.writeHead(301, { Location: '/elsewhere' }).end(),
  response => response.socket?.destroy(),
  response => response.socket?.end('HTTP/1.1 200'),
  response => response.socket?.end('what?'),
  // It does not respond.
  () => {},
]

test('every acknowledged write is delivered, whatever fails in between', { timeout: 120_000 }, async () => {
  const seen = new Set<unknown>()
  const hook = await receiver((response, received, count) => {
    const id = received.headers['webhook-id']
    if (count % 3 > 0 || seen.has(id)) return OK(response, received, count)
    seen.add(id)
    FAILURES[count % FAILURES.length]?.(response)
  })
  const gateway = await open([hook])
  const token = await gateway.token({ tenantId: 't1' })
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const answered = new Set<number>()
  let next = 0
  const write = async (): Promise<void> => {
    while (next < 300) {
      // One row, two rows of which the second is invalid, or two valid rows.
      const [first, kind] = [next++ * 2, next % 3]
      const rows = [{ id: first, n: first }, ...(kind === 0 ? [] : [{ id: first + 1, n: kind === 1 ? null : first }])]
      const body = JSON.stringify(kind === 0 ? rows[0] : rows)
      const { status } = await fetch(`${gateway.url}/api/notes`, { method: 'POST', headers, body })
      if (status === 201) for (const { id } of rows) answered.add(id)
    }
  }
  const writing = Promise.all(Array.from({ length: 8 }, write))
  await hook.until(60)
  await server.restart()
  await writing
  const told = () => new Set(hook.received.map(({ json }) => json.data.new.id))
  await hook.waitUntil(() => {
    const ids = told()
    return [...answered].every(id => ids.has(id))
  })
  await gateway.close()

  const client = new pg.Client({ connectionString: server.adminUrl })
  await client.connect()
  const { rows } = await client.query<{ id: number }>('select id from notes')
  await client.end()
  const there = new Set(rows.map(({ id }) => id))
  expect([...told()].filter(id => !there.has(id))).toEqual([])
  expect(answered.size).toBeGreaterThan(100)
  expect(seen.size).toBeGreaterThan(20)
  const bodies = new Map<unknown, string>()
  for (const { headers: sent, text } of hook.received) {
    expect(bodies.get(sent['webhook-id']) ?? text).toBe(text)
    bodies.set(sent['webhook-id'], text)
  }
  // Once for each row: the id is the same in every attempt.
  expect(bodies.size).toBe(told().size)
  await hook.close()
})

test('a gateway that stops waits no longer than allowed, and logs the number of lost deliveries', {
  timeout: 60_000,
}, async () => {
  await execute(server.adminUrl, 'truncate notes')
  const [hanging, fine] = [await receiver(() => {}), await receiver()]
  const events: Event[] = []
  const gateway = await open([hanging, fine], 'drain_timeout_ms = 300', event => events.push(event))
  const rows = Array.from({ length: 20 }, (_, id) => ({ id, n: 1 }))
  await gateway.get('/api/notes', {
    ...{ method: 'POST', body: JSON.stringify(rows), headers: { 'Content-Type': 'application/json' } },
  })
  await Promise.all([hanging.until(1), fine.until(20)])
  await gateway.close()
  const lost = events.flatMap(event => (event.kind === 'webhooks' && event.event === 'lost' ? [event.detail] : []))
  expect(lost).toMatchObject([{ deliveries: 20 }])
  expect(fine.received).toHaveLength(20)
  await Promise.all([hanging.close(), fine.close()])
})
