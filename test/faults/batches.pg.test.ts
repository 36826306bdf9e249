/**
 * docs/reference/batches.md under faults. If the gateway is killed, a batch is done completely or not at all.
 * It has the effect of its requests sent one after the other. One tenant's batches do not stop the others.
 */
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture, serviceFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { sender } from '../support/send.ts'

const database = databaseFixture(`
  create table accounts (id int primary key, balance int not null check (balance >= 0));
  create table entries (id int generated always as identity primary key, pair int not null, amount int not null);
  create table naps (id int primary key);
  insert into naps select generate_series(1, 3);
  create function nap() returns int language sql volatile as 'select 1 from pg_sleep(0.2)';
  create view slow with (security_invoker = true) as select id, nap() as napped from naps;
  grant select, insert, update, delete on all tables in schema public to app;
`)
const admin = clientFixture(() => database.adminUrl)
const gateway = gatewayFixture(database, { toml: 'max_connections = 4\nrate_limit_rate = 0' })
const post = sender(() => gateway, 'POST')

beforeEach(async () => {
  await admin.query('truncate accounts, entries restart identity')
})

describe('a gateway that is killed', () => {
  const service = serviceFixture(database)

  test('leaves no batch half executed, and commits every acknowledged one', async () => {
    const authorization = `Bearer ${await gateway.token({ tenantId: 't1' })}`
    const acknowledged: number[] = []
    let pair = 0
    const send = async (): Promise<void> => {
      for (;;) {
        pair += 1
        const own = pair
        const entry = (amount: number) => ({ method: 'POST', path: '/api/entries', body: { pair: own, amount } })
        const mirrored = { method: 'POST', path: '/api/entries', body: { pair: own, amount: '$0.data.pair' } }
        const reply = await fetch(`${service.url}/api/_batch`, {
          method: 'POST',
          headers: { authorization, 'Content-Type': 'application/json' },
          body: JSON.stringify({ operations: [entry(own), entry(-own), mirrored] }),
        }).catch(() => null)
        if (reply === null) return
        if (reply.status === 200) acknowledged.push(own)
        await reply.arrayBuffer().catch(() => null)
        if (acknowledged.length === 60) service.child.kill('SIGKILL')
      }
    }
    await Promise.all(Array.from({ length: 8 }, send))
    // The server ends transactions of closed connections by itself.
    const open = `select count(*)::int from pg_stat_activity where usename = 'app' and state <> 'idle'
      and datname = current_database()`
    while ((await admin.query(open)).rows[0].count > 0);
    const { rows } = await admin.query('select pair, count(*)::int from entries group by pair')
    expect(rows.filter(({ count }) => count !== 3)).toEqual([])
    const done = new Set(rows.map(row => row.pair))
    expect(acknowledged.length).toBeGreaterThanOrEqual(60)
    expect(acknowledged.filter(own => !done.has(own))).toEqual([])
  })
})

describe('a batch of any operations', () => {
  const id = fc.integer({ min: 1, max: 3 })
  const operation = fc.oneof(
    fc
      .record({ id, balance: fc.integer({ min: -1, max: 9 }) })
      .map(body => ({ method: 'POST', path: '/api/accounts', body })),
    fc.tuple(id, fc.integer({ min: -1, max: 9 })).map(([of, balance]) => ({
      ...{ method: 'PATCH', path: `/api/accounts/${of}`, body: { balance } },
    })),
    id.map(of => ({ method: 'DELETE', path: `/api/accounts/${of}` })),
    id.map(of => ({ method: 'GET', path: `/api/accounts/${of}` })),
    fc.constant({ method: 'GET', path: '/api/accounts?sort=id' }),
    id.map(of => ({ query: 'set accounts values balance = balance + 1 where id = $1 returning *', parameters: [of] })),
  )
  const rows = async () => (await admin.query('select * from accounts order by id')).rows
  const reset = () => admin.query('truncate accounts; insert into accounts values (1, 5), (2, 0)')
  const alone = (sent: { method?: string; path?: string; body?: unknown; query?: string; parameters?: unknown }) =>
    sent.query === undefined
      ? gateway.get(sent.path ?? '', {
          method: sent.method ?? 'GET',
          ...(sent.body === undefined ? {} : { body: JSON.stringify(sent.body) }),
          headers: { 'Content-Type': 'application/json' },
        })
      : post('/api/_query', { query: sent.query, parameters: sent.parameters })
  const bodyOf = ({ text }: Reply) => (text === '' ? null : JSON.parse(text))

  test('answers and does the same as its requests one after the other, or nothing if one fails', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 8 }), async operations => {
        await reset()
        const before = await rows()
        const singles: Reply[] = []
        for (const sent of operations) singles.push(await alone(sent))
        const after = await rows()
        await reset()
        const reply = await post('/api/_batch', { operations })
        const failed = singles.findIndex(({ status }) => status >= 400)
        if (failed === -1) {
          const results: { status: number; body: unknown }[] = reply.json.results
          expect(results.map(({ status, body }) => [status, body])).toEqual(
            singles.map(one => [one.status, bodyOf(one)]),
          )
          expect(await rows()).toEqual(after)
        } else {
          expect([reply.status, reply.json.error.details.operation]).toEqual([singles[failed]?.status, failed])
          expect(await rows()).toEqual(before)
        }
        await reset()
        const independent = await post('/api/_batch', { operations, atomic: false })
        const results: { status: number }[] = independent.json.results
        expect(results.map(({ status }) => status)).toEqual(singles.map(({ status }) => status))
        expect(await rows()).toEqual(after)
      }),
      { numRuns: 40 },
    )
  })
})

test('one tenant’s slow batches leave connections to the others', async () => {
  const operations = Array.from({ length: 10 }, () => ({ method: 'GET', path: '/api/slow' }))
  const slow = Array.from({ length: 12 }, () => post('/api/_batch', { operations }, { as: { tenantId: 'greedy' } }))
  const replies = await Promise.all(
    Array.from({ length: 5 }, () => gateway.get('/api/accounts', { as: { tenantId: 'modest' } })),
  )
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  for (const { status } of await Promise.all(slow)) expect([200, 408, 429, 503]).toContain(status)
})
