/**
 * docs/guides/caching.md: which results are returned without querying the database. The header `X-Cache` is
 * the only difference.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parseExposition } from '../support/exposition.ts'
import { databaseFixture, fixture } from '../support/fixtures.ts'
import { type AskOptions, type GatewayOptions, type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'

const SCHEMA = `
  create table customers (id int primary key, tenant_id text not null default 't1', name text not null);
  create table orders (
    id int primary key, tenant_id text not null default 't1', customer_id int references customers on delete cascade,
    status text not null default 'open', total numeric not null default 0, placed timestamptz not null default
      '2024-01-01'
  );
  create table lines (id int primary key, tenant_id text not null default 't1', order_id int references orders
    on delete set null);
  create table watched (id int primary key, tenant_id text not null default 't1');
  create table noted (id int primary key, tenant_id text not null default 't1');
  create table members (tenant_id text primary key, active boolean not null);
  create table guarded (id int primary key, tenant_id text not null default 't1');
  create table trusted (id int primary key);
  create view recent with (security_invoker) as select id, status from orders where total >= 0;
  create view fresh with (security_invoker) as select id, now() as seen from orders;

  do $$ declare t text; begin
    foreach t in array array['customers', 'orders', 'lines', 'watched', 'noted'] loop
      execute format('alter table %I enable row level security; alter table %I force row level security', t, t);
      execute format($p$create policy own on %I using (tenant_id = (select
        current_setting('app.current_tenant_id', true)))$p$, t);
    end loop;
  end $$;
  alter table guarded enable row level security;
  create policy own on guarded using (tenant_id in (select tenant_id from members where active));
  create function is_trusted() returns boolean stable
    language sql as 'select exists (select from members where active)';
  alter table trusted enable row level security;
  create policy own on trusted using (is_trusted());

  create function note() returns trigger language plpgsql as $$ begin insert into noted (id) values (new.id);
    return new; end $$;
  create trigger note before insert on watched for each row execute function note();
  create function close_all() returns void volatile language sql as $$update orders set status = 'closed'$$;
  create function count_orders() returns bigint stable language sql as 'select count(*) from orders';
  grant select, insert, update, delete on all tables in schema public to app`

const database = databaseFixture(SCHEMA)
const gateway = fixture(() =>
  asking({
    toml: 'cache.enabled = true\ncache.ttl_secs = 86400\nschema_poll_secs = 86400',
  }),
)

beforeEach(async () => {
  await execute(
    database.adminUrl,
    `truncate customers, orders, lines, watched, noted, members, guarded, trusted;
     insert into customers (id, tenant_id, name) values (1, 't1', 'Ann'), (2, 't2', 'Bob');
     insert into orders (id, tenant_id, customer_id) values (1, 't1', 1), (2, 't2', 2), (3, 't1', 1);
     insert into lines (id, order_id) values (1, 1);
     insert into members values ('t1', true);
     insert into guarded (id) values (1);
     insert into trusted (id) values (1)`,
  )
  // The gateway cannot know about changes made directly in the database.
  await gateway.gateway.reload()
})

/**
 * A gateway whose callers keep their tokens: a new token would contain a different time, which is passed to
 * the database as well.
 */
async function asking(options: GatewayOptions): Promise<TestGateway> {
  const asked = await testGateway(database.url, options)
  const tokens = new Map<string, Promise<string>>()
  return {
    ...asked,
    async get(path, { as = { tenantId: 't1' }, ...more } = {}) {
      if (as === null) return asked.get(path, { as, ...more })
      const name = JSON.stringify(as)
      const token = tokens.get(name) ?? asked.token(as)
      tokens.set(name, token)
      return asked.get(path, {
        ...more,
        as: null,
        headers: { ...more.headers, Authorization: `Bearer ${await token}` },
      })
    },
  }
}

