/** docs/reference/writing.md#upsert: `POST` with `X-Upsert` and `X-On-Conflict`. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { EVERYTHING } from '../../src/access/rights.ts'
import { introspect } from '../../src/catalog/introspect.ts'
import type { Catalog } from '../../src/catalog/model.ts'
import { compile } from '../../src/compile/compile.ts'
import { position } from '../../src/language/tree/build.ts'
import { buildAdd } from '../../src/rest/write/tree.ts'
import { openSession } from '../support/catalog.ts'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { POSTGRES_MAJOR, sqlSince } from '../support/postgres-version.ts'
import { sender } from '../support/send.ts'
import { testSince } from '../support/test-since.ts'

const send = sender(() => gateway, 'POST')
/** The rows after the last statement. */
const sql = (text: string) => executeOn(admin, text)

/** `conflict`: the columns for X-On-Conflict. */
function upsert(path: string, body: unknown, conflict?: string, mode = 'true'): Promise<Reply> {
  const headers = { 'X-Upsert': mode, ...(conflict === undefined ? {} : { 'X-On-Conflict': conflict }) }
  return send(path, body, { headers })
}

const TABLES = `
create table users (
  id int primary key, tenant_id text not null default 't1', mail text unique, name text default 'nobody',
    visits int default 0,
  loud text generated always as (upper(name)) stored
);
create table pairs (a int, b text, n int default 7, primary key (a, b));
create table slots (day date, room text, who text, open boolean, note text);
create unique index on slots (day, room);
create unique index on slots (lower(who));
create unique index on slots (note) where open;
create table numbered (id int generated always as identity primary key, code text not null unique, n int);
create table serials (id serial primary key, n int);
create table loose (id serial primary key, k int, n int, unique ${sqlSince(15, 'nulls not distinct')} (k));
create table keyless (n int);
create table parts (id int, region text, n int, primary key (id, region)) partition by list (region);
create table parts_a partition of parts for values in ('a');
create table parts_b partition of parts for values in ('b');
create table "Odd Keys" ("a,b" int, "größe" int, "old" int, n int, unique ("a,b", "größe"), unique ("old"));
create table old (id int primary key, n int);
create table insert_only (id int primary key, n int);
create view view_of_pairs with (security_invoker = true) as select * from pairs;
create schema other;
create table other.things (id int primary key, name text);

alter table users enable row level security;
alter table users force row level security;
create policy own on users using (tenant_id = current_setting('app.current_tenant_id', true));
grant usage on schema other to app;
grant select, insert, update, delete on all tables in schema public, other to app;
grant usage on all sequences in schema public to app;
revoke update on insert_only from app;
`

const database = databaseFixture(TABLES)
const admin = clientFixture(() => database.adminUrl)
const gateway = gatewayFixture(database, { toml: 'schemas = ["public", "other"]' })

beforeEach(async () => {
  await sql(
    'truncate users, pairs, slots, numbered, serials, loose, keyless, parts, ' +
      '"Odd Keys", old, insert_only, other.things restart identity',
  )
})

