/**
 * Changes from the write-ahead log (docs/guides/capture.md), with a PostgreSQL that has `wal_level =
 * logical`.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'
import { fixture, folderFixture } from '../../test/support/fixtures.ts'
import { type TestGateway, testGateway } from '../../test/support/gateway.ts'
import { feedUrl } from '../../test/support/install.ts'
import { createDatabase, execute, privateServer, type TestDatabase } from '../../test/support/postgres.ts'
import { openSocket } from '../../test/support/socket.ts'
import { createPool } from '../postgres/pool.ts'
import type { Command } from '../postgres/types.ts'
import { parseUrl } from '../postgres/url.ts'
import { ChangeLog } from '../realtime/log.ts'
import { type LogEntry, readLog } from '../realtime/log-statements.ts'
import { startChangeReader } from './reader.ts'

const server = fixture(() => privateServer({ settings: ['wal_level = logical'] }))
const folder = folderFixture()
let database: TestDatabase
const gateways: TestGateway[] = []

beforeEach(async () => {
  database = await createDatabase(server.port, 'template1')
  await ask(
    'create table notes (id int primary key, body text, n int); grant all on notes to app; ' +
      'grant usage on schema public to app',
  )
})

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close()
  await svc(['uninstall', '--force'])
  await database.drop()
})

// biome-ignore lint/suspicious/noExplicitAny: a test checks the shape of rows by its expectations
function ask(sql: string): Promise<readonly any[]> {
  return execute(database.adminUrl, sql)
}

async function svc(argv: readonly string[]) {
  const { code, out, error } = await runCommand(argv, {
    environment: { DATABASE_URL: database.url, SVC_ADMIN_DATABASE_URL: database.adminUrl },
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

async function install(): Promise<string> {
  const { code, out, error } = await svc(['install', '--capture', 'wal'])
  expect([code, error]).toEqual([0, ''])
  return out
}

async function open(toml = ''): Promise<TestGateway> {
  const gateway = await testGateway(database.url, { toml, emit() {} })
  gateways.push(gateway)
  return gateway
}

async function close(gateway: TestGateway): Promise<void> {
  gateways.splice(gateways.indexOf(gateway), 1)
  await gateway.close()
}

/** The entries of a table, once there are as many as expected. */
async function entries(table: string, count: number) {
  const read = () =>
    ask(`select operation, key, was, old, new, writer::text from svc.change where "table" = '${table}'
      and (operation <> 'B' or writer is not null) order by seq`)
  await expect.poll(async () => (await read()).length, { timeout: 15_000 }).toBe(count)
  return read()
}

/**
 * Stores changes without a gateway, and collects the entries of `columns` that are handed over. `commands`
 * are those of the reader that joins.
 */
async function collecting(columns: ReadonlyMap<string, string | null>, commands: readonly Command[] = []) {
  const target = parseUrl(feedUrl(database))
  const pool = createPool({ target, maxConnections: 2 })
  const handed: (readonly LogEntry[] | null)[] = []
  const { snapshot } = await readLog(pool, null, columns, 1)
  const reader = startChangeReader({
    ...{ database: pool, role: () => 'app_feed', isUsable: () => true, keepBytesMax: 1e9, warn() {} },
    readers: {
      id: 'test',
      join: () => ({ columns, commands, committed: (_, own) => handed.push(own?.entries ?? null), failed() {} }),
      stored() {},
    },
    replication: async () => ({ target }),
    now: () => performance.now(),
  })
  return {
    handed,
    resyncs: () => reader.stats().resyncs,
    async read() {
      const { entries: all } = await readLog(pool, { snapshot, usesWal: true }, columns, 10_000)
      return all.filter(({ storedBy }) => storedBy !== null)
    },
    async close() {
      await reader.close()
      await pool.close({ deadlineMs: 0 })
    },
  }
}

const slots = () => ask(`select slot_name, active from pg_replication_slots where database = '${database.database}'`)

