/**
 * After `svc install`, every gateway invalidates cached results from captured tables as soon as it has read
 * the change log, for writes of any client: another gateway, `psql`, a cascade. A gateway that cannot read
 * the log serves nothing from its cache.
 */
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute, privateServer } from '../support/postgres.ts'

let tokens: readonly string[] = []
const server = databaseFixture(
  privateServer,
  `create table customers (id int primary key, name text);
   create table orders (id int primary key, customer_id int references customers on delete cascade, note text);
   create table parts (id int, note text, primary key (id)) partition by range (id);
   create table parts_low partition of parts for values from (0) to (100);
   create table plain (id int primary key, note text);
   create table members (name text primary key);
   create view named with (security_invoker) as select o.id, c.name from orders o join customers c
     on c.id = o.customer_id;
   create function is_member() returns boolean stable language sql as $$ select exists (select from members) $$;
   create table guarded (id int primary key);
   alter table guarded enable row level security; create policy own on guarded using (is_member());
   grant select, insert, update, delete on all tables in schema public to app`,
)

beforeAll(async () => {
  await installed(
    server,
    ['customers', 'orders', 'parts', 'members', 'guarded'].map(table => ({ schema: 'public', table })),
  )
})
const toml = 'cache.enabled = true\ncache.ttl_secs = 86400\nschema_poll_secs = 86400'
const gateways = [gatewayFixture(server, { toml }), gatewayFixture(server, { toml })]
beforeAll(async () => {
  // Each token has its own cache entries, so all reads use the same one.
  tokens = await Promise.all(gateways.map(gateway => gateway.token({ tenantId: 't1' })))
})

async function read(of: number, path: string) {
  const reply = await gateways[of]?.get(path, { as: null, headers: { Authorization: `Bearer ${tokens[of]}` } })
  return { status: reply?.status, text: reply?.text ?? '', cache: reply?.headers.get('x-cache') }
}

/** Repeats the request until the condition holds. Each response has passed through the cache. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 5))
}

/** Reads until the gateway answers from its cache. */
const keep = (of: number, path: string) => until(async () => (await read(of, path)).cache === 'HIT')

const admin = (sql: string) => execute(server.adminUrl, sql)

beforeEach(async () => {
  await admin(`truncate customers, orders, parts, plain, members, guarded;
    insert into customers values (1, 'Ann'); insert into orders values (1, 1, 'first');
      insert into parts values (1, 'first');
    insert into members values ('t1'); insert into guarded values (1)`)
})

test.each([
  ['a row that psql changes', '/api/customers', `update customers set name = 'Eve'`, 'Eve'],
  ['a row that psql inserts', '/api/customers', `insert into customers values (2, 'Bob')`, 'Bob'],
  ['a cascade', '/api/orders', 'delete from customers', '"data":[]'],
  ['TRUNCATE', '/api/orders', 'truncate orders', '"data":[]'],
  [
    'many rows at once',
    '/api/orders',
    `insert into orders select n, 1, 'bulk' from generate_series(2, 3000) n`,
    'bulk',
  ],
  ['a view’s table', '/api/named', `update customers set name = 'Eve'`, 'Eve'],
  ['an embedded table', '/api/orders?expand=customers', `update customers set name = 'Eve'`, 'Eve'],
  ['a partition', '/api/parts', `update parts_low set note = 'second'`, 'second'],
  ['a table that a policy’s function reads', '/api/guarded', 'delete from members', '"data":[]'],
])('%s invalidates results in every gateway', async (_, path, change, seen) => {
  // Results cached by the previous test can remain for a moment.
  const isKept = async (of: number) => {
    const { cache, text } = await read(of, path)
    return cache === 'HIT' && !text.includes(seen)
  }
  for (const of of [0, 1]) await until(() => isKept(of))
  await admin(change)
  for (const of of [0, 1]) await until(async () => (await read(of, path)).text.includes(seen))
  for (const of of [0, 1]) await keep(of, path)
  expect((await read(0, path)).text).toContain(seen)
})

test('a write through one gateway reaches the other, and an uncaptured table stays cached up to max_age', async () => {
  for (const path of ['/api/customers', '/api/plain']) await keep(1, path)
  const body = (of: unknown) => ({
    ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(of) },
  })
  expect((await gateways[0]?.get('/api/plain', body({ id: 1, note: 'not seen' })))?.status).toBe(201)
  expect((await gateways[0]?.get('/api/customers', body({ id: 7, name: 'Zoe' })))?.status).toBe(201)
  await until(async () => (await read(1, '/api/customers')).text.includes('Zoe'))
  expect(await read(1, '/api/plain')).toMatchObject({ cache: 'HIT', text: expect.not.stringContaining('not seen') })
})

test('a change is visible within the bound, which a metric measures', async () => {
  await keep(0, '/api/customers')
  const delays: number[] = []
  for (let n = 0; n < 20; n++) {
    await keep(0, '/api/customers')
    await admin(`update customers set name = 'name ${n}.'`)
    const committed = performance.now()
    await until(async () => (await read(0, '/api/customers')).text.includes(`name ${n}.`))
    delays.push(performance.now() - committed)
  }
  process.stderr.write(
    `cache-log: seen after ${Math.round(delays.reduce((a, b) => a + b, 0) / delays.length)} ms on average, ` +
      `${Math.round(Math.max(...delays))} ms at most\n`,
  )
  const metrics = (await gateways[0]?.get('/metrics', { as: null }))?.text
  expect(metrics).toMatch(/^svc_cache_log_age_seconds [0-9.e-]+$/m)
})

test('the cache is not used while the log cannot be read, and is used again afterwards', async () => {
  await keep(0, '/api/customers')
  await admin('revoke select on svc.change from app_feed')
  // One miss can be due to a late entry for the rows of the previous test; the next read would be a hit.
  const isMissed = async () => (await read(0, '/api/customers')).cache === 'MISS'
  await until(async () => (await isMissed()) && (await isMissed()))
  await admin(`update customers set name = 'unheard'`)
  expect(await read(0, '/api/customers')).toMatchObject({ cache: 'MISS', text: expect.stringContaining('unheard') })
  await admin('grant select on svc.change to app_feed')
  await keep(0, '/api/customers')
  expect((await read(0, '/api/customers')).text).toContain('unheard')
})

test('changes made while the feed has no database connection are not missed', async () => {
  await keep(0, '/api/customers')
  await admin(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app_feed';
    update customers set name = 'meanwhile'`)
  await until(async () => (await read(0, '/api/customers')).text.includes('meanwhile'))
})

test('one connection of the feed role is sufficient (feed_max_connections), and a metric counts it', async () => {
  const own = await testGateway(server.url, { toml: 'feed_max_connections = 1\ncache.enabled = true' })
  try {
    const headers = { Authorization: `Bearer ${await own.token({ tenantId: 't1' })}` }
    const order = () => own.get('/api/orders/1', { as: null, headers })
    await until(async () => (await order()).headers.get('x-cache') === 'HIT')
    await admin(`update orders set note = 'second' where id = 1`)
    await until(async () => (await order()).json.data.note === 'second')
    expect((await own.get('/metrics', { as: null })).text).toMatch(/^svc_feed_connections 1$/m)
  } finally {
    await own.close()
  }
})