const cacheOf = ({ headers }: Reply) => headers.get('x-cache')
const send = (method: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
  gateway.get(path, {
    method,
    ...(body === null ? {} : { body: JSON.stringify(body) }),
    headers: { 'Content-Type': 'application/json', ...headers },
  })
const query = (text: string, options: AskOptions = {}) =>
  gateway.get('/api/_query', { ...options, method: 'POST', body: text, headers: { 'Content-Type': 'text/plain' } })

/** Sends the request twice: the second response comes from the cache and has the same bytes. */
async function expectKept(ask: () => Promise<Reply>): Promise<Reply> {
  const first = await ask()
  expect(first.status, first.text).toBe(200)
  expect(cacheOf(first)).toBe('MISS')
  const second = await ask()
  expect([cacheOf(second), second.status, second.text]).toEqual(['HIT', 200, first.text])
  return second
}

/** Sends the request twice: both are executed. */
async function expectNotKept(ask: () => Promise<Reply>): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const reply = await ask()
    expect([reply.status, cacheOf(reply)], reply.text).toEqual([200, 'MISS'])
  }
}

describe('a result is cached', () => {
  test.each([
    '/api/orders',
    '/api/orders/1',
    '/api/orders?status=eq.open&sort=-id&select=id,status&limit=1',
    '/api/orders?expand=customer,nested:lines',
    '/api/orders?search=open',
    '/api/orders?distinct=status',
    '/api/orders/aggregate?fn=count',
    '/api/orders/_aggregate?fn=max&column=total&group_by=status',
    '/api/customers/1/orders',
    '/api/recent?sort=id',
    '/api/guarded',
    '/api/trusted',
  ])('%s', async path => {
    await expectKept(() => gateway.get(path))
  })

  test('for pages by cursor, exact counts, and HEAD', async () => {
    const page = await expectKept(() => gateway.get('/api/orders?limit=1&sort=id'))
    await expectKept(() => gateway.get(`/api/orders?limit=1&sort=id&cursor=${page.json.next_cursor}`))
    const counted = () => gateway.get('/api/orders?limit=1&sort=id', { headers: { Prefer: 'count=exact' } })
    expect((await expectKept(counted)).json.total).toBe(2)
    expect(cacheOf(await gateway.get('/api/orders?limit=1&sort=id', { method: 'HEAD' }))).toBe('HIT')
  })

  test('if the row does not exist', async () => {
    const ask = () => gateway.get('/api/orders/424242')
    expect([await ask(), await ask()].map(reply => [reply.status, cacheOf(reply)])).toEqual([
      [404, 'MISS'],
      [404, 'HIT'],
    ])
  })

  test('for reads of the query language', async () => {
    await expectKept(() => query("get orders where status = 'open' order by id"))
    await expectKept(() => query('with o as (get orders) get o fields count(*) as n'))
  })

  test('if no rows exist, until a write creates them', async () => {
    for (const [times, hits] of [
      [1, 0],
      [2, 1],
    ]) {
      const before = await hitsSoFar()
      expect((await gateway.get('/api/orders/99')).status, `time ${times}`).toBe(404)
      expect((await hitsSoFar()) - before).toBe(hits)
    }
    expect((await send('POST', '/api/orders', { id: 99 })).status).toBe(201)
    expect((await gateway.get('/api/orders/99')).status).toBe(200)
  })
})

describe('a result is not cached', () => {
  test.each([
    ['/api/orders?stream=true'],
    ['/api/orders/_explain'],
    ['/api/fresh?select=id'],
    ['/api/orders?placed=lt.tomorrow'],
    ['/api/orders?placed=lt.NOW'],
    ['/api/rpc/count_orders'],
  ])('%s', async path => {
    await expectNotKept(() => gateway.get(path))
  })

  test('for query texts that use the clock or random values', async () => {
    await expectNotKept(() => query('get orders where placed < now()'))
    await expectNotKept(() => query('get orders fields id order by random()'))
    await expectNotKept(() => query("get orders where placed < 'today'"))
  })

  test('if it is a rejection, which is evaluated again', async () => {
    const before = await hitsSoFar()
    for (let i = 0; i < 2; i++) expect((await gateway.get('/api/orders?total=gt.x')).status).toBe(400)
    expect(await hitsSoFar()).toBe(before)
  })
})