test('the log has what triggers would write, with the transaction of the writer', async () => {
  const out = await install()
  expect(out).toContain('Changes are read from the write-ahead log, so writes run no trigger.')
  expect(out).toContain('REPLICA IDENTITY is now FULL for public.notes')
  expect(await ask(`select from pg_trigger where tgname like 'svc_capture%'`)).toEqual([])
  const gateway = await open()
  const answer = await gateway.get('/api/notes', {
    ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
    body: '{"id": 1, "body": "x"}',
  })
  const txid = answer.headers.get('x-svc-txid')
  await ask(`update notes set id = 2, n = 5; delete from notes`)
  expect(await entries('notes', 3)).toEqual([
    { operation: 'I', key: { id: 1 }, was: null, old: null, new: null, writer: txid },
    expect.objectContaining({
      ...{ operation: 'U', key: { id: 2 }, was: { id: 1 } },
      ...{ old: { id: 1, body: 'x', n: null }, new: null },
    }),
    expect.objectContaining({ operation: 'D', key: { id: 2 }, old: { id: 2, body: 'x', n: 5 }, new: null }),
  ])
  const { capture } = (await gateway.get('/health/internal', { as: null })).json
  expect(capture).toMatchObject({ sources: { 'public.notes': 'wal' }, wal: { reading: true, resyncs: 0 } })
  expect((await gateway.get('/metrics', { as: null })).text).toContain('svc_wal_reading 1')
})

test('rows have the same JSON as row_to_json makes', async () => {
  await ask(`create domain price as numeric(8, 2); create type mood as enum ('sad', 'not "ok"');
    create table kinds (id bigint primary key, small int2, real float4, double float8, exact numeric, cost price,
      yes bool, words text[], nested int[], moods mood[], doc json, docs jsonb, list json[], d date, at timestamp,
      atz timestamptz, times timestamptz[], span interval, raw bytea, tags varchar(10), ip inet,
      ranges int4range, u uuid);
    grant all on kinds to app`)
  await install()
  await open()
  await ask(`insert into kinds values (9007199254740993, -1, 1.5, 'NaN', 'Infinity', 12.3, false,
      array['a"b', null, 'NULL', 'c\\d', '{}', ''], '[0:1][1:2]={{1,2},{3,null}}', array['sad', 'not "ok"']::mood[],
      '{"a": [1,  2]}', '{"b":null}', array['{"x": "y"}'::json], '2024-02-29', '2024-01-02 03:04:05.678',
      '2024-01-02 03:04:05+02', array['2024-01-02 03:04:05+00'::timestamptz], '1 day 02:03',
      '\\xdeadbeef', 'é"', '10.0.0.0/8',
      '[1,5)', '6c84fb90-12c4-11e1-840d-7b25c5ee775a'),
    (2, null, 'infinity', 1e300, 1e-20, null, true, '{}', null, null, 'null', '"text"', '{}', 'infinity', 'infinity',
      '-infinity', null, null, null, null, null, 'empty', null),
    (3, null, null, null, 100, null, null, null, null, null, null, null, null, '0044-03-15 BC', '0044-03-15 01:02 BC',
      '0044-03-15 01:02+00 BC', null, null, null, null, null, null, null)`)
  await ask('update kinds set yes = yes')
  await entries('kinds', 6)
  const different = await ask(`set timezone = 'UTC'; select c.old::jsonb as decoded, row_to_json(k)::jsonb as written
    from svc.change c join kinds k on k.id = (c.old ->> 'id')::bigint
    where c."table" = 'kinds' and c.old::jsonb <> row_to_json(k)::jsonb`)
  expect(different).toEqual([])
})