describe('an upsert of one row', () => {
  test('returns 201 and a Location for a new row, and 200 without one for an existing row', async () => {
    const created = await upsert('/api/users', { id: 1, name: 'a', mail: 'a@x' })
    expect([created.status, created.headers.get('location')]).toEqual([201, '/api/users/1'])
    expect(created.json.data).toEqual({
      ...{ id: 1, tenant_id: 't1', mail: 'a@x', name: 'a', visits: 0, loud: 'A' },
    })
    const updated = await upsert('/api/users', { id: 1, name: 'b' })
    expect([updated.status, updated.headers.get('location')]).toEqual([200, null])
    expect(updated.json.data).toEqual({ ...created.json.data, name: 'b', loud: 'B' })
  })
  test('leaves omitted columns unchanged, and stores null as NULL', async () => {
    await sql(`insert into users values (1, 't1', 'a@x', 'a', 5)`)
    expect((await upsert('/api/users?returning=mail,name,visits', { id: 1, visits: 6 })).json.data).toEqual({
      mail: 'a@x',
      name: 'a',
      visits: 6,
    })
    expect((await upsert('/api/users?returning=mail,name', { id: 1, name: null })).json.data).toEqual({
      mail: 'a@x',
      name: null,
    })
  })
  test('of a key alone returns the row', async () => {
    expect((await upsert('/api/users?returning=id,name', { id: 1 })).status).toBe(201)
    await sql(`update users set name = 'a'`)
    const reply = await upsert('/api/users?returning=id,name', { id: 1 })
    expect([reply.status, reply.text]).toEqual([200, '{"data":{"id":1,"name":"a"}}'])
    expect((await upsert('/api/pairs', { a: 1, b: 'x' })).json.data).toEqual({ a: 1, b: 'x', n: 7 })
    expect((await upsert('/api/pairs', { a: 1, b: 'x' })).status).toBe(200)
  })
  test('without its key inserts the default', async () => {
    expect((await upsert('/api/serials', { n: 1 })).json.data).toEqual({ id: 1, n: 1 })
    expect((await upsert('/api/serials', {})).json.data).toEqual({ id: 2, n: null })
    expect((await upsert('/api/serials', { id: 2, n: 3 })).status).toBe(200)
    expect((await upsert('/api/serials', [{}, {}])).json.data).toEqual([
      { id: 3, n: null },
      { id: 4, n: null },
    ])
  })
  test('with Prefer: return=minimal keeps the status and the Location', async () => {
    const headers = { Prefer: 'return=minimal', 'X-Upsert': 'true' }
    const created = await send('/api/pairs', { a: 1, b: 'x' }, { headers })
    expect([created.status, created.text, created.headers.get('location')]).toEqual([201, '', '/api/pairs/1,x'])
    const updated = await send('/api/pairs', { a: 1, b: 'x', n: 1 }, { headers })
    expect([updated.status, updated.text, updated.headers.get('location')]).toEqual([200, '', null])
    const ignored = await send('/api/pairs', { a: 1, b: 'x' }, { headers: { ...headers, 'X-Upsert': 'ignore' } })
    expect([ignored.status, ignored.text]).toEqual([200, ''])
  })
  test.each(['True', ' true ', 'TRUE'])('is requested by X-Upsert: %j', async mode => {
    expect((await upsert('/api/pairs', { a: 1, b: 'x' }, undefined, mode)).status).toBe(201)
    expect((await upsert('/api/pairs', { a: 1, b: 'x' }, undefined, mode)).status).toBe(200)
  })
  test('is not requested by X-Upsert: false', async () => {
    await upsert('/api/pairs', { a: 1, b: 'x' }, undefined, 'false')
    const reply = await upsert('/api/pairs', { a: 1, b: 'x' }, undefined, 'false')
    expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', details: { sqlstate: '23505' } })
  })
  test.each(['yes', '1', '', 'true,true', 'merge'])('is rejected with X-Upsert: %j → 400', async mode => {
    const reply = await upsert('/api/pairs', { a: 1, b: 'x' }, undefined, mode)
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining('X-Upsert') })
  })
})