describe('the caller of a result', () => {
  test('gets no result of another caller', async () => {
    const path = '/api/orders?select=id'
    const claims: readonly NonNullable<AskOptions['as']>[] = [
      { tenantId: 't1' },
      { tenantId: 't2' },
      { tenantId: 't1', userId: 'u' },
      { tenantId: 't1', role: 'clerk' },
      { tenantId: 't1', agentId: 'a' },
      { tenantId: 't1', scopes: ['orders:read'] },
    ]
    for (const as of claims) {
      const reply = await gateway.get(path, { as })
      expect(cacheOf(reply), JSON.stringify(as)).toBe('MISS')
      expect(reply.json.data.map(({ id }: { id: number }) => id)).toEqual(as.tenantId === 't2' ? [2] : [1, 3])
    }
  })

  test('gets nothing from the cache with a rejected token', async () => {
    await expectKept(() => gateway.get('/api/orders'))
    const refused = await gateway.get('/api/orders', { as: null, headers: { Authorization: 'Bearer x.y.z' } })
    expect(refused.status).toBe(401)
    expect((await gateway.get('/api/orders', { as: null })).status).toBe(401)
  })
})

describe('with an access policy', () => {
  let file: string

  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-cache-'))
    file = join(folder, 'routes.yaml')
    await writeFile(file, printPolicies(['clerk', 'viewer']))
  })
  const guarded = fixture(() => asking({ toml: `cache.enabled = true\npolicy_path = ${JSON.stringify(file)}` }))

  afterAll(() => rm(dirname(file), { recursive: true, force: true }))

  /** The clerk can see every order; the viewer can see the ids of open orders. */
  function printPolicies(roles: readonly string[]): string {
    const policies = {
      clerk: '{name: clerks, table: orders, role: clerk, operations: [read], allowed_columns: [id, status]}',
      viewer:
        '{name: viewers, table: orders, role: viewer, operations: [read], allowed_columns: [id], ' +
        `filter: "status = 'open'"}`,
    }
    const lines = roles.map(role => `  - ${policies[role as keyof typeof policies]}\n`)
    return `policies:\n${lines.join('')}`
  }

  const ask = (role: string) => guarded.get('/api/orders?sort=id', { as: { tenantId: 't1', role } })

  test('each role gets the results that the policy allows, and none after the policy was tightened', async () => {
    await execute(database.adminUrl, "update orders set status = 'closed' where id = 3")
    const clerk = (await expectKept(() => ask('clerk'))).json
    const viewer = (await expectKept(() => ask('viewer'))).json
    expect(clerk.data).toEqual([
      { id: 1, status: 'open' },
      { id: 3, status: 'closed' },
    ])
    expect(viewer.data).toEqual([{ id: 1 }])
    await writeFile(file, printPolicies(['clerk']))
    await guarded.gateway.reload()
    expect((await ask('viewer')).status).toBe(403)
    await expectKept(() => ask('clerk'))
  })
})

