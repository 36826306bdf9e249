/**
 * A database that stops responding without closing its connections (docs/reference/limits.md#bytes-and-time).
 * The deadline holds without the server's help: each request is answered after its statement timeout and a
 * small grace period, whether it was running, was sent later, or waits for a connection that is being opened.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'
import { type Relay, relayTo } from '../support/relay.ts'

const STATEMENT_TIMEOUT_MS = 1_000
const ACQUIRE_TIMEOUT_MS = 1_500
/** The pool's grace periods are 1.5 s, checked four times a second. The rest allows for a busy machine. */
const GRACE_MS = 6_000

let database: TestDatabase
let relay: Relay
let gateway: TestGateway

beforeEach(async () => {
  database = await testDatabase()
  await execute(
    database.adminUrl,
    `create table notes (id int primary key, body text not null);
     insert into notes values (1, 'one'), (2, 'two');
     create view naps with (security_invoker) as select id, pg_sleep(60)::text as slept from notes;
     -- PostgreSQL's timer fires once for a statement.
     create function stubborn() returns int volatile language plpgsql as $$
       begin
         begin perform pg_sleep(60); exception when query_canceled then null; end;
         perform pg_sleep(60);
         return 1;
       end $$;
     grant select, insert on notes, naps to app`,
  )
  relay = await relayTo(database.port)
  const url = new URL(database.url)
  url.host = `127.0.0.1:${relay.port}`
  gateway = await testGateway(url.href, {
    toml: [
      `statement_timeout_ms = ${STATEMENT_TIMEOUT_MS}`,
      `acquire_timeout_ms = ${ACQUIRE_TIMEOUT_MS}`,
      'drain_timeout_ms = 0',
    ].join('\n'),
  })
})
afterEach(async () => {
  await gateway.close()
  await relay.close()
  await database.drop()
})

const note = (tenantId = 't1'): Promise<Reply> => gateway.get('/api/notes/1', { as: { tenantId } })

/** Expects the response at its deadline, and not much later. */
async function within<T>(limitMs: number, asked: Promise<T>): Promise<T> {
  const began = performance.now()
  const reply = await asked
  expect(performance.now() - began).toBeLessThan(limitMs + GRACE_MS)
  return reply
}

test('a read is answered with 408 when the database stops responding, and its connection is closed', async () => {
  const activity = watchActivity(database.adminUrl)
  const asked = gateway.get('/api/naps')
  await activity.started(/\bnaps\b/)
  relay.silence()
  const reply = await within(STATEMENT_TIMEOUT_MS, asked)
  expect([reply.status, reply.json.error.code]).toEqual([408, 'TIMEOUT'])
  expect((await gateway.get('/metrics', { as: null })).text).toMatch(/^svc_pool_connections_lost_total [1-9]/m)
  await activity.close()
})

test('requests that are sent later are answered as well', async () => {
  expect((await note()).status).toBe(200)
  relay.silence()
  const headers = { 'Content-Type': 'application/json' }
  const replies = await within(
    STATEMENT_TIMEOUT_MS + ACQUIRE_TIMEOUT_MS,
    Promise.all([
      note(),
      note('t2'),
      note('t3'),
      gateway.get('/api/notes', { method: 'POST', body: '{"id": 3, "body": "three"}', headers }),
    ]),
  )
  for (const { status, json } of replies) {
    expect([408, 503]).toContain(status)
    expect(['TIMEOUT', 'UNAVAILABLE']).toContain(json.error.code)
  }
})

test('requests that wait for unresponsive new connections are answered, and later ones succeed', async () => {
  expect((await note()).status).toBe(200)
  relay.silence()
  // The first request finds a silent connection, which is closed; the others wait for new ones.
  const first = await within(STATEMENT_TIMEOUT_MS, note())
  expect([408, 503]).toContain(first.status)
  const before = relay.accepted
  const second = await within(ACQUIRE_TIMEOUT_MS, note())
  expect([second.status, second.json.error.code]).toEqual([503, 'UNAVAILABLE'])
  expect(relay.accepted).toBeGreaterThanOrEqual(before)
  relay.restore()
  await expect.poll(async () => (await note()).status, { timeout: 30_000 }).toBe(200)
})

test('a function that ignores its timeout is cancelled by the gateway', async () => {
  const reply = await within(
    STATEMENT_TIMEOUT_MS,
    gateway.get('/api/rpc/stubborn', { method: 'POST', body: '[]', headers: { 'Content-Type': 'application/json' } }),
  )
  expect([reply.status, reply.json.error.code]).toEqual([408, 'TIMEOUT'])
  const activity = watchActivity(database.adminUrl)
  await activity.gone(/\bstubborn\b/)
  await activity.close()
  const metrics = (await gateway.get('/metrics', { as: null })).text
  expect(metrics).toMatch(/^svc_pool_cancel_requests_total [1-9]/m)
  expect(metrics).toMatch(/^svc_pool_connections_lost_total 0/m)
})