describe('the header X-On-Conflict', () => {
  test('can refer to a unique column', async () => {
    await sql(`insert into users values (1, 't1', 'a@x', 'a', 5)`)
    const reply = await upsert('/api/users?returning=id,name', { id: 1, mail: 'a@x', name: 'b' }, 'mail')
    expect([reply.status, reply.text]).toEqual([200, '{"data":{"id":1,"name":"b"}}'])
    expect((await upsert('/api/numbered?returning=n', { code: 'x', n: 1 }, 'code')).status).toBe(201)
    const again = await upsert('/api/numbered?returning=id,n', { code: 'x', n: 2 }, 'code')
    expect([again.status, again.json.data.n]).toEqual([200, 2])
  })
  test.each(['day,room', 'room,day', ' room , day ', '"room","day"'])(
    'can refer to a unique index: %s',
    async conflict => {
      await upsert('/api/slots', { day: '2026-01-01', room: 'r', who: 'x' }, conflict)
      const reply = await upsert('/api/slots?returning=who', { room: 'r', day: '2026-01-01', who: 'y' }, conflict)
      expect([reply.status, reply.text]).toEqual([200, '{"data":{"who":"y"}}'])
    },
  )
  test('treats a key with NULL as unique', async () => {
    expect((await upsert('/api/slots', { day: null, room: 'r' }, 'day,room')).status).toBe(201)
    expect((await upsert('/api/slots', { day: null, room: 'r' }, 'day,room')).status).toBe(201)
    expect(await sql('select from slots')).toHaveLength(2)
  })
  testSince(15, 'NULLS NOT DISTINCT')('but where the index says so', async () => {
    expect((await upsert('/api/loose', { k: null, n: 1 }, 'k')).status).toBe(201)
    const reply = await upsert('/api/loose?returning=k,n', { k: null, n: 2 }, 'k')
    expect([reply.status, reply.text]).toEqual([200, '{"data":{"k":null,"n":2}}'])
    expect(await sql('select from loose')).toHaveLength(1)
  })
  test('can contain unusual names', async () => {
    const row = '{"a,b":1,"größe":2,"n":3}'
    expect((await upsert('/api/Odd%20Keys', row, Buffer.from('größe,"a,b"').toString('latin1'))).status).toBe(201)
    expect((await upsert('/api/Odd%20Keys', row, Buffer.from('"a,b","größe"').toString('latin1'))).status).toBe(200)
    expect((await upsert('/api/Odd%20Keys', '{"old":1,"n":1}', 'old')).status).toBe(201)
    expect((await upsert('/api/Odd%20Keys', '{"old":1,"n":2}', 'old')).status).toBe(200)
    expect((await upsert('/api/old', { id: 1, n: 1 })).status).toBe(201)
    expect((await upsert('/api/old', { id: 1, n: 2 })).status).toBe(200)
    expect((await upsert('/api/other.things', { id: 1 }, 'id')).status).toBe(201)
    expect((await upsert('/api/other.things', { id: 1, name: 'a' }, 'id')).json.data).toEqual({ id: 1, name: 'a' })
  })
  test.each([
    ['/api/users', 'name', 'not a unique key of table "users"; expected id or mail'],
    ['/api/users', 'id,mail', 'not a unique key'],
    ['/api/pairs', 'a', 'expected a,b'],
    ['/api/pairs', 'nope', 'has no column "nope"'],
    ['/api/pairs', 'a,a', 'twice'],
    ['/api/pairs', '', 'X-On-Conflict'],
    ['/api/pairs', ',', 'X-On-Conflict'],
    ['/api/pairs', 'a;b', 'has no column'],
    ['/api/slots', 'who', 'expected day,room'],
    ['/api/slots', 'note', 'expected day,room'],
    ['/api/slots', undefined, 'no primary key'],
    ['/api/keyless', undefined, 'no primary key'],
    ['/api/keyless', 'n', 'it has no unique key'],
    ['/api/view_of_pairs', undefined, 'no primary key'],
  ])('%s %s → 400', async (path, conflict, message) => {
    const reply = await upsert(path, '{}', conflict)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })
  })
  test('without X-Upsert → 400', async () => {
    const reply = await send('/api/pairs', { a: 1, b: 'x' }, { headers: { 'X-On-Conflict': 'a,b' } })
    expect(reply.status).toBe(400)
    expect(reply.json.error.message).toContain('X-Upsert')
  })
  test('with another unique key violated → 400', async () => {
    await sql(`insert into users (id, mail) values (1, 'a@x'), (2, 'b@x')`)
    const reply = await upsert('/api/users', { id: 1, mail: 'b@x' })
    expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', details: { constraint: 'users_mail_key' } })
  })
  test('works through a view', async () => {
    expect((await upsert('/api/view_of_pairs', { a: 1, b: 'x', n: 1 }, 'a,b')).status).toBe(201)
    const reply = await upsert('/api/view_of_pairs', { a: 1, b: 'x', n: 2 }, 'b,a')
    expect([reply.status, reply.text]).toEqual([200, '{"data":{"a":1,"b":"x","n":2}}'])
  })
})

