/** docs/reference/batches.md: several requests in one, as one transaction or each on its own. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { watchActivity } from '../support/activity.ts'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, fixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type Reply, testGateway } from '../support/gateway.ts'
import { receiver } from '../support/receiver.ts'
import { relayTo } from '../support/relay.ts'
import { sender } from '../support/send.ts'
import { openSocket } from '../support/socket.ts'

const database = databaseFixture(`
  create table orders (id int generated always as identity primary key, customer text not null, total numeric,
    tenant_id text not null default coalesce(current_setting('app.current_tenant_id', true), ''));
  create table lines (id int generated always as identity primary key, order_id int not null references orders,
    part text not null, quantity int not null check (quantity > 0), note jsonb);
  create table late (id int primary key, parent int references late deferrable initially deferred);
  create table counters (id int primary key, n int not null);
  create table shy (id int generated always as identity primary key, body text);
  alter table shy enable row level security, force row level security;
  create policy reading on shy for select using (body like 'shown%');
  create policy writing on shy for insert with check (true);
  create table secrets (id int generated always as identity primary key, body text);
  create function add_up(a int, b int) returns int language sql immutable as 'select a + b';
  create function raise_counter(of int) returns int language sql volatile as
    'update counters set n = n + 1 where id = of returning n';
  create function lying() returns int language plpgsql stable as
    'begin update counters set n = n + 1; return 1; end';
  create function leaving() returns text language plpgsql volatile as
    $$ begin perform set_config('app.current_tenant_id', 'other', false); return 'x'; end $$;
  create function isolation() returns text language sql stable as $$ select current_setting('transaction_isolation') $$;
  create view lies with (security_invoker = true) as select lying() as n;
  grant select, insert, update, delete on all tables in schema public to app;
  revoke select on secrets from app;
`)
const activity = fixture(() => watchActivity(database.adminUrl))
const admin = clientFixture(() => database.adminUrl)
const sql = (text: string) => executeOn(admin, text)
const gateway = gatewayFixture(database, { toml: 'max_batch_operations = 20\nmax_connections = 4' })
const post = sender(() => gateway, 'POST')

const batch = (operations: readonly unknown[], more: object = {}): Promise<Reply> =>
  post('/api/_batch', { operations, ...more })
const statuses = ({ json }: Reply): readonly number[] => json.results.map(({ status }: { status: number }) => status)
const rowsOf = async (table: string) => Number((await admin.query(`select count(*) from ${table}`)).rows[0].count)
const insert = (customer: string, more: object = {}) => ({
  ...{ method: 'POST', path: '/api/orders', body: { customer } },
  ...more,
})

beforeEach(async () => {
  await sql(`truncate orders, lines, late, shy, secrets restart identity cascade; delete from counters;
    insert into counters values (1, 0), (2, 0)`)
})

describe('an atomic batch', () => {
  test('answers each operation in order, with its status, headers and body', async () => {
    const reply = await batch([
      insert('ann', { id: 'order' }),
      { method: 'GET', path: '/api/orders?select=customer' },
      { query: 'get orders fields id where customer = $1', parameters: ['ann'] },
      { id: 'sum', method: 'POST', path: '/api/rpc/add_up', body: { a: 1, b: 2 } },
      { method: 'DELETE', path: '/api/orders/1' },
    ])
    expect(reply.status).toBe(200)
    expect(statuses(reply)).toEqual([201, 200, 200, 200, 204])
    expect(reply.json.results.map(({ id }: { id: unknown }) => id)).toEqual(['order', null, null, 'sum', null])
    const [order, list, text, sum, gone] = reply.json.results
    expect(order.headers).toMatchObject({
      Location: '/api/orders/1',
      'Content-Type': 'application/json; charset=utf-8',
    })
    expect(order.body.data).toMatchObject({ id: 1, customer: 'ann' })
    expect(list.body).toMatchObject({ data: [{ customer: 'ann' }], count: 1 })
    expect(text.body).toEqual({ data: [{ id: 1 }], count: 1 })
    expect(sum.body.data).toBe(3)
    expect(gone).toEqual({ id: null, status: 204, headers: expect.anything(), body: null })
    expect(await rowsOf('orders')).toBe(0)
  })

  test('answers HEAD without a body, and 304 for what the client has', async () => {
    const [first] = (await batch([{ method: 'GET', path: '/api/counters/1' }])).json.results
    const headers = { 'If-None-Match': first.headers.ETag }
    const { results } = (
      await batch([
        { method: 'HEAD', path: '/api/counters/1' },
        { method: 'GET', path: '/api/counters/1', headers },
        { method: 'GET', path: '/api/counters/2', headers },
      ])
    ).json
    const found = results.map((one: { status: number; body: unknown }) => [one.status, one.body === null])
    expect(found).toEqual([
      [200, true],
      [304, true],
      [200, false],
    ])
    expect(results[1].headers.ETag).toBe(first.headers.ETag)
  })

  test('is one transaction', async () => {
    const reply = await batch([insert('ann'), insert('bob')])
    const [first, second] = reply.json.results
    expect(first.headers['X-Svc-Txid']).toMatch(/^\d+$/)
    expect(second.headers['X-Svc-Txid']).toBe(first.headers['X-Svc-Txid'])
  })

  test('returns the entity tags that the rows have after the commit', async () => {
    const reply = await batch([insert('ann'), { method: 'PATCH', path: '/api/counters/1', body: { n: 7 } }])
    const [order, counter] = reply.json.results
    expect((await gateway.get('/api/orders/1')).headers.get('etag')).toBe(order.headers.ETag)
    expect((await gateway.get('/api/counters/1')).headers.get('etag')).toBe(counter.headers.ETag)
  })

  test.each<[string, object, number, string]>([
    ['a missing row', { method: 'PATCH', path: '/api/orders/99', body: { customer: 'x' } }, 404, 'NOT_FOUND'],
    [
      'a violated constraint',
      { method: 'POST', path: '/api/lines', body: { order_id: 1, part: 'a', quantity: 0 } },
      400,
      'QUERY_ERROR',
    ],
    ['an unknown column', { method: 'GET', path: '/api/orders?select=nothing' }, 400, 'PARSE_ERROR'],
    ['an unknown table', { method: 'GET', path: '/api/nowhere' }, 404, 'NOT_FOUND'],
    [
      'a stale tag',
      { method: 'DELETE', path: '/api/counters/1', headers: { 'If-Match': '"no"' } },
      412,
      'PRECONDITION_FAILED',
    ],
    ['a read that writes', { method: 'GET', path: '/api/lies' }, 400, 'QUERY_ERROR'],
    ['a stream', { query: 'export orders' }, 400, 'PARSE_ERROR'],
  ])('undoes everything and answers the error of the operation that fails: %s', async (_, failing, status, code) => {
    const reply = await batch([insert('ann'), failing, insert('bob')])
    expect(reply.json.error).toMatchObject({ code, status, details: { operation: 1 } })
    expect(reply.status).toBe(status)
    expect(await rowsOf('orders')).toBe(0)
  })

  test('names no operation when COMMIT fails', async () => {
    const reply = await batch([{ method: 'POST', path: '/api/late', body: { id: 1, parent: 5 } }, insert('ann')])
    expect(reply.status).toBe(400)
    expect(reply.json.error.details).toMatchObject({ sqlstate: '23503' })
    expect(reply.json.error.details.operation).toBeUndefined()
    expect(await rowsOf('orders')).toBe(0)
    const together = await batch([
      { method: 'POST', path: '/api/late', body: { id: 1, parent: 5 } },
      { method: 'POST', path: '/api/late', body: { id: 5 } },
    ])
    expect(statuses(together)).toEqual([201, 201])
  })

  test('reports the first operation that fails, although later ones fail too', async () => {
    const reply = await batch([
      { method: 'PATCH', path: '/api/orders/99', body: { customer: 'x' } },
      { method: 'POST', path: '/api/lines', body: { order_id: 99, part: 'a', quantity: 1 } },
      { method: 'GET', path: '/api/nowhere' },
    ])
    expect(reply.json.error).toMatchObject({ code: 'NOT_FOUND', details: { operation: 0 } })
  })

  test('resets what a function leaves in the session before the next operation', async () => {
    const headers = { Authorization: `Bearer ${await gateway.token({ tenantId: 't1' })}` }
    const reply = await post(
      '/api/_batch',
      { operations: [{ method: 'POST', path: '/api/rpc/leaving', body: {} }, insert('ann')] },
      { headers },
    )
    expect(reply.json.results[1].body.data.tenant_id).toBe('t1')
  })

  test('writes what a caller can write without reading it', async () => {
    const secret = (body: string) => ({
      method: 'POST',
      path: '/api/secrets',
      body: { body },
      headers: { prefer: 'return=minimal' },
    })
    const reply = await batch([insert('ann'), secret('a'), secret('b'), secret('c')])
    expect(reply.json.error).toBeUndefined()
    expect(statuses(reply)).toEqual([201, 201, 201, 201])
    expect(await rowsOf('secrets')).toBe(3)
    expect(await rowsOf('orders')).toBe(1)
  })

  test('writes rows that a policy hides from their writer', async () => {
    const shy = { method: 'POST', path: '/api/shy', body: { body: 'hidden' }, headers: { prefer: 'return=minimal' } }
    const reply = await batch([insert('ann'), ...Array.from({ length: 12 }, () => shy)])
    expect(reply.json.error).toBeUndefined()
    expect(statuses(reply)).toEqual(Array.from({ length: 13 }, () => 201))
    expect(await rowsOf('shy')).toBe(12)
  })

  test('sees in a read what it has written before', async () => {
    const count = { method: 'GET', path: '/api/orders/aggregate?fn=count' }
    const reply = await batch([count, insert('ann'), count, { method: 'DELETE', path: '/api/orders?id.gte=0' }, count])
    const counts = [0, 2, 4].map(index => reply.json.results[index].body.data.count)
    expect(counts).toEqual([0, 1, 0])
  })
})

describe('round trips to PostgreSQL', () => {
  const relay = fixture(() => relayTo(database.port))
  const relayed = gatewayFixture(
    {
      get url() {
        return Object.assign(new URL(database.url), { host: `127.0.0.1:${relay.port}` }).href
      },
    },
    { toml: 'max_connections = 1' },
  )
  const headers = { 'Content-Type': 'application/json' }
  /** The fewest round trips of several attempts: other statements of the gateway use the relay too. */
  const turnsOf = async (operations: readonly unknown[]): Promise<number> => {
    const turns: number[] = []
    for (let attempt = 0; attempt < 6; attempt++) {
      const before = relay.turns
      const reply = await relayed.get('/api/_batch', { method: 'POST', headers, body: JSON.stringify({ operations }) })
      expect(reply.status, reply.text).toBe(200)
      turns.push(relay.turns - before)
    }
    return Math.min(...turns)
  }

  test('are one for operations that need no other, one for those that refer to them, and one to commit', async () => {
    const increment = { method: 'PATCH', path: '/api/counters/1', body: { n: { $inc: 1 } } }
    const read = { method: 'GET', path: '/api/counters/1' }
    expect(await turnsOf([insert('a'), increment, read, insert('b'), increment])).toBe(2)
    const line = { method: 'POST', path: '/api/lines', body: { order_id: '$0.data.id', part: 'cup', quantity: 1 } }
    expect(await turnsOf([insert('a'), insert('b'), line, line])).toBe(3)
  })
})

