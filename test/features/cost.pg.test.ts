/**
 * docs/reference/reading.md#cost-guard: a read that PostgreSQL estimates above `explain_max_cost` or
 * `explain_max_rows` is answered with 422 and advice, and never executed. Estimates are cached by statement
 * and role; near a limit the request's own values are estimated.
 */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { clientFixture, databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'

/**
 * Functions that report when they are planned and when they are executed, with the first word of the
 * statement.
 */
const TABLES = `
create table shops (id int primary key, tenant_id text not null, name text not null);
create table sales (
  id int primary key, tenant_id text not null, shop_id int not null references shops, k int not null,
    note text not null, "Odd name" int not null
);
insert into shops select n, 't1', 'shop ' || n from generate_series(1, 3) n;
insert into sales select n, 't1', 1, n % 100, 'note ' || n, n from generate_series(1, 20123) n;
create index sales_k on sales (k, note);
create index sales_odd on sales ("Odd name") where k > 5;
analyze;
do $$
declare name text;
begin
  foreach name in array array['shops', 'sales'] loop
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    execute format(
      'create policy own on %I using (tenant_id = (select current_setting(''app.current_tenant_id'', true)))', name);
  end loop;
end $$;
create table closed (id int primary key);

create function told(what text) returns void language plpgsql volatile as $$
begin perform pg_notify('seen', what || ' ' || split_part(current_query(), ' ', 1) || ' ' || clock_timestamp()); end $$;
create function planned() returns boolean language plpgsql immutable as $$ begin perform told('planned');
  return true; end $$;
create function ran() returns int language plpgsql volatile as $$ begin perform told('ran'); return 1; end $$;
create view watched with (security_invoker = true) as select id, shop_id, k, ran() as ran from sales where planned();

create function waited() returns boolean language plpgsql immutable as $$
begin perform told('planned'); perform pg_advisory_xact_lock_shared(7); return true; end $$;
create view awaited with (security_invoker = true) as select id, k, note, shop_id, ran() as ran from sales
  where waited();

create function dawdled() returns boolean language plpgsql immutable as $$ begin perform pg_sleep(1.2);
  return true; end $$;
create view dawdling with (security_invoker = true) as select id from shops where dawdled();

create function everything() returns bigint language sql stable as 'select count(*) from sales';
grant select, insert, update, delete on shops, sales, watched, awaited, dawdling to app;
`

const LIMITS = `
explain_max_cost = 100_000
explain_max_rows = 5_000
[gateway.role_overrides.thrifty]
explain_max_cost = 100
explain_max_rows = 0
[gateway.role_overrides.rich]
explain_max_rows = 1_000_000
[gateway.role_overrides.free]
explain_max_cost = 0
explain_max_rows = 0
[gateway.role_overrides.nothing]
explain_max_cost = 0.001
[gateway.role_overrides.__proto__]
explain_max_cost = 0.001
`

const database = databaseFixture()
let heard: string[] = []
beforeAll(async () => {
  await execute(database.adminUrl, TABLES)
})
const gateway = gatewayFixture(database, () => ({ toml: LIMITS }))
const activity = fixture(() => watchActivity(database.adminUrl))
const admin = clientFixture(() => database.adminUrl)

beforeAll(async () => {
  admin.on('notification', ({ payload = '' }) => heard.push(payload))
  await admin.query('listen seen')
})

beforeEach(async () => void (await told()))

/**
 * The statements planned and executed since the last call: `planned EXPLAIN`, `planned SELECT`, `ran SELECT`.
 */
async function told(): Promise<readonly string[]> {
  // Notifications arrive in commit order, so after this one all earlier ones have arrived.
  await admin.query("notify seen, 'now'")
  while (heard.at(-1) !== 'now') await admin.query('select 1')
  const words = heard.slice(0, -1).map(payload => payload.split(' ').slice(0, 2).join(' '))
  heard = []
  return words
}

const estimates = async () => (await told()).filter(event => event === 'planned EXPLAIN').length

const as = (role: string, scopes: readonly string[] = []): AskOptions => ({
  as: { tenantId: 't1', role, scopes: [...scopes] },
})

const query = (text: string, role = '') =>
  gateway.get('/api/_query', { ...as(role), method: 'POST', body: JSON.stringify({ query: text }), headers: JSON_TYPE })

const JSON_TYPE = { 'Content-Type': 'application/json' }

function expectRefused(
  reply: Reply,
): { readonly [figure: string]: number } & { readonly suggestions: readonly string[] } {
  expect(reply.status, reply.text).toBe(422)
  expect(reply.json.code).toBe('QUERY_TOO_EXPENSIVE')
  return JSON.parse(reply.json.details)
}

describe('a read above a limit', () => {
  test('is rejected by its rows: those that the database has to produce, not those of the page', async () => {
    expectRefused(await gateway.get('/api/sales?limit=5'))
    expect((await gateway.get('/api/sales?k=3&limit=5')).json.count).toBe(5)
  })
  test('is rejected by its cost', async () => {
    const { estimated_cost: cost = 0, ...others } = expectRefused(
      await gateway.get('/api/sales?note=note%201', as('thrifty', ['svc:explain'])),
    )
    expect(cost).toBeGreaterThan(100)
    expect(others).toMatchObject({ cost_limit: 100, row_limit: 0 })
    expect((await gateway.get('/api/sales/5', as('thrifty'))).status).toBe(200)
  })
  test('is answered in the usual envelope, with details that are valid JSON in a string', async () => {
    const reply = await gateway.get('/api/sales?limit=5')
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const { code, message, details, error, ...others } = reply.json
    expect(others).toEqual({})
    expect(code).toBe('QUERY_TOO_EXPENSIVE')
    expect(error).toEqual({ code, message, status: 422, request_id: reply.headers.get('x-request-id'), details })
    expect(message).toBe(
      'the query is too expensive: the estimate of PostgreSQL exceeds explain_max_cost or explain_max_rows',
    )
    expect(JSON.parse(details)).toEqual({
      estimated_cost: 1_000_000,
      cost_limit: 100_000,
      estimated_rows: 10_000,
      row_limit: 5_000,
      suggestions: expect.arrayContaining([expect.stringContaining('add a filter')]),
    })
    expect(Object.keys(JSON.parse(details))).toEqual([
      'estimated_cost',
      'cost_limit',
      'estimated_rows',
      'row_limit',
      'suggestions',
    ])
  })
  test('reveals the figures and the exceeded limit to callers with the scope svc:explain', async () => {
    const reply = await gateway.get('/api/sales', as('', ['orders:read', 'svc:explain']))
    expect(expectRefused(reply).estimated_rows).toBe(20_123)
    expect(reply.json.message).toContain('about 20123 rows would have to be read, more than 5000 (explain_max_rows)')
  })
  test('gets the same response for other callers, whichever limit is exceeded and by how much', async () => {
    const told = (reply: Reply) => {
      const { suggestions: _, ...figures } = expectRefused(reply)
      return { figures, message: reply.json.message }
    }
    const byRows = told(await gateway.get('/api/sales?limit=5'))
    // 20 000 rows 20 000 times exceed both limits.
    const byBoth = told(await query('get sales cross join sales other fields count(*) as n'))
    expect(byBoth).toEqual(byRows)
    const byCost = told(await gateway.get('/api/sales?note=note%201', as('thrifty')))
    expect(byCost.figures).toEqual({ estimated_cost: 1_000, cost_limit: 100, estimated_rows: 0, row_limit: 0 })
    expect(byCost.message).toBe(byRows.message)
  })
  test('that is an aggregate gets no advice that does not apply to aggregates', async () => {
    for (const path of ['/api/sales/aggregate?fn=count', '/api/sales/aggregate?fn=sum&column=k&group_by=shop_id']) {
      const { suggestions } = expectRefused(await gateway.get(path))
      expect(suggestions).toEqual([
        'add a filter: every row has to be read',
        'an aggregate, a count or a distinct reads every row that matches the filters',
      ])
    }
  })
  test('gets advice that names existing and missing indexes, and nothing from policies', async () => {
    const { suggestions } = expectRefused(await gateway.get('/api/sales?k=gte.1&note=gte.a&sort=-Odd%20name'))
    expect(suggestions).toEqual([
      'narrow the filters, or add one, so that fewer rows have to be read',
      'the index sales_k on sales(k, note) exists: a narrower filter on k can use it',
      'an index on sales(note) would help to filter by this column',
      'an index on sales("Odd name") would help to sort by this column',
    ])
  })
  test('is not executed', async () => {
    expectRefused(await gateway.get('/api/watched?id=gte.0'))
    expectRefused(await gateway.get('/api/watched?id=gte.0&stream=true'))
    expectRefused(await query('get watched where id >= 1'))
    expect(new Set(await told())).toEqual(new Set(['planned EXPLAIN']))
    expect((await gateway.get('/api/watched?id=5')).status).toBe(200)
    expect(await told()).toContain('ran SELECT')
  })
})

describe('every read is estimated', () => {
  test.each([
    ['a list', '/api/sales?limit=1'],
    ['a stream', '/api/sales?stream=true&limit=1'],
    ['an aggregate', '/api/sales/aggregate?fn=count'],
    ['children', '/api/shops/1/sales?limit=1'],
    ['a stream of children', '/api/shops/1/sales?stream=true'],
    ['rows that are embedded', '/api/shops?expand=nested:sales'],
    ['what is explained by running it', '/api/sales/_explain'],
  ])('in the form %s', async (_, path) => {
    expectRefused(await gateway.get(path))
    const free = await gateway.get(path, as('free'))
    expect(free.status, free.text).toBe(200)
  })
  test('including the total of a page, and the parent of children', async () => {
    const total = { Prefer: 'count=exact' }
    expect((await gateway.get('/api/sales?id=lt.10&limit=1', { headers: total })).json.total).toBe(9)
    expectRefused(await gateway.get('/api/shops?id=1', as('nothing')))
    expectRefused(await gateway.get('/api/shops/1', as('nothing')))
    expectRefused(await gateway.get('/api/shops/99/sales', as('nothing')))
    expect((await gateway.get('/api/shops/99/sales?k=1')).status).toBe(404)
  })
  test.each(['get sales limit 3', 'count sales', 'export sales', 'get shops nest many sales'])('%s', async text => {
    const refused = await query(text)
    expectRefused(refused)
    const free = await query(text, 'free')
    expect(free.status, free.text).toBe(200)
  })
  test('except a plan, which is not executed', async () => {
    expect((await query('explain get sales', 'nothing')).status).toBe(200)
  })
  test('and writes and calls are not', async () => {
    const writing = { ...as('nothing'), headers: JSON_TYPE }
    const created = await gateway.get('/api/shops', {
      ...writing,
      method: 'POST',
      body: '{"id": 10, "tenant_id": "t1", "name": "a"}',
    })
    expect(created.status, created.text).toBe(201)
    const again = await gateway.get('/api/shops', {
      ...writing,
      headers: { ...JSON_TYPE, 'X-Upsert': 'ignore' },
      method: 'POST',
      body: '{"id": 10, "tenant_id": "t1", "name": "a"}',
    })
    expect(again.status, again.text).toBe(200)
    const changed = await gateway.get('/api/sales?note=note%207', {
      ...writing,
      method: 'PATCH',
      body: '{"note": "note 7"}',
    })
    expect(changed.status, changed.text).toBe(200)
    expect((await query('set shops values name = "b" where id = 10', 'nothing')).json.count).toBe(1)
    expect((await query('with w as (del shops where id = 10 returning id) get w', 'nothing')).status).toBe(200)
    const called = await gateway.get('/api/rpc/everything', { ...writing, method: 'POST' })
    expect(called.json.data, called.text).toBe(20_123)
  })
})

describe('limits for a role', () => {
  test('replace the general limits where they are set', async () => {
    expect((await gateway.get('/api/sales?limit=1', as('rich'))).status).toBe(200)
    expectRefused(await gateway.get('/api/sales?limit=1', as('clerk')))
    expect((await gateway.get('/api/shops', as('clerk'))).status).toBe(200)
  })
  test('apply to the exact role name, whatever it contains', async () => {
    expectRefused(await gateway.get('/api/shops', as('__proto__')))
    expect((await gateway.get('/api/shops', as('constructor'))).status).toBe(200)
    expectRefused(await gateway.get('/api/sales', as('constructor')))
  })
  test('of 0 disable the estimate', async () => {
    expect((await gateway.get('/api/watched?id=gte.20100', as('free'))).status).toBe(200)
    expect(await estimates()).toBe(0)
    const off = await testGateway(database.url, { toml: 'explain_max_cost = 0\nexplain_max_rows = 0' })
    try {
      expect((await off.get('/api/watched?limit=1')).status).toBe(200)
      expect(await estimates()).toBe(0)
    } finally {
      await off.close()
    }
  })
})

describe('an estimate', () => {
  test('far below the limits is cached for all values of the query', async () => {
    const ask = async (value: string, role: string) =>
      expect((await gateway.get(`/api/watched?id=${value}&select=id`, as(role))).status).toBe(200)
    await ask('5', 'clerk')
    expect(await estimates()).toBe(1)
    for (const value of ['5', '6', '7']) await ask(value, 'clerk')
    expect(await estimates()).toBe(0)
    await ask('5', 'owner')
    expect(await estimates()).toBe(1)
  })
  test('near a limit is repeated with the values of the request', async () => {
    const ask = (below: number) => gateway.get(`/api/watched?k=lt.${below}&limit=2&select=id`, as('clerk'))
    expect((await ask(10)).status).toBe(200)
    expect(await estimates()).toBe(1)
    expect((await ask(10)).status).toBe(200)
    expect(await estimates()).toBe(1)
    expectRefused(await ask(90))
    expect((await ask(9)).status).toBe(200)
    expect((await ask(0)).status).toBe(200)
    expectRefused(await ask(90))
    expect(await estimates()).toBe(4)
  })
  test('of a query text is cached as well, whatever its literals', async () => {
    expect((await query('get watched fields id where id = 5')).status).toBe(200)
    expect((await query('get watched fields id where id = 6')).status).toBe(200)
    expect(await estimates()).toBe(1)
  })
  test('is repeated for each value that is passed to a set-returning function', async () => {
    const series = (stop: number, how = 'get shops fields generate_series(1, :n) as n where id = 1') =>
      gateway.get('/api/_query', {
        ...as('clerk'),
        method: 'POST',
        headers: JSON_TYPE,
        body: JSON.stringify({ query: how, parameters: { n: stop } }),
      })
    expect((await series(5)).json.count).toBe(5)
    expectRefused(await series(900_000))
    expect((await series(5)).json.count).toBe(5)
    // The column of a subquery is replaced by the parameter.
    const through = 'get (get shops fields :n as n where id = 1) d fields generate_series(1, n) as n'
    expect((await series(5, through)).json.count).toBe(5)
    expectRefused(await series(900_000, through))
    // A literal is also a parameter of the statement.
    expect((await query('get shops fields generate_series(1, 5) as n where id = 1', 'clerk')).json.count).toBe(5)
    expectRefused(await query('get shops fields generate_series(1, 900000) as n where id = 1', 'clerk'))
  })
  test('that fails is reported like the error of the read', async () => {
    for (const path of [
      'sales?k=x',
      'sales/x',
      'sales?k=1e99',
      'shops/x/sales',
      'sales?k=x&stream=true',
      'closed',
      'closed/1',
    ]) {
      const { request_id: _, ...guarded } = (await gateway.get(`/api/${path}`)).json.error
      const { request_id: __, ...free } = (await gateway.get(`/api/${path}`, as('free'))).json.error
      expect(guarded, path).toEqual(free)
    }
    expect((await gateway.get('/api/sales?k=x')).json.error).toMatchObject({
      code: 'PARSE_ERROR',
      message: expect.stringContaining('column "k" is integer and cannot hold "x"'),
    })
  })
})

test('shares one statement timeout with the read that follows', async () => {
  const hasty = await testGateway(database.url, { toml: 'statement_timeout_ms = 2000' })
  try {
    // Planning takes 1.2 s, once for the estimate and once for the execution.
    const first = await hasty.get('/api/dawdling')
    expect([first.status, first.json.error?.code]).toEqual([408, 'TIMEOUT'])
    expect(first.json.error.message).toContain('statement_timeout_ms')
  } finally {
    await hasty.close()
  }
})

describe('during an estimate', () => {
  beforeEach(async () => void (await admin.query('select pg_advisory_lock(7)')))
  const release = () => admin.query('select pg_advisory_unlock(7)')
  const RUNNING =
    'select count(*)::int from pg_stat_activity ' +
    "where datname = current_database() and query like 'EXPLAIN%' and state = 'active'"
  const BEGAN =
    'select query_start from pg_stat_activity ' +
    "where datname = current_database() and query like 'EXPLAIN%' and state = 'active'"
  const token = () => gateway.token({ tenantId: 't1' })

  test('other requests of the same shape wait for it', async () => {
    const first = gateway.get('/api/awaited?id=1&select=id')
    await activity.until(RUNNING, value => value === 1)
    const others = Array.from({ length: 12 }, (_, n) => gateway.get(`/api/awaited?id=${n + 2}&select=id`))
    // This request is estimated after the others, so they have arrived.
    await gateway.get('/api/shops')
    await gateway.get('/api/shops')
    await release()
    for (const reply of await Promise.all([first, ...others])) expect(reply.json.count, reply.text).toBe(1)
    expect(await estimates()).toBe(1)
  })
  test('a rejected value concerns only its own request', async () => {
    const [bad, good] = await Promise.all([
      gateway.get('/api/sales?shop_id=x&id=1&select=k'),
      gateway.get('/api/sales?shop_id=1&id=1&select=k'),
    ])
    await release()
    expect([bad.status, good.status]).toEqual([400, 200])
  })
  test('a client that disconnects ends it', async () => {
    const headers = { Authorization: `Bearer ${await token()}` }
    for (const path of ['/api/awaited?id=1&select=k', '/api/awaited?id=1&select=note&stream=true']) {
      const leaving = new AbortController()
      const asked = fetch(gateway.url + path, { headers, signal: leaving.signal }).catch(() => 'gone')
      await activity.started(/^EXPLAIN/)
      leaving.abort()
      expect(await asked).toBe('gone')
      await activity.gone(/^EXPLAIN/)
    }
    await release()
    expect(await told()).not.toContain('ran SELECT')
  })
  test('a client that disconnects does not end it if another request waits for it', async () => {
    const leaving = new AbortController()
    const headers = { Authorization: `Bearer ${await token()}` }
    const path = '/api/awaited?id=1&select=id,k'
    const first = fetch(gateway.url + path, { headers, signal: leaving.signal }).catch(() => 'gone')
    await activity.started(/^EXPLAIN/)
    const second = gateway.get(path)
    await gateway.get('/api/shops')
    const began = await activity.value(BEGAN)
    leaving.abort()
    expect(await first).toBe('gone')
    // Another client disconnects and its statement ends, so earlier cancellations have been processed.
    const another = new AbortController()
    const third = fetch(`${gateway.url}/api/awaited?id=1&select=k,id`, { headers, signal: another.signal }).catch(
      () => 'gone',
    )
    await activity.until(RUNNING, value => value === 2)
    another.abort()
    expect(await third).toBe('gone')
    await activity.until(RUNNING, value => value === 1)
    expect(await activity.value(BEGAN)).toEqual(began)
    await release()
    expect((await second).json.data).toEqual([{ id: 1, k: 1 }])
  })
  test('the statement timeout applies', async () => {
    const hasty = await testGateway(database.url, { toml: 'statement_timeout_ms = 100' })
    try {
      expect((await hasty.get('/api/awaited?id=1')).json.error).toMatchObject({ code: 'TIMEOUT', status: 408 })
      expect(await told()).toEqual([])
    } finally {
      await release()
      await hasty.close()
    }
  })
})
