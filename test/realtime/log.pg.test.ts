/** Subscriptions to captured tables, which receive the writes of every client (decision 0022). */
import pg from 'pg'
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { uninstallScript } from '../../src/install/script.ts'
import { READ_ROWS_MAX, SINCE_ROWS_MAX } from '../../src/realtime/log.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { execute } from '../support/postgres.ts'
import { CAPTURE } from '../support/server.ts'
import { type Message, openSocket, type TestSocket } from '../support/socket.ts'

const TOKYO = '-c TimeZone=Asia/Tokyo -c bytea_output=escape'

const database = databaseFixture(`
  create table items (id int primary key, tenant text not null, name text);
  create table teams (id int primary key, who text);
  create table shared (id int primary key, team int);
  create table keys (a timestamptz, b float8, c bytea, d numeric, e text, f uuid, n int, primary key (a, b, c, d,
    e, f));
  do $$ declare t text; begin foreach t in array array['items', 'shared'] loop
    execute format('alter table %I enable row level security; alter table %I force row level security', t, t);
  end loop; end $$;
  create policy own on items using (tenant = current_setting('app.current_tenant_id', true));
  create view team_list with (security_invoker) as select * from teams;
  create policy team on shared using (team in (select id from team_list
    where who = current_setting('app.current_tenant_id', true)));
  grant select, insert, update, delete on all tables in schema public to app
`)
const admin = fixture(connect, client => client.end())

beforeAll(() => installed(database))
// Each test receives its own changes, and none of the test before.
const gateway = gatewayFixture(database, { toml: 'unrouted_resync_interval_ms = 0' })

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.adminUrl })
  client.on('error', () => {})
  await client.connect()
  return client
}

async function subscribed(more: object = {}, tenantId = 't1', at = gateway): Promise<TestSocket & { token: string }> {
  const socket = await openSocket(at.url, { token: await at.token({ tenantId }) })
  socket.say({ type: 'subscribe', channel: 'svc_table_items', ...more })
  const { token } = await socket.nextOf('subscribed')
  return Object.assign(socket, { token })
}

/** Subscribes, and waits for pending messages. */
async function listening(tenantId = 't1'): Promise<TestSocket & { token: string }> {
  const socket = await subscribed({}, tenantId)
  const { token } = await toldOf(socket, () => mark(tenantId))
  return Object.assign(socket, { token })
}

/**
 * The events of a change. Repeats the change if it caused a resync: it coincided with a bulk change, or the
 * subscription was being checked again.
 */
async function toldOf(socket: TestSocket, change: () => Promise<number>): Promise<Message> {
  for (;;) {
    const id = await change()
    let message = await socket.next()
    while (message.type !== 'resync' && message.key?.id !== id) message = await socket.next()
    if (message.type !== 'resync') return message
  }
}

/** The messages received until the event about `last`. */
async function until(socket: TestSocket, last: number): Promise<readonly Message[]> {
  const told: Message[] = []
  for (;;) {
    const message = await socket.next()
    told.push(message)
    if (message.key?.id === last) return told
  }
}

const short = ({ type, operation, reason, key, new: row }: Message) =>
  type === 'notification' ? `${operation} ${key.id} ${row?.name ?? '-'}` : `${type} ${reason}`

/** A separate change in every test, which is delivered after those before it. */
let ids = 1_000
async function mark(tenant = 't1'): Promise<number> {
  const id = ids++
  await admin.query('insert into items values ($1, $2, $3)', [id, tenant, 'mark'])
  return id
}

beforeEach(() => admin.query('delete from items where id < 1000'))