describe('references', () => {
  test('fill in keys in bodies, paths and queries', async () => {
    const reply = await batch([
      insert('a b/c', { id: 'order' }),
      {
        id: 'line',
        method: 'POST',
        path: '/api/lines',
        body: { order_id: { $ref: 'order.id' }, part: 'p', quantity: 2 },
      },
      { method: 'POST', path: '/api/lines', body: [{ order_id: '$0.data.id', part: '$1.data.part', quantity: 1 }] },
      { method: 'GET', path: '/api/orders/$0.data.id/lines' },
      { method: 'GET', path: '/api/orders?customer=$0.data.customer&select=id' },
      { query: 'get lines fields part where order_id = :id', parameters: { id: { $ref: 'order.id' } } },
      { method: 'DELETE', path: '/api/lines/$2.data.0.id' },
    ])
    expect(reply.json.error).toBeUndefined()
    expect(statuses(reply)).toEqual([201, 201, 201, 200, 200, 200, 204])
    expect(reply.json.results[3].body.count).toBe(2)
    expect(reply.json.results[4].body.data).toEqual([{ id: 1 }])
    expect(reply.json.results[5].body.count).toBe(2)
  })

  test('keep every digit', async () => {
    const total = '12345678901234567890.10'
    const reply = await batch([
      { method: 'POST', path: '/api/orders', body: { customer: 'ann', total } },
      { method: 'POST', path: '/api/orders', body: { customer: 'bob', total: '$0.data.total' } },
    ])
    expect(reply.status).toBe(200)
    const { rows } = await admin.query('select total::text from orders')
    expect(rows).toEqual([{ total }, { total }])
  })

  test('with other keys, or escaped, are ordinary data', async () => {
    const note = { $ref: 'x.y', more: 1, text: '$$0.data.id', price: '$5.00', list: ['$$1.a'] }
    const reply = await batch([
      insert('ann'),
      { method: 'POST', path: '/api/lines', body: { order_id: 1, part: '$$0.data.id', quantity: 1, note } },
    ])
    const { data } = reply.json.results[1].body
    expect(data.part).toBe('$0.data.id')
    expect(data.note).toEqual({ ...note, text: '$0.data.id', list: ['$1.a'] })
  })

  test.each<[string, object]>([
    ['a later operation', { method: 'GET', path: '/api/orders/$2.data.id' }],
    ['itself', { method: 'GET', path: '/api/orders/$1.data.id' }],
    ['an unknown id', { method: 'POST', path: '/api/lines', body: { order_id: { $ref: 'nothing.id' } } }],
    ['a later id', { method: 'POST', path: '/api/lines', body: { order_id: { $ref: 'last.id' } } }],
    ['a missing member', { method: 'GET', path: '/api/orders/$0.data.nothing' }],
    ['a row in a path', { method: 'GET', path: '/api/orders/$0.data' }],
  ])('are refused for %s', async (_, operation) => {
    const reply = await batch([insert('ann'), operation, insert('bob', { id: 'last' })])
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', details: { operation: 1 } })
    expect(await rowsOf('orders')).toBe(0)
  })

  test('cannot change the route', async () => {
    const reply = await batch([insert('_batch'), { method: 'GET', path: '/api/$0.data.customer' }])
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', details: { operation: 1 } })
    const inside = await batch([insert('../x?select=id'), { method: 'GET', path: '/api/orders/$0.data.customer' }])
    expect(inside.json.error).toMatchObject({ code: 'PARSE_ERROR', details: { operation: 1 } })
  })
})

