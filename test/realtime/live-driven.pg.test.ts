/**
 * Live queries on captured tables run after a change; all others run at every interval
 * (docs/guides/realtime.md#capture-sources).
 */
import { beforeAll, expect, test, vi } from 'vitest'
import { uninstallScript } from '../../src/install/script.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute, testDatabase } from '../support/postgres.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

const database = databaseFixture(`
  create table items (id int primary key, tenant text not null, team int);
  create table members (who text, team int);
  create table loose (id int primary key);
  alter table items enable row level security;
  alter table items force row level security;
  create policy own on items using (team in (select team from members
    where who = current_setting('app.current_tenant_id', true)));
  create view listed with (security_invoker) as select id, team from items where team > 0;
  create view timed with (security_invoker) as select id, now() as at from items;
  insert into members values ('t1', 1);
  insert into items values (1, 't1', 1);
  grant select, insert, update, delete on all tables in schema public to app
`)

beforeAll(() =>
  installed(
    database,
    ['items', 'members'].map(table => ({ schema: 'public', table })),
  ),
)
const gateway = gatewayFixture(database)

async function live(svc: string, table: string): Promise<TestSocket> {
  const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
  socket.say({ type: 'live_query', id: 'l', svc, table, interval_ms: 100 })
  await socket.nextOf('subscribed')
  return socket
}

async function stats(): Promise<{ readonly live_queries_driven: number; readonly live_runs: number }> {
  return (await gateway.get('/health/internal')).json.realtime
}

const driven = (count: number) => vi.waitFor(async () => expect((await stats()).live_queries_driven).toBe(count))

test('a query runs only after a change to a table that it, a view in it or a policy reads', async () => {
  const socket = await live('get listed fields id order by id', 'listed')
  expect(await socket.nextOf('notification')).toMatchObject({ rows: [{ id: 1 }] })
  await driven(1)
  await execute(database.adminUrl, `insert into items values (2, 't1', 1)`)
  expect(await socket.nextOf('notification')).toMatchObject({ rows: [{ id: 1 }, { id: 2 }] })
  await execute(database.adminUrl, `insert into members values ('t1', 2); insert into items values (3, 't1', 2)`)
  expect(await socket.nextOf('notification')).toMatchObject({ rows: [{ id: 1 }, { id: 2 }, { id: 3 }] })
  await execute(database.adminUrl, `delete from members where team = 2`)
  expect(await socket.nextOf('notification')).toMatchObject({ rows: [{ id: 1 }, { id: 2 }] })

  const clock = await live('get timed fields at', 'timed')
  await clock.nextOf('notification')
  const before = (await stats()).live_runs
  for (let n = 0; n < 10; n++) await clock.nextOf('notification')
  // The notifications of the clock itself, one of which may be in transit, and at most one earlier change.
  expect((await stats()).live_runs - before).toBeLessThanOrEqual(12)
  await Promise.all([socket.close(), clock.close()])
})

test.each([
  ['the clock', 'get items fields id, now() as at', 'items'],
  ['a table without triggers', 'get loose', 'loose'],
  ['a value that means today', `get items where '2020-01-01'::date < 'today'::date`, 'items'],
])('with %s a query runs at every interval', async (_, svc, table) => {
  const socket = await live(svc, table)
  await socket.nextOf('notification')
  const before = (await stats()).live_runs
  await vi.waitFor(async () => expect((await stats()).live_runs).toBeGreaterThan(before + 3), { timeout: 10_000 })
  expect((await stats()).live_queries_driven).toBe(0)
  await socket.close()
})

test('a running gateway stops polling after svc install, and starts again after its removal', async () => {
  // No query depends on the schema itself, which is unchanged.
  const later = await testDatabase()
  await execute(later.adminUrl, `create table items (id int primary key); grant select on items to app`)
  const running = await testGateway(later.url)
  const counts = async () => (await running.get('/health/internal')).json.realtime
  const socket = await openSocket(running.url, { token: await running.token({ tenantId: 't1' }) })
  try {
    socket.say({ type: 'live_query', id: 'l', svc: 'get items', table: 'items', interval_ms: 100 })
    expect(await socket.nextOf('notification')).toMatchObject({ rows: [] })
    expect((await counts()).live_queries_driven).toBe(0)

    await installed(later)
    await vi.waitFor(async () => expect((await counts()).live_queries_driven).toBe(1), { timeout: 10_000 })
    await execute(later.adminUrl, `insert into items values (1)`)
    expect(await socket.nextOf('notification')).toMatchObject({ rows: [{ id: 1 }] })

    await execute(later.adminUrl, uninstallScript({ superuser: true }).join(';\n'))
    await vi.waitFor(async () => expect((await counts()).live_queries_driven).toBe(0), { timeout: 10_000 })
    await execute(later.adminUrl, `insert into items values (2)`)
    expect(await socket.nextOf('notification')).toMatchObject({ rows: [{ id: 1 }, { id: 2 }] })
  } finally {
    await socket.close()
    await running.close()
    await later.drop()
  }
})
