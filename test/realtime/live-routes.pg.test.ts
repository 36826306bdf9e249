/**
 * A live query on captured tables runs again only after a change that may concern its caller
 * (docs/guides/realtime.md#capture-sources).
 */
import { beforeAll, expect, test, vi } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'
import { testSince } from '../support/test-since.ts'

const OWN = `tenant = current_setting('app.current_tenant_id', true)`
const SECURED = ['items', 'notes', 'parents', 'children']

const database = databaseFixture(`
  create table items (id int primary key, tenant text not null, title text);
  create table notes (id int primary key, item int, tenant text not null);
  create table parents (id int, tenant text not null);
  create table children () inherits (parents);
  create table shared (id int primary key);
  ${SECURED.map(
    name => `alter table ${name} enable row level security;
    alter table ${name} force row level security`,
  ).join(';')};
  create policy own on items using (${OWN});
  create policy own on notes using (${OWN} and item in (select id from items));
  create policy all_rows on parents using (true);
  create policy own on children using (${OWN});
  create view listed with (security_invoker) as select id, title from items;
  create view counted as select id, tenant from items;
  insert into items values (1, 't1', 'a'), (2, 't2', 'b');
  grant select, insert, update, delete on all tables in schema public to app
`)

beforeAll(() =>
  installed(
    database,
    [...SECURED, 'shared'].map(table => ({ schema: 'public', table })),
  ),
)
const gateway = gatewayFixture(database, { toml: 'exposed_views = ["counted"]' })

async function open(svc: string, table: string, tenantId: string): Promise<TestSocket> {
  const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
  socket.say({ type: 'live_query', id: 'l', svc, table, interval_ms: 100 })
  await socket.nextOf('notification')
  return socket
}

async function stats(): Promise<{ readonly live_queries_driven: number; readonly live_runs: number }> {
  return (await gateway.get('/health/internal')).json.realtime
}

/** The number of runs, as soon as it has stayed the same for several intervals of a query. */
async function runsAtRest(): Promise<number> {
  let runs = -1
  return vi.waitFor(
    async () => {
      const before = runs
      runs = (await stats()).live_runs
      expect(runs).toBe(before)
      return runs
    },
    { interval: 250, timeout: 10_000 },
  )
}

/** Counts the runs of a query of two tenants that a statement causes. */
async function withTwoTenants(
  { svc, table }: { readonly svc: string; readonly table: string },
  work: (runsAfter: (statement: string) => Promise<number>) => Promise<void>,
): Promise<void> {
  const sockets = [await open(svc, table, 't1'), await open(svc, table, 't2')]
  try {
    await vi.waitFor(async () => expect((await stats()).live_queries_driven).toBe(2))
    await work(async statement => {
      const before = await runsAtRest()
      await execute(database.adminUrl, statement)
      await vi.waitFor(async () => expect((await stats()).live_runs).toBeGreaterThan(before), { timeout: 20_000 })
      return (await runsAtRest()) - before
    })
  } finally {
    await Promise.all(sockets.map(socket => socket.close()))
    await vi.waitFor(async () => expect((await stats()).live_queries_driven).toBe(0))
  }
}

let free = 100

const insertInto = (table: string, tenant: string) =>
  `insert into ${table} (id, tenant) values (${++free}, '${tenant}')`

async function costsNothing(query: { readonly svc: string; readonly table: string }): Promise<void> {
  await withTwoTenants(query, async runsAfter => {
    // The routing values are read after the first result.
    await vi.waitFor(async () => expect(await runsAfter(insertInto('items', 't2'))).toBe(1), { timeout: 20_000 })
    expect(await runsAfter(`update items set title = 'c' where tenant = 't2'`)).toBe(1)
    expect(await runsAfter(`delete from items where tenant = 't2' and id > 100`)).toBe(1)
    // The row was visible to one and is visible to the other.
    expect(await runsAfter(`update items set tenant = 't1' where id = 2`)).toBe(2)
    expect(await runsAfter(`update items set tenant = 't2' where id = 2`)).toBe(2)
  })
}

test.each([
  ['its table', { svc: 'get items', table: 'items' }],
  ['a joined table', { svc: 'get notes join items on items.id = notes.item fields notes.id', table: 'notes' }],
])('a change of another tenant to %s costs a query nothing', (_, query) => costsNothing(query))

testSince(15, 'security_invoker')(
  'a change of another tenant to the table of a view with the rights of the caller costs a query nothing',
  () => costsNothing({ svc: 'get listed', table: 'listed' }),
)

test.each([
  ['a view with the rights of its owner', { svc: 'get counted', table: 'counted' }, 'items'],
  ['the parent of a table whose own policies do not apply', { svc: 'get parents', table: 'parents' }, 'children'],
])('after any change to %s a query runs for every caller', async (_, query, changed) => {
  await withTwoTenants(query, async runsAfter => {
    for (let n = 0; n < 3; n++) expect(await runsAfter(insertInto(changed, 't2'))).toBe(2)
  })
})

test('after a change to a table without policies a query runs for every caller', async () => {
  const query = { svc: 'get items join shared on shared.id = items.id fields items.id', table: 'items' }
  await withTwoTenants(query, async runsAfter => {
    await vi.waitFor(async () => expect(await runsAfter(insertInto('items', 't2'))).toBe(1), { timeout: 20_000 })
    expect(await runsAfter(`insert into shared values (${++free})`)).toBe(2)
  })
})

test('a query runs for every caller after a policy has changed', async () => {
  await withTwoTenants({ svc: 'get notes', table: 'notes' }, async runsAfter => {
    await execute(database.adminUrl, `insert into notes values (1, 1, 't1')`)
    expect(await runsAfter('alter policy own on notes using (true)')).toBeGreaterThanOrEqual(2)
    for (let n = 0; n < 2; n++) expect(await runsAfter(insertInto('notes', 't2'))).toBe(2)
  })
})
