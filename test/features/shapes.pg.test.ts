/** The protocol of shapes (docs/reference/shapes.md), with the unmodified client of npm and as plain HTTP. */
import { FetchError, isChangeMessage, isControlMessage, type Message, Shape, ShapeStream } from '@electric-sql/client'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { parseExposition } from '../support/exposition.ts'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed, logged } from '../support/install.ts'

const PATIENT = { timeout: 20_000 }
const T1 = { tenantId: 't1' }

const database = databaseFixture(`
  create type mood as enum ('sad', 'ok');
  create type pair as (r float8, i float8);
  create domain posint as int check (value > 0);
  create table issues (id int primary key, tenant text not null default 't1', title text not null,
    priority int default 10);
  create table everything (id int primary key, tenant text not null default 't1', txt text, i2 int2, i8 int8,
    f8 float8, n numeric(10,2), b bool,
    js json, jb jsonb, ints int8[], deep int4[][], bools bool[], moods mood[], m mood, at timestamptz, d date, by bytea,
    u uuid, v varchar(8), pairs pair[], posints posint[], doubles float8[],
    jsons jsonb[], took interval minute to second(3),
    "Two, words" char(3), bits bit(5), at_time time(3), positive posint);
  create table pairs (a text, b int, tenant text not null default 't1', note text, primary key (a, b));
  create table teams (id int primary key, who text);
  create table shared (id int primary key, team int);
  create table uncaptured (id int primary key, tenant text);
  do $$ declare t text; begin foreach t in array array['issues', 'everything', 'pairs', 'uncaptured', 'shared'] loop
    execute format('alter table %I enable row level security; alter table %I force row level security', t, t);
  end loop; end $$;
  create policy own on issues using (tenant = current_setting('app.current_tenant_id', true));
  create policy own on everything using (tenant = current_setting('app.current_tenant_id', true));
  create policy own on pairs using (tenant = current_setting('app.current_tenant_id', true));
  create policy own on uncaptured using (tenant = current_setting('app.current_tenant_id', true));
  create policy team on shared using (team in (select id from teams
    where who = current_setting('app.current_tenant_id', true)));
  create table members (who text primary key);
  create function app_user() returns text stable language sql
    as $$ select current_setting('app.current_user_id', true) $$;
  do $$ declare one text[]; begin foreach one slice 1 in array array[
    ['own_rows', $q$current_setting('app.current_user_id', true) = who$q$],
    ['by_role', $q$current_setting('app.current_role', true) = who$q$],
    ['by_scope', $q$current_setting('app.current_scopes', true) = who$q$],
    ['by_both', $q$who in (current_setting('app.current_user_id', true), current_setting('app.current_role', true))$q$],
    ['by_function', $q$app_user() = who$q$],
    ['by_member', $q$exists (select from members where members.who = current_setting('app.current_user_id', true))$q$]
  ] loop
    execute format('create table %I (id int primary key, tenant text, who text)', one[1]);
    execute format('alter table %I enable row level security', one[1]);
    execute format('create policy own on %I using (tenant = current_setting(''app.current_tenant_id'', true) and %s)',
      one[1], one[2]);
  end loop; end $$;
  grant select, insert, update, delete on all tables in schema public to app
`)
const admin = clientFixture(() => database.adminUrl)
const SEEN_BY = ['own_rows', 'by_role', 'by_scope', 'by_both', 'by_function', 'by_member']
const TABLES = ['issues', 'everything', 'pairs', 'teams', 'shared', 'members', ...SEEN_BY]

beforeAll(() =>
  installed(
    database,
    TABLES.map(table => ({ schema: 'public', table })),
  ),
)

const SHAPES = '\n[shapes]\nenabled = true\nlong_poll_ms = 1500\nallow_deletion = true'
const gateway = gatewayFixture(database, { toml: `unrouted_resync_interval_ms = 0${SHAPES}` })
const other = gatewayFixture(database, { toml: `unrouted_resync_interval_ms = 0${SHAPES}` })

const aborters: AbortController[] = []

// The log reader can read a TRUNCATE late, which concerns every shape.
beforeEach(() => admin.query(TABLES.map(table => `delete from ${table}`).join('; ')))
afterEach(() => {
  for (const aborter of aborters.splice(0)) aborter.abort()
})

interface Options {
  readonly as?: string
  readonly at?: { readonly url: string; token(claims: object): Promise<string> }
  readonly params?: Record<string, unknown>
  readonly more?: Record<string, unknown>
}

// biome-ignore lint/suspicious/noExplicitAny: the rows of these tables
type Any = any

async function stream({ as = 't1', at = gateway, params = {}, more = {} }: Options = {}): Promise<ShapeStream<Any>> {
  const aborter = new AbortController()
  aborters.push(aborter)
  const token = await at.token({ tenantId: as })
  return new ShapeStream<Any>({
    url: `${at.url}/v1/shape`,
    headers: { Authorization: `Bearer ${token}` },
    params: { table: 'issues', ...params },
    signal: aborter.signal,
    ...more,
  } as never)
}

async function shape(options: Options = {}): Promise<Shape<Any>> {
  return new Shape<Any>((await stream(options)) as never)
}

/** Collects the messages of a stream. */
async function collected(options: Options = {}): Promise<{ all: Message<Any>[]; stream: ShapeStream<Any> }> {
  const all: Message<Any>[] = []
  const opened = await stream(options)
  opened.subscribe(messages => void all.push(...messages))
  return { all, stream: opened }
}

const changes = (all: readonly Message<Any>[]) => all.filter(isChangeMessage)
const controls = (all: readonly Message<Any>[]) => all.filter(isControlMessage).map(({ headers }) => headers.control)
const rowsOf = (of: Shape<Any>) => of.currentRows.toSorted((one, two) => one.id - two.id)

function upToDate(all: readonly Message<Any>[]): Promise<void> {
  return vi.waitFor(() => expect(controls(all)).toContain('up-to-date'), PATIENT)
}

const request = (query: string, options: object = { as: T1 }) => gateway.get(`/v1/shape?${query}`, options)

/** A snapshot as PostgreSQL prints it. */
const SNAPSHOT = {
  ...{ xmin: expect.stringMatching(/^\d+$/), xmax: expect.stringMatching(/^\d+$/), xip_list: expect.any(Array) },
  database_lsn: expect.stringMatching(/^\d+$/),
}