describe('an independent batch', () => {
  const each = (operations: readonly unknown[]) => batch(operations, { atomic: false })

  test('answers every operation, whether it fails or not', async () => {
    const reply = await each([insert('ann'), { method: 'GET', path: '/api/orders/99' }, insert('bob')])
    expect(reply.status).toBe(200)
    expect(statuses(reply)).toEqual([201, 404, 201])
    expect(reply.json.results[1].body.error).toMatchObject({ code: 'NOT_FOUND', status: 404 })
    expect(await rowsOf('orders')).toBe(2)
  })

  test('can refer to answers, but not to those of failed operations', async () => {
    const reply = await each([
      insert('ann', { id: 'order' }),
      { method: 'GET', path: '/api/orders/{$0.data.id}' },
      { method: 'GET', path: '/api/orders/$1.data.id' },
      { method: 'GET', path: '/api/orders/$0.data.id' },
    ])
    expect(statuses(reply)).toEqual([201, 400, 400, 200])
  })
})

describe('isolation', () => {
  const raise = { method: 'POST', path: '/api/rpc/raise_counter', body: { of: 1 } }

  test('runs a batch again after a conflict', async () => {
    const reads = { method: 'GET', path: '/api/counters/aggregate?fn=sum&column=n' }
    const replies = await Promise.all(
      Array.from({ length: 4 }, () => batch([reads, raise], { isolation: 'serializable' })),
    )
    const done = replies.filter(({ status }) => status === 200).length
    expect(done).toBeGreaterThan(1)
    for (const { status, headers } of replies)
      if (status !== 200) expect([status, headers.get('retry-after')]).toEqual([503, '1'])
    const { rows } = await admin.query('select n from counters where id = 1')
    expect(rows[0].n).toBe(done)
  })

  test('is the level of the transaction', async () => {
    const shown = { method: 'GET', path: '/api/rpc/isolation' }
    const reply = await batch([shown], { isolation: 'repeatable read' })
    expect(reply.json.results[0].body.data).toBe('repeatable read')
  })
})