describe('an upsert to a partitioned table', () => {
  test('returns 201 and 200', async () => {
    expect((await upsert('/api/parts', { id: 1, region: 'a', n: 1 })).headers.get('location')).toBe('/api/parts/1,a')
    expect((await upsert('/api/parts', { id: 1, region: 'a', n: 2 })).status).toBe(200)
    expect((await upsert('/api/parts', { id: 1, region: 'b', n: 3 }, 'region,id')).status).toBe(201)
    expect(await sql('select id, region, n from parts order by region')).toEqual([
      { id: 1, region: 'a', n: 2 },
      { id: 1, region: 'b', n: 3 },
    ])
  })
  test('can be a batch', async () => {
    await sql(`insert into parts values (1, 'a', 1)`)
    const reply = await upsert('/api/parts', [
      { id: 2, region: 'b', n: 2 },
      { id: 1, region: 'a', n: 9 },
    ])
    expect(reply.status).toBe(201)
    expect(reply.json.data.map((row: { n: number }) => row.n)).toEqual([2, 9])
  })
})

describe('an upsert with X-Upsert: ignore', () => {
  test('leaves an existing row unchanged and returns null with 200', async () => {
    expect((await upsert('/api/pairs', { a: 1, b: 'x', n: 1 }, undefined, 'ignore')).status).toBe(201)
    const reply = await upsert('/api/pairs', { a: 1, b: 'x', n: 2 }, undefined, 'Ignore')
    expect([reply.status, reply.text, reply.headers.get('location')]).toEqual([200, '{"data":null}', null])
    expect(await sql('select n from pairs')).toEqual([{ n: 1 }])
  })
  test('of a batch returns the rows that were created', async () => {
    await sql(`insert into pairs values (1, 'x', 1)`)
    const reply = await upsert(
      '/api/pairs',
      [
        { a: 1, b: 'x', n: 2 },
        { a: 2, b: 'x' },
        { a: 2, b: 'x', n: 5 },
        { a: 3, b: 'x', n: 3 },
      ],
      'a,b',
      'ignore',
    )
    expect(reply.status, reply.text).toBe(201)
    expect(reply.json).toEqual({
      data: [
        { a: 2, b: 'x', n: 7 },
        { a: 3, b: 'x', n: 3 },
      ],
      count: 2,
    })
    const none = await upsert('/api/pairs', [{ a: 1, b: 'x' }], undefined, 'ignore')
    expect([none.status, none.text]).toEqual([200, '{"data":[],"count":0}'])
  })
  test('can still violate other keys', async () => {
    await sql(`insert into users (id, mail) values (1, 'a@x')`)
    const reply = await upsert('/api/users', { id: 2, mail: 'a@x' }, 'id', 'ignore')
    expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', details: { sqlstate: '23505' } })
  })
})