describe('a write is visible to the next read', () => {
  const orders = () => gateway.get('/api/orders?sort=id')

  test.each([
    ['POST', '/api/orders', { id: 7 }, {}],
    ['POST', '/api/orders', [{ id: 7 }, { id: 8 }], {}],
    ['POST', '/api/orders', { id: 1, status: 'x' }, { 'X-Upsert': 'true' }],
    ['PATCH', '/api/orders/1', { status: 'x' }, {}],
    ['PATCH', '/api/orders?status=eq.open', { status: 'x' }, {}],
    ['DELETE', '/api/orders/1', null, {}],
    ['DELETE', '/api/orders?status=eq.open', null, {}],
    ['POST', '/api/rpc/close_all', [], {}],
  ])('%s %s %o', async (method, path, body, headers) => {
    const before = await expectKept(orders)
    const written = await send(method, path, body, headers)
    expect(written.status, written.text).toBeLessThan(300)
    expect(written.headers.has('x-cache')).toBe(false)
    const after = await orders()
    expect([cacheOf(after), after.text === before.text]).toEqual(['MISS', false])
    await expectKeptNow(orders)
  })

  test.each([
    'add orders fields id values 7',
    "set orders values status = 'x' where id = 1",
    'del orders where id = 1',
    'with gone as (del orders where id = 1 returning id) get gone',
  ])('%s', async text => {
    const before = await expectKept(orders)
    expect((await query(text)).status).toBe(200)
    expect((await orders()).text).not.toBe(before.text)
  })

  test('through embedded rows, subqueries, views and policies', async () => {
    const reads: readonly (readonly [() => Promise<Reply>, string])[] = [
      [() => gateway.get('/api/orders?expand=customer'), '/api/customers/1'],
      [() => query("get orders where customer_id in (get customers fields id where name = 'Ann')"), '/api/customers/1'],
    ]
    for (const [ask, path] of reads) {
      await expectKept(ask)
      expect((await send('PATCH', path, { name: `now ${path.length}` })).status).toBe(200)
      expect(cacheOf(await ask())).toBe('MISS')
    }
    await expectKept(() => gateway.get('/api/recent'))
    await send('PATCH', '/api/orders/1', { status: 'y' })
    expect((await gateway.get('/api/recent?select=status')).text).toContain('"y"')
    for (const path of ['/api/guarded', '/api/trusted']) {
      expect((await expectKept(() => gateway.get(path))).json.count).toBe(1)
    }
    expect((await send('PATCH', '/api/members/t1', { active: false })).status).toBe(200)
    for (const path of ['/api/guarded', '/api/trusted']) expect((await gateway.get(path)).json.count, path).toBe(0)
  })

  test('if it goes through a view', async () => {
    await expectKept(orders)
    expect((await send('PATCH', '/api/recent?id=eq.1', { status: 'z' })).status).toBe(200)
    expect((await orders()).text).toContain('"z"')
  })

  test('if foreign keys cascade it through two tables', async () => {
    const lines = () => gateway.get('/api/lines')
    expect((await expectKept(lines)).json.data[0].order_id).toBe(1)
    await expectKept(orders)
    expect((await send('DELETE', '/api/customers/1', null)).status).toBe(204)
    expect((await orders()).json.count).toBe(0)
    expect((await lines()).json.data[0].order_id).toBe(null)
  })

  test('if a trigger writes to another table', async () => {
    const noted = () => gateway.get('/api/noted')
    expect((await expectKept(noted)).json.count).toBe(0)
    expect((await send('POST', '/api/watched', { id: 5 })).status).toBe(201)
    expect((await noted()).json.count).toBe(1)
  })

  test('and leaves unrelated results cached', async () => {
    const customers = () => gateway.get('/api/customers')
    await expectKept(customers)
    await send('PATCH', '/api/orders/1', { status: 'x' })
    expect(cacheOf(await customers())).toBe('HIT')
  })

  test('even if it is rejected', async () => {
    await expectKept(orders)
    expect((await send('POST', '/api/orders', { id: 1 })).status).toBe(400)
    await expectKept(orders)
  })
})

async function expectKeptNow(ask: () => Promise<Reply>): Promise<void> {
  expect(cacheOf(await ask())).toBe('HIT')
}

describe('changes that the gateway cannot see', () => {
  test('made directly in the database are visible after SIGHUP', async () => {
    const orders = () => gateway.get('/api/orders')
    const before = await expectKept(orders)
    await execute(database.adminUrl, "update orders set status = 'elsewhere'")
    expect((await orders()).text).toBe(before.text)
    await gateway.gateway.reload()
    expect((await orders()).text).toContain('elsewhere')
  })

  test('to policies count as schema changes', async () => {
    const members = () => gateway.get('/api/guarded')
    expect((await expectKept(members)).json.count).toBe(1)
    await execute(database.adminUrl, 'alter policy own on guarded using (false)')
    const versionBefore = (await gateway.get('/health/internal')).json.schema.version
    await gateway.gateway.reload()
    expect((await gateway.get('/health/internal')).json.schema.version).toBe(versionBefore + 1)
    expect((await members()).json.count).toBe(0)
    await execute(
      database.adminUrl,
      'alter policy own on guarded using (tenant_id in (select tenant_id from members where active))',
    )
  })
})