/** The handle and offset of a client that is up to date. */
async function begun(query = 'table=issues') {
  const first = await request(`${query}&offset=-1`)
  const handle = first.headers.get('electric-handle') ?? ''
  const second = await request(`${query}&offset=${first.headers.get('electric-offset')}&handle=${handle}`)
  return { handle, offset: second.headers.get('electric-offset') ?? '', first, second }
}

describe.each([{ liveSse: false }, { liveSse: true }])('The client (liveSse: $liveSse)', ({ liveSse }) => {
  const more = { liveSse }

  test('gets the rows, then inserts, updates and deletes', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one'), (2, 'two')`)
    const { all } = await collected({ more })
    await upToDate(all)
    expect(changes(all).map(({ key, value }) => [key, value])).toEqual([
      ['"public"."issues"/"1"', { id: 1, tenant: 't1', title: 'one', priority: 10 }],
      ['"public"."issues"/"2"', { id: 2, tenant: 't1', title: 'two', priority: 10 }],
    ])
    all.length = 0
    await admin.query(`insert into issues (id, title) values (3, 'three')`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(1), PATIENT)
    await admin.query(`update issues set title = 'ONE' where id = 1`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(2), PATIENT)
    await admin.query(`delete from issues where id = 2`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(3), PATIENT)
    expect(changes(all).map(({ headers: { operation }, key, value }) => [operation, key, value])).toEqual([
      ['insert', '"public"."issues"/"3"', { id: 3, tenant: 't1', title: 'three', priority: 10 }],
      ['update', '"public"."issues"/"1"', { id: 1, title: 'ONE' }],
      ['delete', '"public"."issues"/"2"', { id: 2 }],
    ])
  })

  test('keeps a shape that is equal to its own SELECT', async () => {
    await admin.query(`insert into issues (id, title) select n, 'row ' || n from generate_series(1, 300) n`)
    const issues = await shape({ more, params: { where: `priority < 50` } })
    await issues.rows
    for (let n = 1; n <= 30; n++) {
      await admin.query(`update issues set priority = (id * $1) % 97, title = 'pass ' || $1 where id % 7 = $1 % 7`, [n])
      await admin.query(`delete from issues where id = $1`, [n])
      await admin.query(`insert into issues (id, title, priority) values ($1, 'new', $2)`, [1_000 + n, n * 3])
    }
    const { rows } = await admin.query(`select * from issues where priority < 50 order by id`)
    await vi.waitFor(() => expect(rowsOf(issues)).toEqual(rows), PATIENT)
  })

  test('resumes from a handle and an offset, also at another gateway', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one'), (2, 'two')`)
    const { all, stream: before } = await collected({ more })
    await upToDate(all)
    const { shapeHandle: handle, lastOffset: offset } = before
    for (const aborter of aborters) aborter.abort()
    await admin.query(`insert into issues (id, title) select n, 'later' from generate_series(10, 18) n`)
    const { all: later } = await collected({ at: other, more: { ...more, handle, offset } })
    await upToDate(later)
    expect(changes(later).map(({ headers, value }) => [headers.operation, value.id])).toEqual(
      [10, 11, 12, 13, 14, 15, 16, 17, 18].map(id => ['insert', id]),
    )
  })

  test('starts again when a statement changed more rows than the log lists', async () => {
    const { all } = await collected({ more })
    await upToDate(all)
    await admin.query(`insert into issues (id, title) select n, 'row' from generate_series(1, 1200) n`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(1_200), PATIENT)
    expect(controls(all)).toContain('must-refetch')
  })

  test('sees rows that move into and out of the condition as inserts and deletes', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'foo'), (2, 'bar')`)
    const { all } = await collected({ more, params: { where: `title LIKE $1`, params: { 1: 'foo%' } } })
    await upToDate(all)
    await admin.query(`update issues set title = 'foo 2' where id = 2`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(2), PATIENT)
    await admin.query(`update issues set title = 'bar 1' where id = 1`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(3), PATIENT)
    expect(changes(all).map(({ headers, value }) => [headers.operation, value.id])).toEqual([
      ['insert', 1],
      ['insert', 2],
      ['delete', 1],
    ])
  })

  test('of one tenant never receives rows of another, and a row that changes its tenant is deleted', async () => {
    await admin.query(`insert into issues (id, title, tenant) values (1, 'mine', 't1'), (2, 'theirs', 't2')`)
    const { all: one } = await collected({ more })
    const { all: two } = await collected({ more, as: 't2' })
    await Promise.all([upToDate(one), upToDate(two)])
    await admin.query(`update issues set tenant = 't2' where id = 1`)
    await vi.waitFor(() => expect(changes(two)).toHaveLength(2), PATIENT)
    await vi.waitFor(() => expect(changes(one)).toHaveLength(2), PATIENT)
    expect(changes(one).map(({ headers, value }) => [headers.operation, value.id])).toEqual([
      ['insert', 1],
      ['delete', 1],
    ])
    expect(changes(two).map(({ headers, value }) => [headers.operation, value.id, value.title])).toEqual([
      ['insert', 2, 'theirs'],
      ['insert', 1, 'mine'],
    ])
  })

  test('with replica "full" receives whole rows and the old values', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const { all } = await collected({ more, params: { replica: 'full' } })
    await upToDate(all)
    await admin.query(`update issues set title = 'ONE' where id = 1`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(2), PATIENT)
    await admin.query(`delete from issues where id = 1`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(3), PATIENT)
    const whole = { id: 1, tenant: 't1', title: 'ONE', priority: 10 }
    expect(changes(all)[1]).toMatchObject({ value: whole, old_value: { title: 'one' } })
    expect(changes(all)[2]).toMatchObject({ value: whole, headers: { operation: 'delete' } })
  })

  test('receives only the requested columns', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const { all } = await collected({ more, params: { columns: ['id', 'title'] } })
    await upToDate(all)
    expect(changes(all).map(({ value }) => value)).toEqual([{ id: 1, title: 'one' }])
    await admin.query(`update issues set priority = 1 where id = 1`)
    await admin.query(`update issues set title = 'two', priority = 2 where id = 1`)
    await vi.waitFor(() => expect(changes(all).at(-1)?.value).toEqual({ id: 1, title: 'two' }), PATIENT)
  })

  test('starts again when a table that a policy reads has changed', async () => {
    await admin.query(`insert into teams values (1, 't1'), (2, 't2'); insert into shared values (10, 1), (20, 2)`)
    const shared = await shape({ more, params: { table: 'shared' } })
    expect(await shared.rows).toEqual([{ id: 10, team: 1 }])
    await admin.query(`update teams set who = case who when 't1' then 't2' else 't1' end`)
    await vi.waitFor(() => expect(rowsOf(shared)).toEqual([{ id: 20, team: 2 }]), PATIENT)
  })

  test('is answered without changes after the long poll, and continues', async () => {
    const { all } = await collected({ more })
    await upToDate(all)
    await vi.waitFor(() => expect(controls(all).length).toBeGreaterThan(liveSse ? 0 : 2), PATIENT)
    await admin.query(`insert into issues (id, title) values (1, 'late')`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(1), PATIENT)
  })
})

describe('Values', () => {
  test('of every type are parsed by the client', async () => {
    await admin.query(`insert into everything values (1, 't1', 'text "x"', 1, 9223372036854775807, 4.5, 12.50, true,
      '{"foo": "bar"}', '[1, {"a": null}]', '{1,2,null}', '{{1,2},{3,4}}', '{t,f}', '{sad,ok}', 'ok',
      '2020-01-02 03:04:05+00', '2020-01-02', '\\xdeadbeef', '00000000-0000-0000-0000-000000000001', 'abc',
      '{"(1.1,2.2)"}', '{5,9}', '{Infinity,-Infinity,NaN}',
      array['{"a": [1]}'::jsonb], '90 seconds', 'x', '10101', '12:13:14.567', 5)`)
    const everything = await shape({ params: { table: 'everything' } })
    const expected = {
      ...{ id: 1, tenant: 't1', txt: 'text "x"', i2: 1, i8: 9_223_372_036_854_775_807n, f8: 4.5, n: '12.50', b: true },
      ...{ js: { foo: 'bar' }, jb: [1, { a: null }], ints: [1n, 2n, null] },
      deep: [
        [1, 2],
        [3, 4],
      ],
      ...{ pairs: ['(1.1,2.2)'], posints: ['5', '9'], doubles: [Infinity, -Infinity, Number.NaN], jsons: [{ a: [1] }] },
      ...{ 'Two, words': 'x', bits: '10101', at_time: '12:13:14.567', positive: '5' },
      ...{ bools: [true, false], moods: ['sad', 'ok'], m: 'ok', d: '2020-01-02', by: '\\xdeadbeef', v: 'abc' },
      u: '00000000-0000-0000-0000-000000000001',
    }
    const [row] = await everything.rows
    expect(row).toMatchObject(expected)
    expect(Date.parse(row.at)).toBe(Date.UTC(2020, 0, 2, 3, 4, 5))
    await admin.query(`update everything set i8 = null, b = false, ints = '{}', f8 = 'NaN', m = 'sad'`)
    const changed = { ...expected, i8: null, b: false, ints: [], f8: Number.NaN, m: 'sad' }
    await vi.waitFor(() => expect(everything.currentRows[0]).toMatchObject(changed), PATIENT)
  })

  test('are described by the schema header', async () => {
    const { headers } = await request('table=everything&offset=-1')
    expect(JSON.parse(headers.get('electric-schema') ?? '')).toMatchObject({
      id: { type: 'int4', pk_index: 0, not_null: true },
      n: { type: 'numeric', precision: 10, scale: 2 },
      deep: { type: 'int4', dims: 1 },
      moods: { type: 'mood', dims: 1 },
      v: { type: 'varchar', max_length: 8 },
      took: { type: 'interval', precision: 3, fields: 'MINUTE TO SECOND' },
      'Two, words': { type: 'bpchar', length: 3 },
      bits: { type: 'bit', length: 5 },
      at_time: { type: 'time', precision: 3 },
      posints: { type: 'posint', dims: 1 },
    })
  })

  test('of columns with any name are selected by the client', async () => {
    await admin.query(`insert into everything (id, "Two, words") values (1, 'x')`)
    const everything = await shape({ params: { table: '"public"."everything"', columns: ['id', 'Two, words'] } })
    expect(await everything.rows).toEqual([{ id: 1, 'Two, words': 'x' }])
  })

  test('of a composite key form the key, in which slashes are doubled', async () => {
    await admin.query(`insert into pairs values ('a/b', 1, 't1', 'x')`)
    const { all } = await collected({ params: { table: 'pairs' } })
    await upToDate(all)
    await admin.query(`delete from pairs`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(2), PATIENT)
    expect(changes(all).map(({ key }) => key)).toEqual(Array(2).fill('"public"."pairs"/"a//b"/"1"'))
    expect(changes(all)[1]?.value).toEqual({ a: 'a/b', b: 1 })
  })
})

describe('Requests', () => {
  test('start with the rows, and are up to date with the second response', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const { first, second, handle } = await begun()
    expect(first.json).toEqual([
      {
        key: '"public"."issues"/"1"',
        value: { id: '1', tenant: 't1', title: 'one', priority: '10' },
        headers: { operation: 'insert', relation: ['public', 'issues'] },
      },
      { headers: { control: 'snapshot-end', ...SNAPSHOT } },
    ])
    expect(first.headers.has('electric-up-to-date')).toBe(false)
    expect(second.json).toEqual([{ headers: { control: 'up-to-date', global_last_seen_lsn: expect.any(String) } }])
    expect(second.headers.get('electric-up-to-date')).toBe('')
    expect(second.headers.get('electric-handle')).toBe(handle)
  })

  test('name the snapshot of their rows, which has what was written before and not what is written after', async () => {
    const written = async (id: number) => {
      const { rows } = await admin.query(
        `insert into issues (id, title) values (${id}, 'x') returning pg_current_xact_id()::text as xid`,
      )
      return BigInt(rows[0].xid)
    }
    const before = await written(1)
    const empty = await request('table=issues&offset=-1&where=id%3D0')
    const after = await written(2)
    const [{ headers: snapshot }] = empty.json
    expect(empty.json).toHaveLength(1)
    const has = (xid: bigint) => xid < BigInt(snapshot.xmax) && !snapshot.xip_list.includes(String(xid))
    expect([snapshot.control, has(before), has(after)]).toEqual(['snapshot-end', true, false])
  })

  test('find names without quotes as they are written, and else in lower case', async () => {
    const handleOf = async (query: string) => (await request(`${query}&offset=-1`)).headers.get('electric-handle')
    const same = await handleOf('table=issues&columns=id,title')
    expect(same).toMatch(/./)
    expect(await handleOf('table=PUBLIC.Issues&columns=ID,Title')).toBe(same)
    expect(await handleOf('table=%22public%22.%22issues%22&columns=%22id%22,title')).toBe(same)
    expect(await handleOf('table=everything&columns=id,%22Two, words%22')).toMatch(/./)
    for (const query of ['table=%22Issues%22', 'table=issues&columns=id,%22Title%22', 'table=issues&where=%22Id%22=1'])
      expect((await request(`${query}&offset=-1`)).status).toBe(400)
    expect((await request('table=issues&where=ISSUES.Id=1&offset=-1')).status).toBe(200)
  })

  test('treat an empty parameter like none', async () => {
    const { status, headers } = await request('table=issues&offset=-1&where=&columns=&replica=&log=&handle=&live=')
    expect([status, headers.get('electric-handle')]).toEqual([200, (await begun()).handle])
    expect((await request(`table=issues&offset=-1&where=title=$1&params[1]=`)).status).toBe(200)
  })

  test('with live=true end when the token expires', async () => {
    const slow = await testGateway(database.url, { toml: '[shapes]\nenabled = true\nlong_poll_ms = 300000' })
    try {
      // The handle of the same caller; identities that differ only in the time of their token see the same.
      const ask = (query: string) => slow.get(`/v1/shape?table=issues&${query}`, { as: { ...T1, expiresInSeconds: 2 } })
      const { headers } = await ask('offset=now')
      const handle = headers.get('electric-handle')
      const reply = await ask(`live=true&handle=${handle}&offset=${headers.get('electric-offset')}`)
      expect([reply.status, reply.json.map((message: Any) => message.headers.control)]).toEqual([200, ['up-to-date']])
    } finally {
      await slow.close()
    }
  })

  test('with live=true wait for a change or the end of the long poll', async () => {
    const begin = await begun()
    const { handle } = begin
    let { offset } = begin
    // The position can first move on past changes of an earlier test.
    const poll = async () => {
      const at = Date.now()
      const response = await request(`table=issues&live=true&handle=${handle}&offset=${offset}`)
      offset = response.headers.get('electric-offset') ?? ''
      return { response, waited: Date.now() - at > 1_400 }
    }
    const first = await poll()
    const { response: empty, waited } = first.waited ? first : await poll()
    expect([waited, empty.status]).toEqual([true, 200])
    expect(empty.json).toHaveLength(1)
    expect(empty.headers.get('electric-cursor')).toMatch(/^\d+$/)
    expect(empty.headers.has('electric-schema')).toBe(false)
    const next = request(`table=issues&live=true&handle=${handle}&offset=${empty.headers.get('electric-offset')}`)
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    expect((await next).json[0]).toMatchObject({ value: { id: '1' }, headers: { operation: 'insert', last: true } })
  })

  test('advance with the log while only other callers have changes, also with bulk changes', async () => {
    const { handle, offset } = await begun()
    const poll = request(`table=issues&live=true&handle=${handle}&offset=${offset}`)
    for (let n = 0; n < 3; n++)
      await admin.query(
        `insert into issues (id, title, tenant) select $1 * 500 + n, 'x', 't2' from generate_series(1, 500) n`,
        [n],
      )
    const { headers, json } = await poll
    expect(json).toHaveLength(1)
    const later = await request(`table=issues&handle=${handle}&offset=${headers.get('electric-offset')}`)
    expect([later.status, later.json.length]).toEqual([200, 1])
    await admin.query(`insert into issues (id, title, tenant) select -n, 'x', 't2' from generate_series(1, 1500) n`)
    await admin.query(`insert into issues (id, title) values (9999, 'mine')`)
    await logged(database)
    const since = await request(`table=issues&handle=${handle}&offset=${offset}`)
    expect(since.json).toMatchObject([{ value: { id: '9999' } }, { headers: { control: 'up-to-date' } }])
  })

  test('cause no visibility query about changes of other tenants, also right after they begin', async () => {
    const queries = async () => {
      const { text } = await gateway.get('/metrics', { as: null })
      const samples = parseExposition(text).get('svc_realtime_visibility_queries_total')?.samples ?? []
      return samples.reduce((sum, { value }) => sum + value, 0)
    }
    const before = await queries()
    let written = 0
    let isWriting = true
    const write = async () => {
      while (isWriting) await admin.query(`insert into issues (id, title, tenant) values ($1, 'x', 't2')`, [++written])
    }
    const writing = write()
    const polls = Array.from({ length: 20 }, async (_, n) => {
      const as = { tenantId: `quiet-${n}` }
      const { headers } = await request('table=issues&offset=-1', { as })
      const position = `handle=${headers.get('electric-handle')}&offset=${headers.get('electric-offset')}`
      const { json } = await request(`table=issues&live=true&${position}`, { as })
      expect(json).toHaveLength(1)
    })
    await Promise.all(polls)
    isWriting = false
    await writing
    expect(written).toBeGreaterThan(10)
    expect((await queries()) - before).toBe(0)
  })

  test('are answered in parts if many rows have changed, each from the end of the previous part', async () => {
    const { handle, offset: start } = await begun()
    for (const n of [0, 1, 2, 3, 4])
      await admin.query(`insert into issues (id, title) select $1 * 600 + n, 'x' from generate_series(1, 600) n`, [n])
    await admin.query(`update issues set title = 'y' where id <= 3; delete from issues where id = 4`)
    await logged(database)
    const parts: { json: Any[]; isUpToDate: boolean }[] = []
    for (let offset = start; parts.at(-1)?.isUpToDate !== true; ) {
      // A request that waits would be up to date with what the gateway has read from the log until then.
      const { status, json, headers } = await request(`table=issues&handle=${handle}&offset=${offset}`)
      expect(status).toBe(200)
      offset = headers.get('electric-offset') ?? ''
      parts.push({ json, isUpToDate: headers.has('electric-up-to-date') })
    }
    expect(parts.length).toBeGreaterThan(2)
    expect(
      parts
        .slice(0, -1)
        .flatMap(({ json }) => json)
        .some(({ headers }) => headers.control),
    ).toBe(false)
    const rows = new Map<string, Any>()
    for (const { key, value, headers } of parts.flatMap(({ json }) => json)) {
      if (headers.operation === 'delete') rows.delete(key)
      else if (key !== undefined) rows.set(key, { ...rows.get(key), ...value })
    }
    const { rows: expected } = await admin.query('select id::text, title from issues order by issues.id')
    const found = [...rows.values()].map(({ id, title }) => ({ id, title }))
    expect(found.toSorted((one, other) => one.id - other.id)).toEqual(expected)
  })

  test('with more changes than wait for a slow client lose none of them', async () => {
    const { handle, offset: start } = await begun()
    // Each row is 40 kB, so 200 of them exceed every limit on what waits.
    for (const n of [0, 1])
      await admin.query(
        `insert into issues (id, title) select $1 * 100 + n, repeat('x', 40000) from generate_series(1, 100) n`,
        [n],
      )
    await logged(database)
    const ids = new Set<string>()
    for (let offset = start, isUpToDate = false; !isUpToDate; ) {
      const { json, headers } = await request(`table=issues&handle=${handle}&offset=${offset}`)
      for (const { value } of json) if (value !== undefined) ids.add(value.id)
      offset = headers.get('electric-offset') ?? ''
      isUpToDate = headers.has('electric-up-to-date')
    }
    expect(ids.size).toBe(200)
  })

  test('with offset=now begin without rows', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const { json, headers } = await request('table=issues&offset=now')
    expect(json).toMatchObject([{ headers: { control: 'up-to-date' } }])
    await admin.query(`insert into issues (id, title) values (2, 'two')`)
    const [offset, handle] = [headers.get('electric-offset'), headers.get('electric-handle')]
    const later = await request(`table=issues&offset=${offset}&handle=${handle}`)
    expect(later.json).toMatchObject([{ value: { id: '2' } }, { headers: { control: 'up-to-date' } }])
  })

  test('of callers with the same view share a handle, and others never do', async () => {
    const handleOf = async (as: object, query = 'table=issues') =>
      (await request(`${query}&offset=-1`, { as })).headers.get('electric-handle')
    const mine = await handleOf(T1)
    expect(await handleOf({ tenantId: 't1', userId: 'another' })).toBe(mine)
    expect(await handleOf({ tenantId: 't2' })).not.toBe(mine)
    const different = ['where=id%3D1', 'columns=id,title', 'replica=full'].map(more => `table=issues&${more}`)
    const handles = await Promise.all(different.map(query => handleOf(T1, query)))
    expect(new Set([...handles, mine]).size).toBe(4)
  })

  test('of callers with the same rights share a plan, and other values or columns have another', async () => {
    const misses = async () => {
      const found = parseExposition((await gateway.get('/metrics')).text).get('svc_plan_cache_misses_total')
      return found?.samples.find(({ labels }) => labels.kind === 'subscription')?.value ?? -1
    }
    const titles = async (more: string, tenantId: string) => {
      const where = encodeURIComponent('priority = $1')
      const { json } = await request(`table=issues&offset=-1&where=${where}&${more}`, { as: { tenantId } })
      return json.flatMap(({ value }: Any) => (value === undefined ? [] : [value.title]))
    }
    await admin.query(`insert into issues (id, tenant, title, priority)
      values (1, 't1', 'one', 71), (2, 't2', 'two', 71), (3, 't1', 'three', 72)`)
    const before = await misses()
    expect(await titles('params[1]=71', 't1')).toEqual(['one'])
    expect(await misses()).toBe(before + 1)
    expect(await titles('params[1]=71', 't1')).toEqual(['one'])
    expect(await titles('params[1]=71', 't2')).toEqual(['two'])
    expect(await misses()).toBe(before + 1)
    expect(await titles('params[1]=72', 't1')).toEqual(['three'])
    expect(await titles('params[1]=71&columns=id', 't1')).toEqual([undefined])
    expect(await misses()).toBe(before + 3)
  })

  test('with a handle of another caller or shape, or an unknown one, are answered with must-refetch', async () => {
    const { handle, offset } = await begun()
    const cases = [
      [`table=issues&handle=${handle}`, { tenantId: 't2' }],
      [`table=issues&where=id%3D1&handle=${handle}`, T1],
      ['table=issues&handle=unknown', T1],
      [`table=issues&handle=${handle.replace(/^./, digit => (digit === '0' ? '1' : '0'))}`, T1],
    ] as const
    for (const [query, as] of cases) {
      const refused = await request(`${query}&offset=${offset}`, { as })
      expect(refused.status).toBe(409)
      expect(refused.json).toEqual([{ headers: { control: 'must-refetch' } }])
      const again = await request(`${query.replace(/&handle=.*/, '')}&offset=-1`, { as })
      expect(again.headers.get('electric-handle')).toBe(refused.headers.get('electric-handle'))
    }
  })

  test('that start never receive a handle that the client declares expired', async () => {
    const { handle, offset } = await begun()
    const again = await request(`table=issues&offset=-1&expired_handle=${handle}`)
    expect(again.headers.get('electric-handle')).not.toBe(handle)
    expect((await begun()).handle).toBe(again.headers.get('electric-handle'))
    expect((await request(`table=issues&offset=${offset}&handle=${handle}`)).status).toBe(200)
  })

  test('with an offset that the log no longer has are answered with must-refetch', async () => {
    const { handle } = await begun()
    for (const offset of ['99999999999_0', '5_977'])
      expect((await request(`table=issues&offset=${offset}&handle=${handle}`)).status).toBe(409)
  })

  test('are answered from the start of the handle for 0_0 and 0_inf', async () => {
    await request('table=issues', { as: T1, method: 'DELETE' })
    const { handle } = await begun()
    await admin.query(`insert into issues (id, title) select n, 'x' from generate_series(1, 9) n`)
    await logged(database)
    for (const offset of ['0_0', '0_inf'])
      expect((await request(`table=issues&offset=${offset}&handle=${handle}`)).json).toHaveLength(10)
  })

  test('that are invalid are refused in the form that clients of shapes expect', async () => {
    const invalid = async (query: string) => {
      const { status, json } = await request(query)
      return [status, json.message, Object.keys(json.errors ?? {})]
    }
    const refused = (name: string) => [400, 'Invalid request', [name]]
    expect(await invalid('offset=-1')).toEqual(refused('table'))
    expect(await invalid('table=issues')).toEqual(refused('offset'))
    expect(await invalid('table=issues&offset=x')).toEqual(refused('offset'))
    expect(await invalid('table=issues&offset=1_0')).toEqual(refused('handle'))
    expect(await invalid('table=issues&offset=-1&live=true')).toEqual(refused('live'))
    expect(await invalid('table=nope&offset=-1')).toEqual(refused('table'))
    expect(await invalid('table=issues&offset=-1&where=1 x 1')).toEqual(refused('where'))
    expect(await invalid('table=issues&offset=-1&where=nope%3D1')).toEqual(refused('where'))
    expect(await invalid('table=issues&offset=-1&where=id%3D$1')).toEqual(refused('params'))
    expect(await invalid('table=issues&offset=-1&columns=title')).toEqual(refused('columns'))
    expect(await invalid('table=issues&offset=-1&columns=id,nope')).toEqual(refused('columns'))
    expect(await invalid('table=issues&offset=-1&subset__limit=1')).toEqual(refused('subset__order_by'))
    expect(await invalid('table=issues&offset=-1&subset__order_by=id&subset__limit=0')).toEqual(
      refused('subset__limit'),
    )
    expect(await invalid('table=issues&offset=-1&subset__where=1 x 1')).toEqual(refused('subset__where'))
    expect(await invalid('table=issues&offset=-1&subset__where=nope%3D1')).toEqual(refused('subset__where'))
    expect(await invalid('table=issues&offset=-1&subset__where=id%3D$1')).toEqual(refused('subset__params'))
    expect(await invalid('table=issues&offset=-1&subset__order_by=id,')).toEqual(refused('subset__order_by'))
    expect(await invalid('table=issues&offset=-1&subset__params=x')).toEqual(refused('subset__params'))
    expect(await invalid('table=issues&offset=-1&subset__size=1')).toEqual(refused('subset__size'))
    expect(await invalid('table=issues&offset=-1&replica=half')).toEqual(refused('replica'))
    expect(await invalid('table=uncaptured&offset=-1')).toEqual(refused('table'))
    const queryable = 'table=issues&offset=-1&queryable_columns=id,title'
    expect(await invalid(`${queryable}&columns=id,priority`)).toEqual(refused('columns'))
    expect(await invalid(`${queryable}&subset__where=priority=1`)).toEqual(refused('subset__where'))
    expect(await invalid(`${queryable}&subset__order_by=issues.priority`)).toEqual(refused('subset__order_by'))
    expect(await invalid('table=issues&offset=-1&queryable_columns=title')).toEqual(refused('columns'))
  })

  test('with queryable_columns have these columns, and subsets can name all of them', async () => {
    await admin.query(`insert into issues (id, title, priority) values (1, 'one', 5), (2, 'two', 6)`)
    const all = await request('table=issues&offset=-1&queryable_columns=id,Title&where=priority = 5')
    expect(all.json[0].value).toEqual({ id: '1', title: 'one' })
    const shape = 'table=issues&offset=-1&columns=id&queryable_columns=id,title'
    const subset = await request(`${shape}&subset__where=${encodeURIComponent(`title = 'two'`)}`)
    expect(subset.json.data.map(({ value }: Any) => value)).toEqual([{ id: '2' }])
  })

  test('whose first rows cannot be read are refused with the status of the error, and not broken off', async () => {
    await admin.query('insert into issues (id, title, priority) values ($1, $2, 0)', [1, 'one'])
    for (const query of ['', '&log=changes_only&subset__where=true']) {
      const where = encodeURIComponent('10 / priority > 1')
      const { status, json } = await request(`table=issues&offset=-1&where=${where}${query}`)
      expect([status, json]).toEqual([400, { code: expect.any(String), message: expect.stringContaining('zero') }])
    }
    const head = await request(`table=issues&offset=-1`, { as: T1, method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
  })

  test('are refused for a while when the log cannot be read, and do not start again', { timeout: 40_000 }, async () => {
    const { handle, offset } = await begun()
    await admin.query('begin; lock table svc.change')
    try {
      await vi.waitFor(
        async () => {
          for (const position of ['offset=-1', `offset=${offset}&handle=${handle}`]) {
            const refused = await request(`table=issues&${position}`)
            expect([refused.status, refused.json.code]).toEqual([503, 'unavailable'])
            expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
          }
        },
        { timeout: 30_000, interval: 100 },
      )
    } finally {
      await admin.query('commit')
    }
    const later = async () => {
      const { status, headers } = await request(`table=issues&offset=${offset}&handle=${handle}`)
      return [status, headers.get('electric-handle')]
    }
    await expect.poll(later, PATIENT).toEqual([200, handle])
  })

  test('without a valid token are refused', async () => {
    const { status, json } = await request('table=issues&offset=-1', {
      as: null,
      headers: { Authorization: 'Bearer x' },
    })
    expect(status).toBe(401)
    expect(json.message).toMatch(/token/)
  })

  test('end a handle with DELETE, and have no body with HEAD and OPTIONS', async () => {
    const { handle, offset } = await begun()
    const head = await request('table=issues&offset=-1', { as: T1, method: 'HEAD' })
    expect([head.status, head.text, head.headers.get('electric-handle')]).toEqual([200, '', handle])
    const options = await request('', { as: null, method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, POST, DELETE, OPTIONS'])
    expect((await request(`table=issues&handle=${handle}`, { as: T1, method: 'DELETE' })).status).toBe(202)
    expect((await request(`table=issues&offset=${offset}&handle=${handle}`)).status).toBe(409)
    expect((await request('table=issues', { as: T1, method: 'PUT' })).status).toBe(405)
  })

  // Any caller who sees a shape could make all others with the same view read their rows again.
  test('cannot end a handle unless the configuration allows it', async () => {
    const strict = await testGateway(database.url, { toml: '[shapes]\nenabled = true' })
    try {
      const options = { method: 'DELETE', as: T1 }
      const refused = await strict.get('/v1/shape?table=issues&handle=1', options)
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST, OPTIONS'])
    } finally {
      await strict.close()
    }
  })

  test('can be cached: private with a token, with an entity tag', async () => {
    const { first, second } = await begun()
    expect(first.headers.get('cache-control')).toMatch(/^private, max-age=\d+/)
    expect(first.headers.get('vary')).toContain('Authorization')
    const etag = first.headers.get('etag') ?? ''
    expect(etag).toBe(`W/"${first.headers.get('electric-handle')}:-1:0_inf"`)
    const same = await request('table=issues&offset=-1', { as: T1, headers: { 'If-None-Match': etag } })
    expect([same.status, same.text]).toEqual([304, ''])
    expect(second.headers.get('etag')).not.toBe(etag)
    const query = `table=issues&handle=${first.headers.get('electric-handle')}&offset=0_0`
    // A transaction of another database of the server in between gives the response a later position.
    await vi.waitFor(async () => {
      const tag = (await request(query)).headers.get('etag') ?? ''
      expect((await request(query, { as: T1, headers: { 'If-None-Match': tag } })).status).toBe(304)
    })
  })

  test('for rows keep their entity tag when rows change, and a 304 keeps the position of the cached rows', async () => {
    const { first } = await begun()
    await admin.query(`insert into issues (id, title) values (1, 'later')`)
    const [etag, handle, offset] = ['etag', 'electric-handle', 'electric-offset'].map(
      name => first.headers.get(name) ?? '',
    )
    const again = await request('table=issues&offset=-1')
    expect([again.headers.get('etag'), again.headers.get('electric-offset')]).toEqual([
      etag,
      expect.not.stringMatching(`^${offset}$`),
    ])
    const same = await request('table=issues&offset=-1', { as: T1, headers: { 'If-None-Match': etag } })
    expect([same.status, same.headers.has('electric-offset')]).toEqual([304, false])
    const since = await request(`table=issues&offset=${offset}&handle=${handle}`)
    expect(since.json).toMatchObject([{ value: { id: '1' } }, { headers: { control: 'up-to-date' } }])
    await request(`table=issues&handle=${handle}`, { as: T1, method: 'DELETE' })
    const ended = await request('table=issues&offset=-1', { as: T1, headers: { 'If-None-Match': etag } })
    expect(ended.status).toBe(200)
  })
})

/**
 * Policies, a caller of tenant t1, callers who see the same, and one who does not. The use that a function or
 * another table makes of settings is unknown: only equal tokens share a handle.
 */
describe.each([
  ['the user', 'own_rows', { userId: 'u1' }, [{ userId: 'u1', role: 'admin', scopes: ['x'] }], { userId: 'u2' }],
  ['the role', 'by_role', { role: 'clerk' }, [{ role: 'clerk', userId: 'u2' }], { role: 'admin' }],
  ['the scopes', 'by_scope', { scopes: ['a', 'b'] }, [{ scopes: ['a', 'b'], userId: 'u2' }], { scopes: ['a'] }],
  ['two values', 'by_both', { userId: 'a', role: 'b' }, [{ userId: 'a', role: 'b' }], { userId: 'b', role: 'a' }],
  ['what a function reads', 'by_function', { userId: 'u1' }, [], { userId: 'u2' }],
  ['another table', 'by_member', { userId: 'u1' }, [], { userId: 'u2' }],
] as const)('Handles, with a policy that reads %s', (_, table, owner, same, different) => {
  test('are shared by callers who see the same, and are refused to all others', async () => {
    const first = async (as: object) => {
      const { status, headers } = await request(`table=${table}&offset=-1`, { as: { tenantId: 't1', ...as } })
      expect(status).toBe(200)
      return headers
    }
    const headers = await first(owner)
    const handle = headers.get('electric-handle') ?? ''
    for (const as of same) expect((await first(as)).get('electric-handle')).toBe(handle)
    const etag = headers.get('etag') ?? ''
    for (const as of [different, { ...owner, tenantId: 't2' }, {}]) {
      const ask = (more: string, extra: object = {}) =>
        request(`table=${table}&${more}`, { as: { tenantId: 't1', ...as }, ...extra })
      expect((await ask('offset=-1', { headers: { 'If-None-Match': etag } })).status).toBe(200)
      const position = `offset=${headers.get('electric-offset')}&handle=${handle}`
      for (const more of ['', '&live=true', '&live=true&live_sse=true', '&subset__where=true']) {
        const refused = await ask(`${position}${more}`)
        expect([more, refused.status]).toEqual([more, 409])
        expect(refused.headers.get('electric-handle')).not.toBe(handle)
      }
      expect((await ask(`handle=${handle}`, { method: 'DELETE' })).status).toBe(400)
    }
    for (const as of same) expect((await first(as)).get('electric-handle')).toBe(handle)
  })
})

test('Public shapes can be cached by others, also the request to start again', async () => {
  const open = await testGateway(database.url, { toml: `require_auth = false${SHAPES}` })
  try {
    const ask = (query: string) => open.get(`/v1/shape?${query}`, { as: null })
    const { status, headers, json } = await ask('table=pairs&offset=-1')
    expect([status, json]).toEqual([200, [{ headers: { control: 'snapshot-end', ...SNAPSHOT } }]])
    expect(headers.get('cache-control')).toBe('public, max-age=604800, s-maxage=3600, stale-while-revalidate=2629746')
    const refused = await ask('table=pairs&offset=1_0&handle=unknown')
    expect([refused.status, refused.headers.get('cache-control')]).toEqual([409, 'public, max-age=60, must-revalidate'])
    expect(refused.headers.get('electric-handle')).toBe(headers.get('electric-handle'))
    expect(refused.headers.get('vary')).toContain('Authorization')
    expect((await request('table=pairs&offset=1_0&handle=unknown')).headers.get('cache-control')).toBe('no-store')
  } finally {
    await open.close()
  }
})

describe.each(['GET', 'POST'] as const)('Subsets with %s', method => {
  const more = { log: 'changes_only', offset: 'now', subsetMethod: method }

  test('are the rows of a condition in an order, and then follow their changes', async () => {
    await admin.query(`insert into issues (id, title, priority)
      select n, 'row ' || n, nullif(n % 4, 0) from generate_series(1, 40) n`)
    await admin.query(`insert into issues (id, title, tenant, priority) values (99, 'theirs', 't2', 3)`)
    const { all, stream: opened } = await collected({ more })
    await upToDate(all)
    expect(changes(all)).toEqual([])
    const { data } = await opened.requestSnapshot({
      where: 'priority >= $1 or priority is null',
      params: { 1: '2' },
      orderBy: 'priority desc nulls last, "id" asc',
      limit: 15,
      offset: 8,
    })
    const { rows } =
      await admin.query(`select id from issues where tenant = 't1' and (priority >= 2 or priority is null)
      order by priority desc nulls last, id limit 15 offset 8`)
    expect(data.map(({ value }: Any) => value.id)).toEqual(rows.map(({ id }) => id))
    expect(data[0]).toMatchObject({ value: { tenant: 't1' }, headers: { operation: 'insert' } })
    expect(controls(all)).toEqual(expect.arrayContaining(['snapshot-end', 'subset-end']))
    await admin.query(`update issues set title = 'changed' where id = ${rows[0].id}`)
    await vi.waitFor(
      () => expect(changes(all).at(-1)).toMatchObject({ value: { id: rows[0].id, title: 'changed' } }),
      PATIENT,
    )
  })

  test('and the changes since are equal to a SELECT while others write', async () => {
    await admin.query(`insert into issues (id, title) select n, 'row' from generate_series(1, 100) n`)
    const copy = await shape({ more })
    await vi.waitFor(() => expect(copy.isUpToDate).toBe(true), PATIENT)
    let isWriting = true
    const writing = (async () => {
      for (let n = 1; isWriting || n < 40; n++) {
        await admin.query(`update issues set title = 'pass ' || $1 where id % 5 = $1 % 5`, [n])
        await admin.query(`delete from issues where id = $1`, [n])
        await admin.query(`insert into issues (id, title) values ($1, 'new')`, [1_000 + n])
      }
    })()
    for (const from of [0, 50]) await copy.requestSnapshot({ where: `id > ${from} and id <= ${from + 50}` })
    await copy.requestSnapshot({ where: 'id > 1000', orderBy: 'id', limit: 1_000 })
    isWriting = false
    await writing
    const { rows } = await admin.query('select * from issues order by id')
    await vi.waitFor(() => expect(rowsOf(copy)).toEqual(rows), PATIENT)
  })

  test('of another shape or caller start with a new handle', async () => {
    const { handle, offset } = await begun()
    const query = `table=issues&handle=${handle}&offset=${offset}`
    const ask = (as: object, more = '') =>
      method === 'GET'
        ? request(`${query}${more}&subset__where=id%3D1`, { as })
        : request(`${query}${more}`, { as, method, body: JSON.stringify({ where: 'id=1' }) })
    const { status, json, headers } = await ask(T1)
    expect([status, json.data, headers.get('electric-offset')]).toEqual([200, [], offset])
    expect(json.metadata).toEqual({ ...SNAPSHOT, snapshot_mark: expect.any(Number), database_lsn: json.metadata.xmax })
    expect(headers.get('cache-control')).toBe('no-store')
    for (const refused of [await ask({ tenantId: 't2' }), await ask(T1, '&where=id%3D1')]) {
      expect(refused.status).toBe(409)
      expect(refused.headers.get('electric-handle')).not.toBe(handle)
    }
  })
})

describe('Errors', () => {
  test('of a request end the stream of the client', async () => {
    const invalid = await stream({ params: { where: '1 x 1' } })
    const error = await new Promise(resolve => invalid.subscribe(() => {}, resolve))
    expect(error).toBeInstanceOf(FetchError)
    expect((error as FetchError).status).toBe(400)
    expect((error as FetchError).json).toEqual({
      message: 'Invalid request',
      errors: { where: ['At location 17: syntax error at or near "x"'] },
    })
  })

  test('do not follow from an aborted client', async () => {
    const { all } = await collected()
    await upToDate(all)
    for (const aborter of aborters) aborter.abort()
    await vi.waitFor(async () => expect((await gateway.get('/health/internal')).text).toBeTruthy())
  })
})

describe('Conditions', () => {
  test.each([
    [`id IN (1, 2)`, [1, 2]],
    [`id = ANY('{1,3}')`, [1, 3]],
    [`id = ANY(ARRAY[2,3])`, [2, 3]],
    [`"title" = 'it''s' OR lower(title) = 'b'`, [1, 2]],
    [`NOT (priority IS NULL) AND id BETWEEN 1 AND 2`, [1, 2]],
    [`priority IS NULL`, [3]],
    [`priority::text ILIKE '1%'`, [1]],
    [`issues.id + 1 > 3`, [3]],
    [`id / 2 = 1`, [2, 3]],
    [`id * 0.5 = 1.5`, [3]],
    [`-id = -2 or id = 9223372036854775808`, [2]],
    [`title ~ '^[a-c]$'`, [2, 3]],
    [`title NOT IN ('b') AND title !~ 'c'`, [1]],
    [`(id = 1 OR id = 2) AND priority <> 10`, [2]],
    [`coalesce(priority, 0) = 0`, [3]],
    [`priority IS DISTINCT FROM 10`, [2, 3]],
    [`length(title) > 1`, [1]],
    [`true`, [1, 2, 3]],
    [`1=1`, [1, 2, 3]],
  ])('such as %s select rows', async (where, ids) => {
    await admin.query(`insert into issues (id, title, priority) values (1, 'it''s', 10), (2, 'b', 20), (3, 'c', null)`)
    const { json, status } = await request(`table=issues&offset=-1&where=${encodeURIComponent(where)}`)
    const found = () => changes(json).map(({ value }) => Number(value.id))
    expect([status, status === 200 ? found().toSorted() : json]).toEqual([200, ids])
  })

  test.each([
    `id = 1; drop table issues`,
    `id in (select id from uncaptured)`,
    `pg_sleep(10) is null`,
    `uncaptured.id = 1`,
    `${'('.repeat(100)}true${')'.repeat(100)}`,
    `title = 'unfinished`,
  ])('such as %s are refused', async where => {
    const { status, json } = await request(`table=issues&offset=-1&where=${encodeURIComponent(where)}`)
    expect([400, 403]).toContain(status)
    expect(json.message).toBeTruthy()
  })
})