describe('a change by any client', () => {
  test('is delivered as far as the subscriber can see it', async () => {
    const [one, two] = [await listening(), await listening('t2')]
    const { rows } = await admin.query(
      `insert into items values (1, 't1', 'a'), (2, 't2', 'b') returning pg_current_xact_id()::text as txid`,
    )
    expect(await one.next()).toEqual({
      ...{ type: 'notification', id: '#1', channel: 'svc_table_items', table: 'items', operation: 'INSERT' },
      ...{ key: { id: 1 }, new: { id: 1, tenant: 't1', name: 'a' }, old: null, token: expect.any(String) },
      ...{ timestamp: expect.stringMatching(/^\d{4}-.*Z$/), txid: rows[0].txid },
    })
    expect(short(await two.next())).toBe('INSERT 2 b')
    await admin.query(`update items set tenant = 't1' where id = 2`)
    expect(short(await one.next())).toBe('INSERT 2 b')
    expect(await two.next()).toMatchObject({ operation: 'DELETE', key: { id: 2 }, new: null, old: { id: 2 } })
    await admin.query(`update items set id = 3, name = 'c' where id = 2`)
    expect([short(await one.next()), short(await one.next())]).toEqual(['DELETE 2 -', 'INSERT 3 c'])
    await admin.query(`delete from items where id = 3`)
    expect(short(await one.next())).toBe('DELETE 3 -')
    const last = await mark('t2')
    expect((await until(two, last)).map(short)).toEqual([`INSERT ${last} mark`])
    await Promise.all([one.close(), two.close()])
  })

  test('that moves keys from row to row leaves no deleted row in copies', async () => {
    await admin.query(`insert into items values (1, 't1', 'a'), (2, 't1', 'b')`)
    const socket = await listening()
    await admin.query(
      `begin; update items set id = id + 10 where id < 1000; update items set id = id - 9, tenant = 't2'
        where id in (11, 12); commit`,
    )
    expect((await until(socket, await mark())).map(short).slice(0, -1).sort()).toEqual(['DELETE 1 -', 'DELETE 2 -'])
    await socket.close()
  })

  test('is not delivered if rolled back, and the others arrive in commit order', async () => {
    const socket = await listening()
    const other = await connect()
    await admin.query(`begin; insert into items values (1, 't1', 'early')`)
    await other.query(`begin; savepoint s; insert into items values (2, 't1', 'undone'); rollback to s;
      insert into items values (3, 't1', 'kept'); commit`)
    await other.query(`begin; insert into items values (4, 't1', 'undone'); rollback`)
    expect(short(await socket.next())).toBe('INSERT 3 kept')
    await admin.query('commit')
    expect(short(await socket.next())).toBe('INSERT 1 early')
    await other.end()
    await socket.close()
  })

  test.each([
    ['TRUNCATE', 'truncate items'],
    ['a statement of many rows', `insert into items select -n, 't1' from generate_series(1, 1001) as n`],
  ])('causes a resync: %s', async (_, statement) => {
    const socket = await listening()
    await admin.query(statement)
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'bulk' })
    await socket.close()
    await admin.query('truncate items')
  })

  test(`of many entries at once, or of a row that is too large to evaluate, causes a resync`, async () => {
    const socket = await listening()
    await admin.query(`do $$ begin for block in 0..${READ_ROWS_MAX / 1_000} loop
      insert into items select -n, 't1' from generate_series(block * 1000 + 1, block * 1000 + 1000) as n;
    end loop; end $$`)
    // The write-ahead log has no statements: of one transaction, a thousand rows are logged one by one.
    expect(await socket.nextOf('resync')).toMatchObject({ reason: CAPTURE === 'wal' ? 'bulk' : 'too many changes' })
    await admin.query('truncate items')
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'bulk' })
    await admin.query(`insert into items values (1, 't1', repeat('x', 70000))`)
    expect(await socket.nextOf('notification')).toMatchObject({ operation: 'INSERT', key: { id: 1 } })
    await admin.query(`delete from items`)
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'unknown before' })
    await socket.close()
  })

  test('to a policy is noticed, although the change concerns no subscriber', async () => {
    const socket = await listening()
    await admin.query(`alter policy own on items using (true); insert into items values (1, 'nobody', 'a')`)
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'schema changed' })
    await admin.query(
      `alter policy own on items using (tenant = current_setting('app.current_tenant_id', true));
        update items set name = 'b'`,
    )
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'schema changed' })
    await socket.close()
  })

  test('to tables that a policy reads through a view makes the gateway evaluate the policy again', async () => {
    const socket = await subscribed({ channel: 'svc_table_shared' })
    await admin.query(`insert into teams values (1, 't1')`)
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'dependency' })
    await socket.close()
  })
})

describe('primary keys', () => {
  test('of any types are found, and delivered in the form that lists use', async () => {
    const tokyo = await testGateway(`${database.url}?options=${encodeURIComponent(TOKYO)}`)
    const socket = await subscribed({ channel: 'svc_table_keys' }, 't1', tokyo)
    await admin.query(
      `insert into keys values ('2026-01-02T03:04:05.678901Z', 0.1::float8 + 0.2, '\\x00ff5c',
        12345678901234567890.50, $$it's "ä\\" $$, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 1)`,
    )
    const created = await socket.next()
    const { json } = await tokyo.get('/api/keys')
    const { n, ...key } = json.data[0]
    expect(key.a).toBe('2026-01-02T12:04:05.678901+09:00')
    expect(created).toMatchObject({ operation: 'INSERT', key, new: { ...key, n } })
    await admin.query('update keys set n = 2')
    expect(await socket.next()).toMatchObject({ operation: 'UPDATE', key, old: key, new: { ...key, n: 2 } })
    await admin.query('delete from keys')
    expect(await socket.next()).toMatchObject({ operation: 'DELETE', key, old: key, new: null })
    await socket.close()
    await tokyo.close()
  })
})