test('are visible when the entry expires', async () => {
  const brief = await asking({ toml: 'cache.enabled = true\ncache.ttl_secs = 1' })
  try {
    await brief.get('/api/orders')
    await execute(database.adminUrl, "update orders set status = 'late'")
    while (!(await brief.get('/api/orders')).text.includes('late'));
  } finally {
    await brief.close()
  }
})

test('do not affect max_entries, whose use /health/internal and /metrics report', async () => {
  const small = await asking({ toml: 'cache.enabled = true\ncache.max_entries = 3' })
  try {
    for (let id = 1; id <= 5; id++) await small.get(`/api/orders?id=eq.${id}`)
    await small.get('/api/orders?id=eq.5')
    const { cache } = (await small.get('/health/internal')).json
    expect(cache).toEqual({
      ...{ enabled: true, hits: 1, misses: 5, entries: 3, max_entries: 3 },
      ...{ weighted_size: expect.any(Number), max_weighted_size: 128 * 1024 * 1024 },
    })
    const metrics = parseExposition((await small.get('/metrics')).text)
    const valueIn = (name: string) => metrics.get(name)?.samples[0]?.value
    expect(valueIn('svc_cache_hits_total')).toBe(1)
    expect(valueIn('svc_cache_misses_total')).toBe(5)
    expect(valueIn('svc_cache_entries')).toBe(3)
    expect(valueIn('svc_cache_weighted_size_bytes')).toBe(cache.weighted_size)
    expect(cache.weighted_size).toBeGreaterThan(3 * 300)
  } finally {
    await small.close()
  }
})

test('a tenant at its limit is rejected even if the result is cached', async () => {
  const gated = await asking({ toml: 'cache.enabled = true\ntenant_max_concurrent = 1' })
  try {
    await gated.get('/api/customers')
    expect(cacheOf(await gated.get('/api/customers'))).toBe('HIT')
    const client = await holdOrders()
    try {
      const waiting = gated.get('/api/orders')
      await client.untilWaited()
      expect((await gated.get('/api/customers')).status).toBe(429)
      expect((await gated.get('/api/customers', { as: { tenantId: 't2' } })).status).toBe(200)
      await client.release()
      expect((await waiting).status).toBe(200)
    } finally {
      await client.end()
    }
    expect(cacheOf(await gated.get('/api/customers'))).toBe('HIT')
  } finally {
    await gated.close()
  }
})

test('when disabled, which is the default, every read is a MISS', async () => {
  const plain = await asking({})
  try {
    for (let i = 0; i < 2; i++) expect(cacheOf(await plain.get('/api/orders'))).toBe('MISS')
    expect((await plain.get('/health/internal')).json.cache).toEqual({ enabled: false })
    expect(parseExposition((await plain.get('/metrics')).text).get('svc_cache_misses_total')?.samples[0]?.value).toBe(0)
  } finally {
    await plain.close()
  }
})

async function hitsSoFar(): Promise<number> {
  return (await gateway.get('/health/internal')).json.cache.hits
}

/** A transaction that locks the orders for all readers. */
async function holdOrders() {
  const client = new pg.Client({ connectionString: database.adminUrl })
  client.on('error', () => {})
  await client.connect()
  await client.query('begin; lock table orders in access exclusive mode')
  return {
    async untilWaited() {
      const waiting = `select count(*)::int as n from pg_locks where relation = 'orders'::regclass and not granted`
      while ((await client.query(waiting)).rows[0].n === 0);
    },
    release: () => client.query('rollback'),
    end: () => client.end(),
  }
}