describe('an upsert of a batch', () => {
  test('keeps the given order; 201 if any row was created, otherwise 200', async () => {
    const rows = [3, 1, 2].map(a => ({ a, b: 'x', n: a * 10 }))
    const created = await upsert('/api/pairs', rows)
    expect([created.status, created.json]).toEqual([201, { data: rows, count: 3 }])
    const updated = await upsert('/api/pairs?returning=n', rows.toReversed())
    expect([updated.status, updated.json.data]).toEqual([200, [{ n: 20 }, { n: 10 }, { n: 30 }]])
    expect((await upsert('/api/pairs', [...rows, { a: 4, b: 'x', n: 1 }])).status).toBe(201)
    const headers = { Prefer: 'return=minimal', 'X-Upsert': 'true' }
    const minimal = await send('/api/pairs', rows, { headers })
    expect([minimal.status, minimal.text]).toEqual([200, ''])
    expect((await send('/api/pairs', [...rows, { a: 5, b: 'x', n: 1 }], { headers })).status).toBe(201)
    expect((await upsert('/api/pairs', [])).status).toBe(201)
    expect((await upsert('/api/pairs', [], 'nothing')).json.error.message).toContain('no column "nothing"')
  })
  test('with differing keys leaves omitted columns unchanged, and uses defaults in new rows', async () => {
    await sql(`insert into users values (1, 't1', 'a@x', 'a', 5), (2, 't1', 'b@x', 'b', 6)`)
    const reply = await upsert('/api/users?returning=id,mail,name,visits', [
      { id: 1, name: 'A' },
      { id: 2, visits: 7 },
      { id: 3 },
      { id: 4, mail: 'd@x', name: null },
    ])
    expect(reply.status, reply.text).toBe(201)
    expect(reply.json.data).toEqual([
      { id: 1, mail: 'a@x', name: 'A', visits: 5 },
      { id: 2, mail: 'b@x', name: 'b', visits: 7 },
      { id: 3, mail: null, name: 'nobody', visits: 0 },
      { id: 4, mail: 'd@x', name: null, visits: 0 },
    ])
  })
  test('that ignores rows returns the created ones in the given order, also with differing keys', async () => {
    await sql(`insert into users values (2, 't1', 'b@x', 'b', 6), (5, 't1', 'e@x', 'e', 6), (6, 't1', 'f@x', 'f', 6)`)
    const rows = [
      { id: '01', name: 'A' },
      { id: 2, name: 'B' },
      { id: 3, visits: 1 },
      { id: 4, name: 'D' },
      { id: 5, visits: 2 },
      { id: 6 },
      { id: 7, visits: 3 },
      { id: 4, name: 'again' },
      { id: 8, name: 'H' },
      { id: 9 },
    ]
    const reply = await upsert('/api/users?returning=id', rows, undefined, 'ignore')
    expect(reply.status, reply.text).toBe(201)
    expect(reply.json.data.map((row: { id: number }) => row.id)).toEqual([1, 3, 4, 7, 8, 9])
  })
  // PostgreSQL detects this for rows with the same columns. Others are separate statements, so the gateway
  // has to.
  const REPEATED = { code: 'PARSE_ERROR', message: expect.stringContaining('several rows with {"id":1}') }
  test.each<[string, unknown]>([
    [
      'neighbours',
      [
        { id: 1, name: 'a' },
        { id: 1, name: 'b' },
      ],
    ],
    [
      'with differing keys',
      [
        { id: 1, name: 'a' },
        { id: 1, visits: 1 },
      ],
    ],
    ['far apart', [{ id: 1 }, { id: 2, name: 'x' }, { id: 3, visits: 1 }, { id: 1, mail: 'm' }]],
    ['in one key set, apart', [{ id: 1, name: 'x' }, { id: 2 }, { id: 1, name: 'y' }]],
    ['written differently', [{ id: 1 }, { name: 'x', id: '01' }]],
    ['with an escape', '[{"id":1},{"\\u0069d":1,"name":"x"}]'],
  ])('with a duplicate key → 400, and nothing is written: %s', async (_, rows) => {
    const reply = await upsert('/api/users', rows)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.json.error).toMatchObject(REPEATED)
    expect(await sql('select from users')).toHaveLength(0)
  })
  test('with a duplicate key in X-On-Conflict → 400', async () => {
    const rows = [
      { id: 1, mail: 'a' },
      { id: 2, mail: 'a', name: 'x' },
    ]
    const reply = await upsert('/api/users', rows, 'mail')
    expect(reply.status).toBe(400)
    expect(reply.json.error.message).toContain('{"mail":"a"}')
    const slots = [
      { day: '2026-01-01', room: 'r' },
      { day: '2026-1-1', room: 'r', who: 'x' },
    ]
    const twice = await upsert('/api/slots', slots, 'room,day')
    expect(twice.status).toBe(400)
    expect(twice.json.error).toMatchObject({
      code: 'PARSE_ERROR',
      message: expect.stringContaining('"day":"2026-01-01"'),
    })
  })
  test('can have several keys with NULL', async () => {
    const slots = [
      { day: null, room: 'r' },
      { day: null, room: 'r', who: 'x' },
      { day: null, room: 'r', note: 'z' },
    ]
    const reply = await upsert('/api/slots', slots, 'room,day')
    expect([reply.status, reply.json.count]).toEqual([201, 3])
  })
  test('with a partial key in some rows is rejected, because duplicates cannot be detected', async () => {
    const slots = [
      { day: '2026-01-01', room: 'r' },
      { room: 'r', who: 'x' },
    ]
    const reply = await upsert('/api/slots', slots, 'room,day')
    expect(reply.status).toBe(400)
    expect(reply.json.error.message).toContain('give the same key columns in every row')
    expect(await sql('select from slots')).toHaveLength(0)
  })
  test('has the same default in all rows that omit a column', async () => {
    const pairs = [
      { name: 'b', mail: 'm@x' },
      { name: 'b', mail: 'm@x', visits: 1 },
    ]
    const rows = pairs.map((row, index) => ({ id: index + 1, ...row }))
    expect((await upsert('/api/users', rows, 'mail')).status).toBe(400)
    const serials = [{ n: 1 }, { n: 1, k: 1 }]
    expect((await upsert('/api/loose', serials, 'id')).status).toBe(201)
    expect(await sql('select from loose')).toHaveLength(2)
  })
  test('has an error that gives the index of the row', async () => {
    const reply = await upsert('/api/users', [{ id: 1 }, { id: 'x', name: 'y' }])
    expect(reply.json.error).toMatchObject({
      code: 'PARSE_ERROR',
      message: expect.stringContaining('item 2: column "id" is integer and cannot hold "x"'),
    })
  })
  test('with generated columns → 400', async () => {
    expect((await upsert('/api/users', { id: 1, loud: 'X' })).status).toBe(400)
    expect((await upsert('/api/numbered', { id: 1, code: 'x' })).status).toBe(400)
  })
})