describe('a client that reconnects', () => {
  test('continues from its last token: here, at another gateway, or at one that started later', async () => {
    const first = await listening()
    await admin.query(`insert into items values (1, 't1', 'a')`)
    const { token } = await first.next()
    await first.close()
    const other = await testGateway(database.url)
    await admin.query(`insert into items values (2, 't1', 'b'), (3, 't2', 'x'); delete from items where id = 1`)
    for (const at of [gateway, other]) {
      const socket = await subscribed({ since: token }, 't1', at)
      expect(socket.token).toBe(token)
      expect((await until(socket, 1)).map(short)).toEqual(['INSERT 2 b', 'DELETE 1 -'])
      await socket.close()
    }
    await other.close()
  })

  test('continues from its last event, although earlier transactions were still open', async () => {
    const socket = await listening()
    const late = await connect()
    await late.query(`begin; insert into items values (1, 't1', 'late')`)
    await admin.query(`insert into items values (2, 't1', 'early')`)
    const { token } = await socket.next()
    await socket.close()
    await late.query('commit')
    await late.end()
    const back = await subscribed({ since: token })
    expect(short(await back.next())).toBe('INSERT 1 late')
    await back.close()
  })

  test('gets more changes than one read of the log returns, and changes of one transaction together', async () => {
    const staying = await listening()
    const { token } = staying
    const half = SINCE_ROWS_MAX / 2
    const some = `insert into items select -n, 't1' from generate_series($1::int + 1, $1::int + $2::int) as n`
    for (const from of [0, half, 2 * half]) await admin.query(some, [from, half])
    if (CAPTURE === 'triggers') await admin.query('begin')
    for (const from of [3 * half, 4 * half, 5 * half]) await admin.query(some, [from, half])
    if (CAPTURE === 'triggers') {
      await admin.query('commit')
      await admin.query(`insert into items select 10000 + n, 't2' from generate_series(1, 3 * $1::int) as n`, [half])
    }
    const last = await mark()
    await staying.close()
    const back = await subscribed({ since: token })
    const received = await until(back, last)
    expect(received.map(({ type }) => type).filter(type => type !== 'notification')).toEqual([])
    expect(received).toHaveLength(6 * half + 1)
    await back.close()
  })

  test('gets a resync after too many or expired changes, or with a foreign token', async () => {
    const staying = await listening()
    const { token } = staying
    const back = async (since: string) => {
      const again = await subscribed({ since })
      const { reason } = await again.nextOf('resync')
      await again.close()
      return reason
    }
    for (const since of ['x', `${token}x`, `${token} `, `-${token}`, 'AAAAAAAA.1.1']) {
      expect([since, await back(since)]).toEqual([since, 'token'])
    }
    await admin.query(`insert into items select -n, 't1' from generate_series(1, 1001) as n`)
    await toldOf(staying, mark)
    expect(await back(token)).toBe('token')
    await staying.close()
    await admin.query('truncate items')
    const watching = await listening()
    await admin.query(`update svc.installation set forgotten = pg_current_xact_id()`)
    expect(await watching.nextOf('resync')).toMatchObject({ reason: 'epoch' })
    expect(await back(watching.token)).toBe('token')
    await watching.close()
  })
})

describe('a failure', () => {
  test('of a connection loses no change and causes no resync', async () => {
    const socket = await listening()
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and datname = current_database()`,
    )
    await admin.query(`insert into items values (1, 't1', 'a')`)
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and datname = current_database()`,
    )
    const last = await mark()
    expect((await until(socket, last)).map(short)).toEqual(['INSERT 1 a', `INSERT ${last} mark`])
    await socket.close()
  })

  test('to read the log in time causes a resync for all subscribers', async () => {
    const socket = await listening()
    await admin.query('begin; lock table svc.change')
    await vi.waitFor(
      async () => expect((await gateway.get('/health/internal')).json.realtime.log.reading).toBe(false),
      { timeout: 15_000, interval: 100 },
    )
    await admin.query(`insert into items values (1, 't1', 'a'); commit`)
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'too many changes' })
    expect((await until(socket, await mark())).map(({ type }) => type)).toEqual(['notification'])
    await socket.close()
  })

  test('of the log that makes it start from the beginning causes a resync for all subscribers', async () => {
    const socket = await listening()
    await admin.query(`update svc.installation set epoch = gen_random_uuid()`)
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'epoch' })
    const last = await mark()
    expect((await until(socket, last)).map(short)).toEqual([`INSERT ${last} mark`])
    await socket.close()
  })

  test('to listen through a pooler does not prevent subscriptions to captured tables', async () => {
    const pooled = await testGateway(database.url, { toml: 'prepared_statements = false' })
    const socket = await subscribed({}, 't1', pooled)
    expect((await until(socket, await mark())).map(({ type }) => type)).toEqual(['notification'])
    await socket.close()
    await pooled.close()
  })
})