test('changes are handed over as the log has them', async () => {
  await ask(`create table owned (id bigint, kind text, "a b" int, "Tenant" uuid, body text, price numeric,
      primary key ("a b", kind, id));
    alter table owned enable row level security; grant all on owned to app;
    create policy own on owned using ("Tenant" = current_setting('app.current_tenant_id', true)::uuid);
    create policy many on owned as restrictive using (id > 0)`)
  await install()
  const { handed, read, close } = await collecting(
    new Map([
      ['public.owned', 'Tenant'],
      ['public.notes', null],
    ]),
  )
  const one = '6c84fb90-12c4-11e1-840d-7b25c5ee775a'
  await ask(`insert into owned values
    (9007199254740993, 'é"\\' || chr(9) || chr(10) || chr(31), 1, '${one}', 'x', 1.50),
    (2, '', -1, null, repeat('"', 70000), 'NaN')`)
  await ask(`update owned set "Tenant" = gen_random_uuid(), body = E'\\t\t' where "a b" = 1`)
  await ask(`update owned set id = 3, price = 1e20 where id = 2; delete from owned where id = 3`)
  await ask(`insert into owned select n, 'many', 1, '${one}' from generate_series(1, 900) n`)
  await ask(`insert into owned select n, 'more', 1, '${one}' from generate_series(1, 1100) n; truncate notes`)
  await ask('insert into notes values (1)')
  await expect.poll(() => read().then(all => all.at(-1)), { timeout: 20_000 }).toMatchObject({ key: '{"id": 1}' })
  const flat = handed.flatMap(each => each ?? [])
  expect(flat.length).toBeGreaterThan(900)
  const all = await read()
  // The changes of a transaction that is sent in several parts are read.
  expect(flat).toEqual(all.filter(entry => flat.some(({ storedBy }) => storedBy === entry.storedBy)))
  expect(all.filter(({ routes }) => routes.some(value => value !== null)).length).toBeGreaterThan(900)
  await close()
}, 60_000)

test('changes of a table whose keys could be printed in another way are read', async () => {
  await ask('create table measured (at float8 primary key); grant all on measured to app')
  await install()
  const { handed, read, close } = await collecting(new Map([['public.measured', null]]))
  await ask('insert into measured values (1e30)')
  await expect.poll(read, { timeout: 20_000 }).toMatchObject([{ key: '{"at": 1000000000000000000000000000000}' }])
  expect(handed).toEqual([null])
  await close()
})

test('a reader that fails with the transaction does not make changes unknown', async () => {
  await install()
  const failing = { text: 'SELECT 1 / $1::int', parameters: ['0'] }
  const { handed, read, resyncs, close } = await collecting(new Map([['public.notes', null]]), [failing])
  await ask('insert into notes values (1)')
  await expect.poll(read, { timeout: 20_000 }).toMatchObject([{ operation: 'I', key: '{"id": 1}' }])
  expect([handed, resyncs()]).toEqual([[], 0])
  await close()
})

test('an entry has the values that read policies use, and not the whole new row', async () => {
  await ask(`create table owned (id int primary key, tenant text, body text); grant all on owned to app;
    alter table owned enable row level security;
    create policy own on owned using (tenant = current_setting('app.current_tenant_id', true))`)
  await install()
  await open()
  await ask(`insert into owned values (1, 't', 'x'); update owned set body = 'y'`)
  expect(await entries('owned', 2)).toMatchObject([
    { old: null, new: { tenant: 't' } },
    { old: { id: 1, tenant: 't', body: 'x' }, new: { tenant: 't' } },
  ])
})

test('tables that cannot be decoded are captured by triggers', async () => {
  await ask(`create type pair as (a int, b int); create table pairs (id int primary key, p pair);
    create table made (id int primary key, twice int generated always as (id * 2) stored);
    create unlogged table fast (id int primary key); grant all on pairs, made, fast to app`)
  const out = await install()
  expect(out).toContain('public.fast, public.made, public.pairs.')
  const gateway = await open()
  await ask('insert into made values (1); insert into pairs values (1, (1, 2)); insert into fast values (1)')
  expect(await ask(`select "table", new from svc.change where operation = 'I' order by 1`)).toEqual([
    { table: 'fast', new: { id: 1 } },
    { table: 'made', new: { id: 1, twice: 2 } },
    { table: 'pairs', new: { id: 1, p: { a: 1, b: 2 } } },
  ])
  const { capture } = (await gateway.get('/health/internal', { as: null })).json
  expect(capture.sources).toMatchObject({ 'public.notes': 'wal', 'public.made': 'triggers' })
})

