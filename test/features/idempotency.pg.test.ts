/** docs/reference/writing.md#idempotency-keys: a request that is sent again has no second effect. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, fixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply, TestGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'

const database = databaseFixture(`
  create table orders (id int generated always as identity primary key, customer text not null,
    n int not null default 0);
  create table lines (id int generated always as identity primary key,
    order_id int not null references orders, part text);
  create table slow (id int primary key);
  create table late (id int primary key, parent int references late deferrable initially deferred);
  create function add_order(customer text) returns int language sql volatile as
    'insert into orders (customer) values (customer) returning id';
  create function nap() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
  create trigger nap before insert on slow for each row execute function nap();
  grant select, insert, update, delete on all tables in schema public to app;
`)
beforeAll(() => installed(database))
const activity = fixture(() => watchActivity(database.adminUrl))
const admin = clientFixture(() => database.adminUrl)
const folder = folderFixture()
const toml = 'idempotency_max_response_bytes = 1024'
const gateway = gatewayFixture(database, { toml })
const other = gatewayFixture(database, { toml })
const bounded = gatewayFixture(database, { toml: 'tenant_max_idempotency_keys = 3' })
const restricted = gatewayFixture(database, async () => {
  const file = join(folder, 'access.toml')
  await writeFile(file, RESTRICTED)
  return { toml: `[access]\nenabled = true\npath = ${JSON.stringify(file)}` }
})
const RESTRICTED = `
default_decision = "deny"

[tables.orders]
operations = ["read", "create"]
write_columns = { only = ["customer"] }
`

interface Sent {
  readonly key?: string
  readonly from?: TestGateway
  readonly as?: object
  readonly headers?: Readonly<Record<string, string>>
}

const send = (method: string, path: string, body: unknown, { key = 'k', from = gateway, as, headers }: Sent = {}) =>
  from.get(path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, ...headers },
    ...(as === undefined ? {} : { as }),
  } as never)
const isReplayed = (reply: Reply) => reply.headers.get('idempotency-replayed') === 'true'
const count = async (table: string) => Number((await admin.query(`select count(*) from ${table}`)).rows[0].count)
const keys = () => count('svc.idempotency_key')

beforeEach(() => executeOn(admin, 'truncate orders, lines, slow, late, svc.idempotency_key restart identity cascade'))

describe('a request that is sent again', () => {
  test.each<[string, string, unknown]>([
    ['POST', '/api/orders', { customer: 'ann' }],
    ['POST', '/api/orders?returning=id', [{ customer: 'ann' }, { customer: 'bob', n: 2 }]],
    ['PATCH', '/api/orders/1', { n: { $inc: 1 } }],
    ['PATCH', '/api/orders?n=0', { n: { $inc: 1 } }],
    ['DELETE', '/api/orders/1', undefined],
    ['DELETE', '/api/orders?returning=id&n=gte.0', undefined],
    ['POST', '/api/rpc/add_order', { customer: 'ann' }],
    ['POST', '/api/_query', { query: 'set orders values n = n + 1 where id = 1 returning *' }],
    ['POST', '/api/_query', { query: 'get orders' }],
    ['POST', '/api/_batch', { operations: [{ method: 'POST', path: '/api/orders', body: { customer: 'b' } }] }],
  ])('has the response of the first: %s %s', async (method, path, body) => {
    await admin.query(`insert into orders (customer) values ('first')`)
    const first = await send(method, path, body)
    expect([first.status < 300, isReplayed(first)], first.text).toEqual([true, false])
    const rows = (await admin.query('select * from orders order by id')).rows
    for (const from of [gateway, other]) {
      const again = await send(method, path, body, { from })
      expect([again.status, again.text, isReplayed(again)]).toEqual([first.status, first.text, true])
      for (const name of ['location', 'etag', 'x-svc-txid', 'content-type'])
        expect(again.headers.get(name), name).toBe(first.headers.get(name))
    }
    expect((await admin.query('select * from orders order by id')).rows).toEqual(rows)
    expect(await keys()).toBe(1)
  })

  test('is recognized with the key in quotes', async () => {
    await send('POST', '/api/orders', { customer: 'ann' }, { key: 'a-1' })
    expect(isReplayed(await send('POST', '/api/orders', { customer: 'ann' }, { key: '"a-1"' }))).toBe(true)
  })

  test('has its own effect with another key, without one, and for another user or tenant', async () => {
    const body = { customer: 'ann' }
    const replies = [
      await send('POST', '/api/orders', body, { as: { tenantId: 't1', userId: 'u1' } }),
      await send('POST', '/api/orders', body, { as: { tenantId: 't1', userId: 'u2' } }),
      await send('POST', '/api/orders', body, { as: { tenantId: 't2', userId: 'u1' } }),
      await send('POST', '/api/orders', body, { key: 'other', as: { tenantId: 't1', userId: 'u1' } }),
    ]
    expect(replies.map(isReplayed)).toEqual([false, false, false, false])
    expect(await count('orders')).toBe(4)
  })

  test('returns the first response although the rows have changed since', async () => {
    const first = await send('POST', '/api/orders', { customer: 'ann' })
    await admin.query(`update orders set customer = 'changed'`)
    expect((await send('POST', '/api/orders', { customer: 'ann' })).text).toBe(first.text)
  })

  test('runs again once the key has expired', async () => {
    await send('POST', '/api/orders', { customer: 'ann' })
    await admin.query(`update svc.idempotency_key set expires_at = now()`)
    expect(isReplayed(await send('POST', '/api/orders', { customer: 'ann' }))).toBe(false)
    expect(isReplayed(await send('POST', '/api/orders', { customer: 'ann' }))).toBe(true)
    expect(await count('orders')).toBe(2)
    expect(await keys()).toBe(1)
  })

  test('is ignored with GET', async () => {
    expect(isReplayed(await send('GET', '/api/orders', undefined))).toBe(false)
    expect(await keys()).toBe(0)
  })
})

describe('a different request with the same key', () => {
  test.each<[string, string, string, unknown, object]>([
    ['method', 'PATCH', '/api/orders', { customer: 'ann' }, {}],
    ['path', 'POST', '/api/lines', { customer: 'ann' }, {}],
    ['query', 'POST', '/api/orders?returning=id', { customer: 'ann' }, {}],
    ['header', 'POST', '/api/orders', { customer: 'ann' }, { headers: { Prefer: 'return=minimal' } }],
    ['body', 'POST', '/api/orders', { customer: 'bob' }, {}],
  ])('is refused: %s', async (what, method, path, body, more) => {
    await send('POST', '/api/orders', { customer: 'ann' })
    const reply = await send(method, path, body, more)
    // A request that is invalid by itself is refused as such.
    const expected = what === 'method' || what === 'path' ? [400, 422] : [422]
    expect(expected).toContain(reply.status)
    if (reply.status === 422) expect(reply.json.error.code).toBe('IDEMPOTENCY_KEY_REUSED')
    expect(await count('orders')).toBe(1)
  })
})

test('a concurrent request is refused at once, and the key is free again after a failure', async () => {
  const running = send('POST', '/api/slow', { id: 1 })
  await activity.started(/slow/)
  for (const from of [gateway, other]) {
    const reply = await send('POST', '/api/slow', { id: 1 }, { from })
    expect([reply.status, reply.json.error.code]).toEqual([409, 'IDEMPOTENCY_KEY_IN_USE'])
    expect(reply.headers.get('retry-after')).toBe('1')
  }
  await activity.value(`select pg_cancel_backend(pid) from pg_stat_activity
    where datname = current_database() and state = 'active' and query ~ 'slow' and pid <> pg_backend_pid()`)
  expect((await running).status).toBeGreaterThanOrEqual(400)
  await admin.query('alter table slow disable trigger nap')
  const next = await send('POST', '/api/slow', { id: 1 })
  await admin.query('alter table slow enable trigger nap')
  expect([next.status, isReplayed(next)]).toEqual([201, false])
})

describe('a response is stored only if its request was committed', () => {
  test.each<[string, string, unknown, number]>([
    ['POST', '/api/orders', { customer: null }, 400],
    ['POST', '/api/late', { id: 1, parent: 2 }, 400],
    ['PATCH', '/api/orders/9', { n: 1 }, 404],
    ['POST', '/api/nowhere', {}, 404],
    ['POST', '/api/_query', { query: 'export orders' }, 400],
    ['POST', '/api/_batch', { operations: [{ method: 'DELETE', path: '/api/orders/9' }] }, 404],
    ['POST', '/api/_batch', { atomic: false, operations: [{ method: 'GET', path: '/api/orders' }] }, 400],
  ])('%s %s %j', async (method, path, body, status) => {
    for (let attempt = 0; attempt < 2; attempt++) {
      const reply = await send(method, path, body)
      expect([reply.status, isReplayed(reply)], reply.text).toEqual([status, false])
    }
    expect(await keys()).toBe(0)
  })

  test('an import cannot have a key', async () => {
    const reply = await gateway.get('/api/orders', {
      ...{ method: 'POST', body: 'customer\nann\n' },
      headers: { 'Content-Type': 'text/csv', 'Idempotency-Key': 'k' },
    })
    expect([reply.status, reply.json.error.code], reply.text).toEqual([400, 'PARSE_ERROR'])
    expect(await count('orders')).toBe(0)
  })

  test('one that is too large to be stored is not written', async () => {
    const reply = await send('POST', '/api/orders', { customer: 'x'.repeat(2_000) })
    expect([reply.status, reply.json.error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
    expect(await count('orders')).toBe(0)
    const minimal = { headers: { Prefer: 'return=minimal' } }
    expect((await send('POST', '/api/orders', { customer: 'x'.repeat(2_000) }, minimal)).status).toBe(201)
  })
})

describe('a key', () => {
  test.each(['', '""', 'x'.repeat(256), `"${'x'.repeat(256)}"`, 'two words', 'a, b', '"open', 'é', '"a", "b"'])(
    'that is invalid is refused: %s',
    async key => {
      const reply = await send('POST', '/api/orders', { customer: 'ann' }, { key })
      expect([reply.status, reply.json.error.code]).toEqual([400, 'PARSE_ERROR'])
      expect(await count('orders')).toBe(0)
    },
  )

  test('can have 255 characters', async () => {
    expect((await send('POST', '/api/orders', { customer: 'ann' }, { key: 'x'.repeat(255) })).status).toBe(201)
  })
})

describe('a policy is applied before the stored response is sent', () => {
  const create = { method: 'POST', path: '/api/orders', body: { customer: 'ann' } }

  test.each<[string, string, unknown, number]>([
    ['POST', '/api/orders', { customer: 'ann' }, 201],
    ['POST', '/api/orders', { customer: 'ann', n: 1 }, 403],
    ['POST', '/api/_query', { query: 'set orders values n = 1 where n = 0' }, 403],
    ['POST', '/api/_batch', { operations: [create] }, 200],
    ['POST', '/api/_batch', { operations: [create, { ...create, path: '/api/lines', body: { order_id: 1 } }] }, 403],
    [
      ...(['POST', '/api/_batch'] as const),
      { operations: [create, { ...create, body: { customer: '$0.data.customer', n: '$0.data.id' } }] },
      403,
    ],
  ])('%s %s %j', async (method, path, body, status) => {
    const first = await send(method, path, body)
    expect(first.status, first.text).toBeLessThan(300)
    const reply = await send(method, path, body, { from: restricted })
    expect([reply.status, isReplayed(reply)], reply.text).toEqual([status, status < 300])
  })
})

describe('a batch', () => {
  const operations = [
    { method: 'POST', path: '/api/orders', body: { customer: 'ann' } },
    { method: 'POST', path: '/api/lines', body: { order_id: '$0.data.id', part: 'a' } },
    { method: 'PATCH', path: '/api/orders/$0.data.id', body: { n: { $inc: 1 } } },
  ]

  test.each(['read committed', 'repeatable read', 'serializable'])('is done once with %s', async isolation => {
    const sent = { operations, isolation }
    const first = await send('POST', '/api/_batch', sent)
    expect(first.status, first.text).toBe(200)
    const again = await send('POST', '/api/_batch', sent, { from: other })
    expect([again.text, isReplayed(again)]).toEqual([first.text, true])
    expect([await count('orders'), await count('lines')]).toEqual([1, 1])
  })

  test.each([undefined, 'serializable'])('that is sent several times at once is done once: %s', async isolation => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        send('POST', '/api/_batch', { operations, isolation }, { from: n % 2 === 0 ? gateway : other }),
      ),
    )
    for (const { status, text } of replies) expect([200, 409], text).toContain(status)
    expect(replies.filter(reply => reply.status === 200 && !isReplayed(reply))).toHaveLength(1)
    expect([await count('orders'), await count('lines')]).toEqual([1, 1])
  })
})

test('a tenant has a bounded number of keys', async () => {
  const of = (key: string, tenantId: string) =>
    send('POST', '/api/orders', { customer: key }, { key, from: bounded, as: { tenantId } })
  const replies = []
  for (const key of ['a', 'b', 'c', 'd']) replies.push(await of(key, 't1'))
  expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 429])
  expect(replies[3]?.json.error.code).toBe('RATE_LIMITED')
  expect(isReplayed(await of('a', 't1'))).toBe(true)
  expect((await of('d', 't2')).status).toBe(201)
  await admin.query(`update svc.idempotency_key set expires_at = now() where tenant = 't1'`)
  expect((await of('d', 't1')).status).toBe(201)
})

test('a gateway registers its ticket again after the database has lost it', async () => {
  await admin.query('delete from svc.ticket')
  const first = await send('POST', '/api/orders', { customer: 'ann' })
  expect(first.status).toBe(503)
  await expect
    .poll(async () => (await send('POST', '/api/orders', { customer: 'ann' })).status, { timeout: 20_000 })
    .toBe(201)
})

test('SQL of a request can neither read nor forge stored responses', async () => {
  await execute(
    database.adminUrl,
    `create function run(what text) returns text language plpgsql as
      $$ declare found text; begin execute what into found; return found; end $$`,
  )
  await gateway.gateway.reload()
  await send('POST', '/api/orders', { customer: 'ann' })
  const before = (await admin.query('select * from svc.idempotency_key')).rows
  for (const what of [
    'select string_agg(headers, $$ $$) from svc.idempotency_key',
    `insert into svc.idempotency_key values ('', '', '', 200, '{}', null, now())`,
    'delete from svc.idempotency_key',
    `select svc.claim_key('mine', '\\x00')::text`,
    `select svc.store_answer('mine', '\\x00', '', '', 200, '{}', null, 60)::text`,
    `select with_body from svc.find_answer('mine', '\\x00')`,
    `select svc.count_keys('mine', '', 9)::text`,
    `select svc.forget_keys()::text`,
  ]) {
    const reply = await gateway.get('/api/rpc/run', {
      ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ what }) },
    })
    expect(reply.status, what).toBeGreaterThanOrEqual(400)
    expect(reply.text).toMatch(/permission denied|for gateways only/)
  }
  expect((await admin.query('select * from svc.idempotency_key')).rows).toEqual(before)
})