describe('the installation', () => {
  test('is detected', async () => {
    const socket = await listening()
    const { json } = await gateway.get('/health/internal')
    expect(json.realtime.tables.items).toEqual({ capture: 'trigger', durable: true })
    expect(json.realtime.log).toMatchObject({ reading: true })
    expect(json.realtime.listening).toBe(false)
    await socket.close()
  })

  test("replaces notifications by the gateway's writes", async () => {
    const listener = await connect()
    const heard: unknown[] = []
    listener.on('notification', ({ channel }) => heard.push(channel))
    await listener.query('listen svc_table_items; listen over')
    const socket = await listening()
    const created = await gateway.get('/api/items', {
      ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({ id: 1, tenant: 't1', name: 'a' }),
    })
    expect(await socket.next()).toMatchObject({ operation: 'INSERT', txid: created.headers.get('x-svc-txid') })
    await admin.query('notify over')
    await vi.waitFor(() => expect(heard).toEqual(['over']))
    await listener.end()
    await socket.close()
  })

  test('can be removed and repeated during a subscription, which gets a resync and then further events', async () => {
    const socket = await listening()
    const write = (id: number) =>
      gateway.get('/api/items', {
        ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
        body: JSON.stringify({ id, tenant: 't1', name: 'own' }),
      })
    const pooled = await testGateway(database.url, { toml: 'prepared_statements = false' })
    const alone = await subscribed({}, 't1', pooled)
    await execute(database.adminUrl, ['BEGIN', ...uninstallScript({ superuser: true }), 'COMMIT'].join(';\n'))
    // This gateway cannot listen to the other one.
    expect(await alone.next()).toMatchObject({ type: 'error', id: '#1', code: 'UNAVAILABLE' })
    await alone.close()
    await pooled.close()
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'schema changed' })
    let own = 0
    const written = await toldOf(socket, async () => {
      await write(++own)
      return own
    })
    expect(short(written)).toBe(`INSERT ${own} own`)
    expect((await gateway.get('/health/internal')).json.realtime.tables.items.capture).toBe('gateway')
    await installed(database)
    // A gateway notices an installation only by its own check or a schema change.
    await admin.query('create table another (id int)')
    expect(await socket.nextOf('resync')).toMatchObject({ reason: 'schema changed' })
    expect(short(await toldOf(socket, mark))).toMatch(/^INSERT \d+ mark$/)
    await socket.close()
  })
})

test('a partition that is attached or detached causes a resync for all subscribers', { timeout: 60_000 }, async () => {
  await admin.query(`create table years (id int, year int, primary key (id, year)) partition by range (year);
    create table year_1 (like years including all); insert into year_1 values (1, 1);
    grant select on years, year_1 to app`)
  await gateway.gateway.reload()
  const socket = await subscribed({ channel: 'svc_table_years' })
  await admin.query('alter table years attach partition year_1 for values from (1) to (2)')
  const { reason } = await socket.nextOf('resync')
  expect(['bulk', 'schema changed', 'dependency']).toContain(reason)
  const told: string[] = []
  socket.onMessage = message => told.push(short(message))
  // Changes written while the subscription is being checked again cause a resync as well.
  await vi.waitFor(
    async () => {
      await admin.query('update year_1 set id = id + 1')
      await vi.waitFor(() => expect(told.at(-1)).toMatch(/^(INSERT|UPDATE) /), { timeout: 1_000 })
    },
    { timeout: 30_000 },
  )
  const before = told.length
  await admin.query('alter table years detach partition year_1')
  await vi.waitFor(() => expect(told.slice(before).join()).toContain('resync'), { timeout: 15_000 })
  await socket.close()
  await admin.query('drop table years, year_1')
})