test('nothing is lost or stored twice while gateways end and sessions are killed', async () => {
  await install()
  await open()
  await open()
  const rows = 300
  for (let id = 1; id <= rows; id++) {
    await ask(`insert into notes values (${id})`)
    if (id % 60 === 20)
      await ask(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and usename = 'app_feed' and pid <> pg_backend_pid()`)
    if (id % 60 === 50) {
      const [first] = gateways
      if (first !== undefined) await close(first)
      await open()
    }
  }
  const logged = (await entries('notes', rows)).map(({ key }) => key.id)
  expect(logged).toEqual(Array.from({ length: rows }, (_, index) => index + 1))
  expect(await slots()).toEqual([{ slot_name: expect.stringMatching(/^svc_\d+$/), active: true }])
}, 60_000)

test('a large transaction is one bulk entry after the first rows, and every row is a webhook', async () => {
  await install()
  await ask(`insert into svc.webhook_trigger values ('all', 'public', 'notes', '{INSERT}', 'database', true, null),
    ('own', 'public', 'notes', '{INSERT}', 'gateway', false, null)`)
  await open()
  await ask(`insert into notes select n, repeat('x', 100) from generate_series(1, 20000) n`)
  await ask('insert into notes values (20001)')
  const log = await entries('notes', 1_002)
  expect(log.slice(-2).map(({ operation }) => operation)).toEqual(['B', 'I'])
  expect(
    await ask('select trigger, count(*)::int, count(distinct key)::int as keys from svc.webhook group by 1'),
  ).toEqual([{ trigger: 'all', count: 20_001, keys: 20_001 }])
}, 60_000)

test('truncation, changed columns, a renamed table and a new partition end right', async () => {
  await ask(`create table parts (id int, kind int, primary key (id, kind)) partition by list (kind);
    create table parts_1 partition of parts for values in (1); grant all on parts to app`)
  await install()
  await open()
  await ask(
    'begin; insert into notes values (1); alter table notes add more int default 7; ' +
      'insert into notes values (2); commit',
  )
  await ask('alter table notes drop body; insert into notes values (3)')
  await ask('delete from notes')
  await ask('truncate notes')
  expect(await entries('notes', 7)).toMatchObject([
    ...[{ key: { id: 1 } }, { key: { id: 2 } }, { key: { id: 3 } }],
    ...[{ old: { id: 1, n: null, more: 7 } }, { old: { id: 2, more: 7 } }, { old: { id: 3, n: null, more: 7 } }],
    { operation: 'B' },
  ])
  await ask('alter table notes rename to papers; insert into papers values (4)')
  expect(await entries('papers', 1)).toMatchObject([{ operation: 'I', key: { id: 4 } }])
  await ask('create table parts_2 partition of parts for values in (2); insert into parts values (1, 1), (1, 2)')
  await ask('update parts set kind = 1, id = 2 where kind = 2')
  expect(await entries('parts', 4)).toMatchObject([
    { operation: 'I', key: { id: 1, kind: 1 } },
    { operation: 'I', key: { id: 1, kind: 2 } },
    { operation: 'D', old: { id: 1, kind: 2 } },
    { operation: 'I', key: { id: 2, kind: 1 } },
  ])
})

test('a slot dropped under the reader is created again, and every table is logged as changed', async () => {
  await install()
  const gateway = await open()
  await ask('insert into notes values (1)')
  await entries('notes', 1)
  const bulk = () => ask(`select count(*)::int as n from svc.change where operation = 'B' and "table" = 'notes'`)
  const [{ n: before }] = await bulk()
  await expect
    .poll(() =>
      ask(`select pg_terminate_backend(active_pid) from pg_replication_slots where active_pid is not null;
        select pg_drop_replication_slot(slot_name) from pg_replication_slots`).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  await expect.poll(async () => (await bulk())[0].n, { timeout: 20_000 }).toBe(before + 1)
  await ask('insert into notes values (2)')
  await entries('notes', 2)
  const { capture } = (await gateway.get('/health/internal', { as: null })).json
  expect(capture.wal.resyncs).toBe(1)
})

test('a transaction that cannot be stored becomes a resync, and those around it are stored', async () => {
  await install()
  await ask(`alter table svc.change add check (key <> '{"id": 13}')`)
  const gateway = await open()
  for (const id of [11, 12, 13, 14])
    await ask(`insert into notes values (${id}); insert into notes values (${id + 100})`)
  await ask('begin; insert into notes values (20); delete from notes where id = 13; commit')
  await ask('insert into notes values (21)')
  const read = () =>
    ask(`select operation, (key ->> 'id')::int as id from svc.change where seq > (select max(seq)
    from svc.change where operation = 'I' and key = '{"id": 11}') order by seq`)
  await expect.poll(async () => (await read()).at(-1), { timeout: 20_000 }).toEqual({ operation: 'I', id: 21 })
  expect((await read()).map(({ operation, id }) => id ?? operation)).toEqual([111, 12, 112, 'B', 14, 114, 'B', 21])
  expect((await gateway.get('/health/internal', { as: null })).json.capture.wal.resyncs).toBe(2)
}, 60_000)

test('timeouts of transactions do not end the one that stores a large transaction', async () => {
  await install()
  const gateway = await open()
  await ask('insert into notes values (0)')
  await entries('notes', 1)
  const [{ server_version_num: version }] = await ask('show server_version_num')
  const timeouts = ['idle_in_transaction_session_timeout', ...(version < 170_000 ? [] : ['transaction_timeout'])]
  for (const name of timeouts) await ask(`alter role app_feed set ${name} = '200ms'`)
  // New sessions have the timeouts.
  await ask(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app_feed'`)
  const holder = new pg.Client({ connectionString: database.adminUrl })
  await holder.connect()
  await holder.query('begin; lock table svc.change in exclusive mode')
  await ask('insert into notes select generate_series(1, 5000)')
  const storing = () =>
    ask(`select from pg_stat_activity where usename = 'app_feed' and wait_event_type = 'Lock'
      and now() - xact_start > interval '400 ms'`)
  await expect.poll(async () => (await storing()).length, { timeout: 20_000 }).toBe(1)
  await holder.query('commit')
  await holder.end()
  // The first 1 000 rows and an entry for the rest.
  await entries('notes', 1_002)
  expect((await gateway.get('/health/internal', { as: null })).json.capture.wal).toMatchObject({ resyncs: 0 })
  for (const name of timeouts) await ask(`alter role app_feed reset ${name}`)
}, 60_000)

test('JSON that PostgreSQL can store and not read does not stop the log', async () => {
  await ask('create table papers (id int primary key, doc json); grant all on papers to app')
  await install()
  await open()
  await ask(`insert into papers values (1, '{"a": "\\u0000 \\\\u0000"}'); delete from papers`)
  const [, one] = await entries('papers', 2)
  expect(one.old.doc).toEqual({ a: '\ufffd \\u0000' })
})

test('gateways are notified of stored changes', async () => {
  await install()
  await open()
  const client = new pg.Client({ connectionString: database.adminUrl })
  await client.connect()
  await client.query('listen svc_stored')
  const notified = new Promise(resolve => client.once('notification', resolve))
  await ask('insert into notes values (1)')
  expect(await notified).toMatchObject({ channel: 'svc_stored', payload: expect.stringMatching(/^[\w-]{12}$/) })
  expect(await entries('notes', 1)).toHaveLength(1)
  await client.end()
})

test('the subscribers of the gateway that stores changes get them without another read', async () => {
  await install()
  const gateway = await open()
  await expect.poll(slots, { timeout: 15_000 }).toMatchObject([{ active: true }])
  const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
  socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
  await socket.nextOf('subscribed')
  const join = vi.spyOn(ChangeLog.prototype, 'join')
  const wake = vi.spyOn(ChangeLog.prototype, 'wake')
  const joined = () => join.mock.results.filter(({ value }) => value !== null).length
  for (let id = 1; joined() < 3; id++) {
    await ask(`insert into notes values (${id})`)
    expect(await socket.nextOf('notification')).toMatchObject({ key: { id } })
  }
  // Its own notifications cause no read; only while another read is in progress it cannot join.
  expect(wake.mock.calls).toHaveLength(join.mock.results.length - joined())
  vi.restoreAllMocks()
  await socket.close()
})

test('commits that wait are stored together', async () => {
  await install()
  await open()
  await ask('insert into notes values (0)')
  await entries('notes', 1)
  const holder = new pg.Client({ connectionString: database.adminUrl })
  await holder.connect()
  await holder.query('begin; select from svc.wal for update')
  for (let id = 1; id <= 100; id++) await ask(`insert into notes values (${id})`)
  await holder.query('commit')
  await holder.end()
  await entries('notes', 101)
  const [{ n }] = await ask('select count(distinct xid)::int as n from svc.change where writer is not null')
  expect(n).toBeLessThan(20)
})

test('a bulk entry has the values of the columns that read policies use', async () => {
  await ask(`create table owned (id int, tenant text, kind int, primary key (id, kind)) partition by list (kind);
    create table owned_1 partition of owned for values in (1);
    create table owned_2 (kind int not null, tenant text, id int not null);
    alter table owned attach partition owned_2 for values in (2);
    alter table owned enable row level security; grant all on owned to app;
    create policy own on owned using (tenant = current_setting('app.current_tenant_id', true))`)
  await install()
  await open()
  await ask(`insert into owned select n, case when n <= 1000 then 'first' else 't' || n % 2 end, 1 + n % 2
    from generate_series(1, 1200) n`)
  const bulk = async (count: number) =>
    (await entries('owned', count)).filter(({ operation }) => operation === 'B').map(each => each.new)
  expect((await bulk(1_001)).map(values => values.tenant.sort())).toEqual([['t0', 't1']])
  await ask(`update owned set tenant = 'moved' where id > 1`)
  // The second partition comes last, with the odd rows.
  expect((await bulk(2_002)).at(-1).tenant.sort()).toEqual(['first', 'moved', 't1'])
  await ask('truncate owned')
  expect((await bulk(2_003)).at(-1)).toBeNull()
  await ask(`insert into owned select n, 't' || n, 1 from generate_series(1, 1200) n`)
  expect((await bulk(3_004)).at(-1)).toBeNull()
}, 60_000)

test('a slot that keeps too much is dropped and created again', async () => {
  await install()
  const gateway = await open('wal_keep_mb = 64')
  await ask('insert into notes values (1)')
  await entries('notes', 1)
  const holder = new pg.Client({ connectionString: database.adminUrl })
  await holder.connect()
  await holder.query('begin; select from svc.wal for update')
  await ask('insert into notes values (2)')
  await ask(`select pg_logical_emit_message(false, 'test', repeat('x', 1000000)) from generate_series(1, 80)`)
  await expect.poll(slots, { timeout: 20_000 }).toEqual([])
  await holder.query('commit')
  await holder.end()
  await expect
    .poll(() => ask(`select from svc.change where operation = 'B' and "table" = 'notes' and key is null`), {
      timeout: 20_000,
    })
    .toHaveLength(3)
  await ask('insert into notes values (3)')
  const read = () => ask(`select (key ->> 'id')::int as id from svc.change where operation = 'I' order by seq`)
  await expect.poll(async () => (await read()).at(-1), { timeout: 15_000 }).toEqual({ id: 3 })
  const { capture } = (await gateway.get('/health/internal', { as: null })).json
  expect(capture.wal).toMatchObject({ reading: true, resyncs: 1 })
}, 60_000)

test('a table rewritten in the middle of the stream keeps its changes', async () => {
  await install()
  await open()
  await ask('insert into notes values (1, $$x$$)')
  await ask(`begin; insert into notes values (2); alter table notes alter n type text;
    insert into notes values (3, null, 'three'); commit`)
  await ask('vacuum full notes')
  await ask('update notes set body = $$y$$ where id = 1')
  expect(await entries('notes', 4)).toMatchObject([
    { operation: 'I', key: { id: 1 } },
    { operation: 'I', key: { id: 2 } },
    { operation: 'I', key: { id: 3 } },
    { operation: 'U', key: { id: 1 }, old: { body: 'x' } },
  ])
})

test('an installation of version 4 is upgraded, with its log', async () => {
  expect((await svc(['install', '--capture', 'triggers'])).code).toBe(0)
  await ask('insert into notes values (1)')
  await ask(`drop table svc.wal, svc.identity_before; drop function svc.await_writers;
    alter table svc.change drop column writer; update svc.installation set version = 4`)
  expect((await svc(['install'])).out).toContain('Schema svc is installed (version 5)')
  await ask('insert into notes values (2)')
  expect(await entries('notes', 2)).toMatchObject([{ key: { id: 1 } }, { key: { id: 2 } }])
  await install()
  await open()
  await ask('insert into notes values (3)')
  expect(await entries('notes', 3)).toMatchObject([
    { writer: null },
    { writer: null },
    { writer: expect.stringMatching(/^\d+$/) },
  ])
})

test('uninstalling removes the slot that a gateway reads, the publication and the identities', async () => {
  await install()
  await open()
  await ask('insert into notes values (1)')
  await entries('notes', 1)
  expect((await svc(['uninstall', '--force'])).code).toBe(0)
  expect(await slots()).toEqual([])
  expect(await ask('select from pg_publication')).toEqual([])
  expect(await ask(`select relreplident from pg_class where relname = 'notes'`)).toEqual([{ relreplident: 'd' }])
})

test('capturing by triggers again removes the slot and the publication', async () => {
  await install()
  await open()
  expect((await svc(['install', '--capture', 'triggers'])).code).toBe(0)
  expect(await slots()).toEqual([])
  expect(await ask('select from pg_publication')).toEqual([])
  await ask('insert into notes values (1)')
  expect(await ask(`select writer from svc.change where operation = 'I'`)).toEqual([{ writer: null }])
})

const FROM_WAL = 'Changes are read from the write-ahead log, so writes run no trigger.'

test('a new installation reads the write-ahead log where the server allows it, and says why', async () => {
  const line = `${FROM_WAL} The server and the roles allow it; --capture triggers uses triggers instead.`
  const dry = await svc(['install', '--dry-run'])
  expect(dry.out.split('\n')[0]).toBe(`-- ${line}`)
  const { code, out } = await svc(['install'])
  expect([code, out.split('\n')]).toEqual([0, expect.arrayContaining([line])])
  expect(out).toContain('the replication slot keeps the write-ahead log without limit: set max_slot_wal_keep_size')
  expect(await slots()).toHaveLength(1)
  expect(await ask(`select from pg_trigger where tgname like 'svc_capture%'`)).toEqual([])
})

test('an existing installation keeps its source, whatever the server allows', async () => {
  const same = 'The existing installation does so; --capture changes it.'
  expect((await svc(['install', '--capture', 'triggers'])).out).toContain('Changes are captured by triggers.\n')
  expect((await svc(['install'])).out).toContain(`Changes are captured by triggers. ${same}`)
  expect(await slots()).toEqual([])
  await install()
  expect((await svc(['install'])).out).toContain(`${FROM_WAL} ${same}`)
  expect(await slots()).toHaveLength(1)
})

test('a new installation uses triggers if the feed role would connect through a pooler', async () => {
  const reason = 'The feed role would connect through a pooler (prepared_statements = false): set feed_url'
  const file = join(folder, 'svc.toml')
  const argv = ['install', '--dry-run', '--config', file]
  await writeFile(file, '[gateway]\nprepared_statements = false')
  expect((await svc(argv)).out).toContain(reason)
  await writeFile(file, `[gateway]\nprepared_statements = false\nrealtime_database_url = "${database.url}"`)
  expect((await svc(argv)).out).toContain(`-- ${FROM_WAL}`)
})

test('a gateway role with REPLICATION is refused', async () => {
  await ask('alter role app replication')
  try {
    const { code, error } = await svc(['install', '--capture', 'wal'])
    expect([code, error]).toEqual([1, expect.stringContaining('Run ALTER ROLE "app" NOREPLICATION.')])
    expect((await svc(['install'])).out).toContain(
      'Changes are captured by triggers. The write-ahead log cannot be read instead: Role "app" of the gateway has ' +
        'REPLICATION: SQL of requests could read every change. Run ALTER ROLE "app" NOREPLICATION.',
    )
  } finally {
    await ask('alter role app noreplication')
  }
})