describe('the body of a batch', () => {
  test.each<[string, unknown, string]>([
    ['no operations', {}, 'the body must be {"operations"'],
    ['an empty list', { operations: [] }, 'operations is empty'],
    ['an unknown key', { operations: [insert('a')], atmoic: true }, 'no "atmoic"'],
    ['an unknown isolation', { operations: [insert('a')], isolation: 'chaos' }, 'isolation must be one of'],
    [
      'isolation without a transaction',
      { operations: [insert('a')], isolation: 'serializable', atomic: false },
      'one transaction',
    ],
    ['an operation without a path', { operations: [{ method: 'GET' }] }, '"path"'],
    ['an operation that is a text', { operations: ['get orders'] }, 'must be an object'],
    ['an unknown key of an operation', { operations: [insert('a', { boddy: 1 })] }, 'no "boddy"'],
    ['an id that is used twice', { operations: [insert('a', { id: 'x' }), insert('b', { id: 'x' })] }, 'used twice'],
    [
      'a token',
      { operations: [insert('a', { headers: { Authorization: 'Bearer x' } })] },
      'cannot have the header "authorization"',
    ],
    [
      'an identity',
      { operations: [insert('a', { headers: { 'X-Tenant-Id': 't2' } })] },
      'cannot have the header "x-tenant-id"',
    ],
    ['a batch within', { operations: [{ method: 'POST', path: '/api/_batch', body: {} }] }, 'cannot be an operation'],
    ['a document', { operations: [{ method: 'GET', path: '/api/_schema' }] }, 'cannot be an operation'],
    ['another page', { operations: [{ method: 'GET', path: '/metrics' }] }, 'cannot be an operation'],
  ])('is refused with %s', async (_, body, message) => {
    const reply = await post('/api/_batch', body)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'PARSE_ERROR'])
    expect(reply.json.error.message).toContain(message)
  })

  test('has at most max_batch_operations', async () => {
    const reply = await batch(Array.from({ length: 21 }, () => insert('a')))
    expect(reply.status).toBe(413)
    expect(reply.json.error.message).toContain('max_batch_operations is 20')
  })

  test('has at most max_batch_references', async () => {
    const twice = { method: 'POST', path: '/api/rpc/add_up', body: { a: '$0.data', b: { $ref: 'first' } } }
    const nulls = (count: number) => ({
      ...{ method: 'POST', path: '/api/orders' },
      body: Array.from({ length: count }, () => ({ customer: '$0.data' })),
    })
    const first = { id: 'first', method: 'POST', path: '/api/rpc/add_up', body: { a: 1, b: 2 } }
    expect(statuses(await batch([first, twice]))).toEqual([200, 200])
    expect((await batch([first, twice, nulls(998)])).status).not.toBe(413)
    const reply = await batch([first, twice, nulls(999)])
    expect(reply.status).toBe(413)
    expect(reply.json.error).toMatchObject({ details: { operation: 2 } })
    expect(reply.json.error.message).toContain('max_batch_references is 1000')
  })

  test('fills a body up to the limit of a request body, and a path up to that of a path', async () => {
    const long = insert('x'.repeat(60_000))
    const copies = (count: number) => ({
      ...{ method: 'POST', path: '/api/lines' },
      body: { order_id: '$0.data.id', part: 'p', quantity: 1, note: Array(count).fill('$0.data.customer') },
    })
    expect(statuses(await batch([long, copies(30)]))).toEqual([201, 201])
    const reply = await batch([long, copies(36)])
    expect([reply.status, reply.json.error.details]).toEqual([413, { operation: 1 }])
    const inPath = await batch([
      insert('%'.repeat(60_000)),
      { method: 'GET', path: '/api/orders?customer=$0.data.customer' },
    ])
    expect([inPath.status, inPath.json.error.code]).toEqual([431, 'HEADERS_TOO_LARGE'])
  })

  test('reads answers of at most 2 MiB, by at most 32 names', async () => {
    await sql(`insert into orders (customer) select repeat('x', 50000) from generate_series(1, 50)`)
    const list = { method: 'GET', path: '/api/orders?limit=50' }
    const get = (path: string) => ({ method: 'GET', path: `/api/orders/${path}` })
    const large = await batch([list, get('$0.data.0.id')])
    expect([large.status, large.json.error.message]).toEqual([
      400,
      expect.stringContaining('larger than 2097152 bytes'),
    ])
    const deep = await batch([list, get(`$0${'.a'.repeat(33)}`)])
    expect([deep.status, deep.json.error.message]).toEqual([400, expect.stringContaining('more than 32 names')])
  })

  test('accepts POST only', async () => {
    const reply = await gateway.get('/api/_batch')
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

describe('limits', () => {
  const folder = folderFixture()

  test('count each operation for the rate limit', async () => {
    const limited = await testGateway(database.url, { toml: 'rate_limit_rate = 1\nrate_limit_burst = 5' })
    try {
      const send = sender(() => limited, 'POST')
      const operations = Array.from({ length: 6 }, () => ({ method: 'GET', path: '/api/orders' }))
      const reply = await send('/api/_batch', { operations })
      expect([reply.status, reply.json.error.code, reply.headers.get('retry-after')]).toEqual([
        429,
        'RATE_LIMITED',
        '1',
      ])
    } finally {
      await limited.close()
    }
  })

  test('compare each operation with the allow-list', async () => {
    const path = join(folder, 'allowed')
    await writeFile(path, 'GET /api/orders?select=id\n')
    const listed = await testGateway(database.url, { toml: `allow_list_path = ${JSON.stringify(path)}` })
    try {
      const send = sender(() => listed, 'POST')
      const allowed = { method: 'GET', path: '/api/orders?select=id' }
      expect((await send('/api/_batch', { operations: [allowed, allowed] })).status).toBe(200)
      const reply = await send('/api/_batch', { operations: [allowed, { method: 'GET', path: '/api/orders' }] })
      expect(reply.json.error).toMatchObject({ code: 'FORBIDDEN', details: { operation: 1 } })
    } finally {
      await listed.close()
    }
  })

  test('bound the time of the whole batch', async () => {
    await sql(`create or replace function slow() returns int language sql volatile as
      'select 1 from pg_sleep(0.3)'; grant execute on function slow() to app`)
    const quick = await testGateway(database.url, { toml: 'statement_timeout_ms = 700' })
    try {
      const send = sender(() => quick, 'POST')
      const operations = Array.from({ length: 5 }, () => ({ method: 'POST', path: '/api/rpc/slow', body: {} }))
      const reply = await send('/api/_batch', { operations })
      expect([reply.status, reply.json.error.code]).toEqual([408, 'TIMEOUT'])
      expect((await send('/api/_batch', { operations: [insert('ann')] })).status).toBe(200)
    } finally {
      await quick.close()
    }
  })

  test('guard the cost of each read', async () => {
    const guarded = await testGateway(database.url, { toml: 'explain_max_cost = 1' })
    try {
      const send = sender(() => guarded, 'POST')
      const reply = await send('/api/_batch', { operations: [insert('ann'), { method: 'GET', path: '/api/orders' }] })
      expect([reply.status, reply.json.error.code]).toEqual([422, 'QUERY_TOO_EXPENSIVE'])
      expect(reply.json.error.details.operation).toBe(1)
      expect(await rowsOf('orders')).toBe(0)
    } finally {
      await guarded.close()
    }
  })
})

describe('the cache', () => {
  const cached = gatewayFixture(database, { toml: '[gateway.cache]\nenabled = true' })

  test('drops the results that a batch outdates', async () => {
    const send = sender(() => cached, 'POST')
    await cached.get('/api/counters/1')
    expect((await cached.get('/api/counters/1')).headers.get('x-cache')).toBe('HIT')
    await send('/api/_batch', { operations: [{ method: 'PATCH', path: '/api/counters/1', body: { n: 9 } }] })
    const reply = await cached.get('/api/counters/1')
    expect([reply.headers.get('x-cache'), reply.json.data.n]).toEqual(['MISS', 9])
  })
})

describe('the changes of a batch', () => {
  const folder = folderFixture()
  const hook = fixture(receiver)
  const events: Event[] = []
  const watched = gatewayFixture(database, async () => {
    const path = join(folder, 'events.json')
    const trigger = { name: 'orders', table: 'orders', operations: ['create', 'delete'], webhook_url: hook.url }
    await writeFile(path, JSON.stringify([trigger]))
    const toml = `webhook_allow = ["127.0.0.0/8"]\nevents_path = ${JSON.stringify(path)}`
    return { toml, emit: event => void events.push(event) }
  })
  const send = sender(() => watched, 'POST')

  test('reach subscribers and webhooks after the commit, and not if it fails', async () => {
    const socket = await openSocket(watched.url, { token: await watched.token({ tenantId: 't1' }) })
    socket.say({ type: 'subscribe', channel: 'svc_table_orders' })
    await socket.nextOf('subscribed')
    const failing = { method: 'GET', path: '/api/orders/99' }
    expect((await send('/api/_batch', { operations: [insert('lost'), failing] })).status).toBe(404)
    expect((await send('/api/_batch', { operations: [insert('ann'), insert('bob')] })).status).toBe(200)
    const told = [await socket.nextOf('notification'), await socket.nextOf('notification')]
    expect(told.map(message => (message as { new?: { customer?: string } }).new?.customer)).toEqual(['ann', 'bob'])
    const bodies = (await hook.until(2)).map(({ json }) => json.data.new.customer)
    expect(bodies).toEqual(['ann', 'bob'])
    await socket.close()
  })

  test('are reported as operations and as a batch', async () => {
    events.length = 0
    await send('/api/_batch', { operations: [insert('ann'), { method: 'GET', path: '/api/lines' }] })
    const routes = () =>
      events.flatMap(event => (event.kind === 'request' ? [[event.method, event.route, event.status]] : []))
    expect(routes()).toEqual([
      ['POST', '/api/{table}', 201],
      ['GET', '/api/{table}', 200],
      ['POST', '/api/_batch', 200],
    ])
    events.length = 0
    await send('/api/_batch', { operations: [insert('ann'), { method: 'GET', path: '/api/lines/9' }] })
    expect(routes()).toEqual([
      ['GET', '/api/{table}/{id}', 404],
      ['POST', '/api/_batch', 404],
    ])
  })
})

test('a client that disconnects undoes its batch and frees the connection', async () => {
  await sql(`create or replace function linger() returns int language sql volatile as
    'select 1 from pg_sleep(20)'; grant execute on function linger() to app`)
  const narrow = await testGateway(database.url, { toml: 'max_connections = 1' })
  try {
    const left = new AbortController()
    const operations = [insert('gone'), { method: 'POST', path: '/api/rpc/linger', body: {} }]
    const sent = fetch(`${narrow.url}/api/_batch`, {
      ...{ method: 'POST', signal: left.signal, body: JSON.stringify({ operations }) },
      headers: {
        'Content-Type': 'application/json',
        Authorization: `Bearer ${await narrow.token({ tenantId: 't1' })}`,
      },
    }).catch(() => null)
    await activity.started(/linger/)
    left.abort()
    await sent
    expect((await narrow.get('/api/orders')).json.count).toBe(0)
  } finally {
    await narrow.close()
  }
})