describe('rights for an upsert', () => {
  test('never include another tenant’s row, by any key and in any mode', async () => {
    await sql(`insert into users values (9, 't2', 'z@x', 'Zoe', 1)`)
    const before = await sql('select * from users')
    for (const mode of ['true', 'ignore']) {
      for (const [body, conflict] of [
        [{ id: 9, name: 'evil' }, undefined],
        [{ id: 9 }, undefined],
        [{ id: 9, tenant_id: 't2', name: 'evil' }, undefined],
        [{ id: 8, mail: 'z@x', name: 'evil' }, 'mail'],
        [[{ id: 9, name: 'evil' }], undefined],
        [[{ id: 1, name: 'x' }, { id: 9 }], undefined],
        [[{ id: 9 }, { id: 1, name: 'x' }], undefined],
      ] as const) {
        for (const prefer of ['return=representation', 'return=minimal']) {
          const headers = { 'X-Upsert': mode, Prefer: prefer, ...(conflict ? { 'X-On-Conflict': conflict } : {}) }
          const reply = await send('/api/users', body, { headers })
          if (mode === 'true') expect(reply.status, reply.text).toBe(403)
          expect(reply.text).not.toContain('Zoe')
          expect(reply.status).toBeLessThan(500)
        }
      }
    }
    expect(await sql(`select * from users where tenant_id = 't2'`)).toEqual(before)
  })
  test('include update even for a new row', async () => {
    expect((await upsert('/api/insert_only', { id: 1, n: 1 })).status).toBe(403)
    expect((await send('/api/insert_only', { id: 1, n: 1 })).status).toBe(201)
    expect((await upsert('/api/insert_only', { id: 1, n: 2 })).status).toBe(403)
    expect((await upsert('/api/insert_only', { id: 1, n: 2 }, undefined, 'ignore')).json).toEqual({ data: null })
  })
})

describe('concurrent upserts', () => {
  // Before PostgreSQL 18, a new row of a partition cannot be distinguished from one that another request has
  // just created.
  test('of 20 clients and one key create one row, without a failure', async () => {
    for (const [path, body] of [
      ['/api/pairs', (n: number) => ({ a: 1, b: 'x', n })],
      ['/api/parts', (n: number) => ({ id: 1, region: 'a', n })],
    ] as const) {
      const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => upsert(path, body(n))))
      const statuses = replies.map(reply => reply.status)
      const created = statuses.filter(status => status === 201).length
      expect(created).toBeGreaterThan(0)
      if (path === '/api/pairs' || POSTGRES_MAJOR >= 18) expect(created).toBe(1)
      expect(statuses.filter(status => status === 200)).toHaveLength(20 - created)
    }
    expect(await sql('select from pairs')).toHaveLength(1)
    expect(await sql('select from parts')).toHaveLength(1)
  })
  test('of the same keys in different orders are all answered, none with 500', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => index)
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const order = keys.map(key => (key * (n % 2 === 0 ? 3 : 7) + n) % 20)
        return upsert(
          '/api/pairs',
          order.map(a => ({ a, b: 'x', n })),
        )
      }),
    )
    // Two upserts that lock in different orders can deadlock; PostgreSQL ends one, which can be sent again.
    for (const { status, json } of replies) {
      expect([200, 201, 503]).toContain(status)
      if (status === 503) expect(json.error.code).toBe('UNAVAILABLE')
    }
    const rows = await sql('select n, count(*)::int as rows from pairs group by n')
    expect(rows).toEqual([{ n: expect.any(Number), rows: 20 }])
  })
})

describe('created and updated rows are distinguished on every server version', () => {
  let catalog: Catalog
  const session = fixture(() => openSession(database.url))

  beforeAll(async () => {
    catalog = await introspect(session.query, { schemas: ['public'], exposedViews: ['view_of_pairs'] })
  })
  const client = clientFixture(() => database.url)

  interface Case {
    readonly table: string
    readonly target: readonly string[]
    readonly rows: (n: number) => readonly Record<string, unknown>[]
  }

  function statement(serverVersion: number, { table: name, target, rows }: Case, existing: 'update' | 'ignore') {
    const table = catalog.tables.get(name)
    if (table === undefined) throw new Error(`no table ${name}`)
    const columns = Object.keys(rows(0)[0] ?? {})
    const tree = buildAdd({
      ...{ kind: 'insert', table, columns, value: position(1), rows: 'many', upsert: { target, existing } },
      ...{ key: [], returning: [{ kind: 'star' }] },
    })
    const context = { catalog: { ...catalog, serverVersion }, rights: EVERYTHING, searchLanguage: 'english' }
    return compile(tree, context, { kind: 'write', answer: { key: [], created: true, rowsMax: null } }).text
  }

  const created = async (text: string, rows: readonly unknown[]) => {
    const result = await client.query({ text, values: [JSON.stringify(rows)], rowMode: 'array' })
    return result.rows.map(row => row[1])
  }

  const pair = (a: number, n: number) => ({ a, b: 'x', n })
  const part = (id: number, n: number) => ({ id, region: 'a', n })
  const CASES: readonly (Case & { readonly by: Readonly<Record<number, string>> })[] = [
    {
      table: 'pairs',
      target: ['a', 'b'],
      rows: n => [pair(1, n), pair(2, n)],
      by: { 170000: 'xmax', 180000: 'old.a IS NULL' },
    },
    {
      table: 'parts',
      target: ['id', 'region'],
      rows: n => [part(1, n), part(2, n)],
      by: { 170000: 'svc_before', 180000: 'old.id IS NULL' },
    },
    {
      table: 'view_of_pairs',
      target: ['a', 'b'],
      rows: n => [pair(1, n), pair(2, n)],
      by: { 170000: 'svc_before', 180000: 'old.a IS NULL' },
    },
    {
      table: 'old',
      target: ['id'],
      rows: n => [
        { id: 1, n },
        { id: 2, n },
      ],
      by: { 170000: 'xmax', 180000: 'xmax' },
    },
  ]
  // Statements printed for an older version also run on a newer one.
  const VERSIONS = [150000, 170000, 180000].filter(version => version < 180000 || POSTGRES_MAJOR >= 18)
  test.each(CASES.flatMap(one => VERSIONS.map(version => [one.table, version, one] as const)))(
    '%s on %i',
    async (_, version, one) => {
      const update = statement(version, one, 'update')
      const ignore = statement(version, one, 'ignore')
      const [first, second] = one.rows(1)
      expect(update).toContain(one.by[Math.max(version, 170000)])
      expect(await created(update, [first])).toEqual([true])
      expect(await created(update, [first])).toEqual([false])
      expect(await created(update, one.rows(2))).toEqual([false, true])
      expect(await created(ignore, [second])).toEqual([])
      await client.query('begin')
      expect(await created(update, one.rows(3))).toEqual([false, false])
      expect(await created(update, one.rows(4))).toEqual([false, false])
      await client.query('rollback')
      // A row that another transaction locks, or changed and rolled back, is not new either.
      await client.query('begin')
      await client.query(`select from ${one.table} for update`)
      await client.query('commit')
      expect(await created(update, one.rows(5))).toEqual([false, false])
    },
  )
})
