/**
 * docs/reference/writing.md#change and docs/reference/writing.md#many-rows-at-once: `PATCH` and `DELETE` of
 * one row and of filtered rows; 405 for other methods.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { sender } from '../support/send.ts'

const patch = sender(() => gateway, 'PATCH')
const remove = sender(() => gateway, 'DELETE')
/** The rows after the last statement. */
const sql = (text: string) => executeOn(admin, text)

const TABLES = `
create type size as enum ('s', 'm', 'l');
create table items (
  id int primary key, tenant_id text not null, name text not null unique, stock int not null default 0
    check (stock >= 0), price numeric(12, 2),
  size size, tags text[], meta jsonb, doubled int generated always as (stock * 2) stored
);
create table lines (item_id int references items on delete restrict, part text, n int, primary key (item_id, part));
create table numbered (id int generated always as identity primary key, name text);
create table journal (at int not null, "limit" int, "select" text, "x" int, "t" int);
create table seen (id int primary key, secret text);
create view cheap with (security_invoker = true) as select id, name, price from items where price < 10;
create view counted with (security_invoker = true) as select size, count(*) as n from items group by size;
create schema other;
create table other.things (id int primary key, name text);
create table "Odd ""Table""" ("a.b" int primary key, "__proto__" text, "größe" int);
create table quiet (id int primary key, n int);
create function keep() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger keep before update or delete on quiet for each row execute function keep();
create table parts (id int, region text, n int, primary key (id, region)) partition by list (region);
create table parts_a partition of parts for values in ('a');
create table parts_b partition of parts for values in ('b');

alter table items enable row level security;
alter table items force row level security;
create policy own on items using (tenant_id = current_setting('app.current_tenant_id', true));
grant usage on schema other to app;
grant select, insert, update, delete on all tables in schema public, other to app;
revoke update, select on seen from app;
grant select (id), update (secret) on seen to app;
`

const ROWS = `
delete from lines; delete from items; delete from numbered; delete from journal; delete from seen;
  delete from other.things;
delete from "Odd ""Table"""; truncate quiet; delete from parts;
insert into items (id, tenant_id, name, stock, price, size, tags, meta) values
  (1, 't1', 'cup', 5, 7.50, 's', '{a,b}', '{"k": [1, 2]}'), (2, 't1', 'pan', 3, 20, 'm', '{}', null),
  (3, 't1', 'pot', 0, 8, 'l', null, '{}'),
  (4, 't1', 'lid', 9, null, null, null, null), (9, 't2', 'foreign', 1, 1, 's', null, null);
insert into lines values (1, 'x', 1), (1, 'y,z', 2);
insert into numbered overriding system value values (1, 'one');
insert into journal values (1, 1, 'a', 1, 1), (1, 2, 'b', 2, 2), (2, 3, 'c', 3, 3);
insert into seen values (1, 'x');
insert into other.things values (1, 'a');
insert into "Odd ""Table""" values (1, 'p', 3);
insert into quiet values (1, 1);
insert into parts values (1, 'a', 1);
`

const database = databaseFixture(TABLES)
const admin = clientFixture(() => database.adminUrl)
const gateway = gatewayFixture(database, { toml: 'schemas = ["public", "other"]' })

beforeEach(async () => {
  await sql(ROWS)
})

const minimal = { headers: { Prefer: 'return=minimal' } }
const names = async () => (await sql('select name from items order by id')).map(row => row.name).join()
const ALL = 'cup,pan,pot,lid,foreign'

describe('PATCH of one row', () => {
  test('changes the given columns and returns the row', async () => {
    const reply = await patch('/api/items/1', { name: 'mug', stock: 6 })
    expect(reply.status).toBe(200)
    expect(reply.text).toBe(
      '{"data":{"id":1,"tenant_id":"t1","name":"mug","stock":6,"price":7.50,"size":"s",' +
        '"tags":["a","b"],"meta":{"k": [1, 2]},"doubled":12}}',
    )
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await names()).toBe('mug,pan,pot,lid,foreign')
  })
  test.each([
    ['{"price":null}', 'price', null],
    ['{"tags":["x",null]}', 'tags', ['x', null]],
    ['{"meta":{"a":[{}]}}', 'meta', { a: [{}] }],
    ['{"meta":"text"}', 'meta', 'text'],
    ['{"size":"l"}', 'size', 'l'],
    ['{"price":"12.5"}', 'price', 12.5],
    ['{"stock":"7"}', 'doubled', 14],
  ])('%s', async (body, column, value) => {
    expect((await patch('/api/items/1', body)).json.data[column]).toEqual(value)
    expect((await gateway.get('/api/items/1')).json.data[column]).toEqual(value)
  })
  test.each([
    ['?returning=name', 200, '{"data":{"name":"mug"}}'],
    ['?returning=stock,label:name', 200, '{"data":{"stock":5,"label":"mug"}}'],
    ['?returning=id,meta->k->0', 200, '{"data":{"id":1,"k":1}}'],
  ])('%s', async (query, status, text) => {
    const reply = await patch(`/api/items/1${query}`, { name: 'mug' })
    expect([reply.status, reply.text]).toEqual([status, text])
  })
  test('Prefer: return=minimal → 204; returning takes precedence', async () => {
    const reply = await patch('/api/items/1', { name: 'mug' }, minimal)
    expect([reply.status, reply.text, reply.headers.get('preference-applied')]).toEqual([204, '', 'return=minimal'])
    expect(await names()).toBe('mug,pan,pot,lid,foreign')
    expect((await patch('/api/items/1?returning=id', { name: 'jug' }, minimal)).json).toEqual({ data: { id: 1 } })
  })
  test('can change the key', async () => {
    const reply = await patch('/api/items/4?returning=id', { id: 40 })
    expect([reply.status, reply.text]).toEqual([200, '{"data":{"id":40}}'])
    expect((await gateway.get('/api/items/4')).status).toBe(404)
    expect((await patch('/api/lines/1,y%252Cz', { part: 'y', n: 5 })).json.data).toEqual({
      item_id: 1,
      part: 'y',
      n: 5,
    })
    expect((await patch('/api/parts/1,a', { region: 'b' })).json.data).toEqual({ id: 1, region: 'b', n: 1 })
  })
  test('works in a second schema, with unusual names, and through a view', async () => {
    expect((await patch('/api/other.things/1', { name: 'b' })).json.data.name).toBe('b')
    expect((await patch('/api/Odd%20%22Table%22/1', '{"__proto__":"q","größe":4}')).text).toBe(
      '{"data":{"a.b":1,"__proto__":"q","größe":4}}',
    )
    expect((await patch('/api/cheap?id=1&returning=price', { price: 9 })).json.data).toEqual([{ price: 9 }])
  })
  test.each([
    ['one that is not there', '/api/items/77'],
    ['another tenant’s', '/api/items/9'],
    ['one that a trigger keeps', '/api/quiet/1'],
    ['of a table without a key', '/api/journal/1'],
    ['of a view', '/api/cheap/1'],
    ['of no table', '/api/nope/1'],
  ])('a missing row or table → 404: %s', async (_, path) => {
    for (const options of [{}, minimal]) {
      const reply = await patch(path, path.includes('quiet') ? { n: 2 } : { name: 'x' }, options)
      expect(reply.status, reply.text).toBe(404)
      expect(reply.json.error).toMatchObject({ code: 'NOT_FOUND', status: 404 })
    }
    expect(await names()).toBe(ALL)
  })
  test.each([
    ['{}', 'object without columns'],
    ['', 'the body is empty'],
    ['[]', 'the body is'],
    ['[{"name":"x"}]', 'the body is'],
    ['1', 'the body is a'],
    ['"x"', 'the body is a string'],
    ['null', 'the body is'],
    ['{"name":"x","name":"y"}', 'given twice'],
    ['{"nmae":"x"}', 'table "items" has no column "nmae"; did you mean "name"?'],
    ['{"__proto__":"x"}', 'has no column "__proto__"'],
    ['{"doubled":2}', 'column "doubled" of table "items" is generated'],
    ['{"stock":"many"}', 'column "stock" is integer and cannot hold "many"'],
    [
      '{"size":"xl"}',
      'column "size" is size and cannot hold "xl": invalid input value for enum size: "xl"; expected one of s, m, l',
    ],
  ])('%s → 400', async (body, message) => {
    const reply = await patch('/api/items/1', body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })
    expect(await names()).toBe(ALL)
  })
  test('of an identity column that is always generated → 400', async () => {
    const reply = await patch('/api/numbered/1', { id: 5 })
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining('identity') })
  })
  test.each([
    ['{"stock":-1}', '23514', 'items_stock_check'],
    ['{"name":"pan"}', '23505', 'items_name_key'],
    ['{"id":100}', '23503', 'lines_item_id_fkey'],
    ['{"name":null}', '23502', null],
    ['{"price":12345678901.00}', '22003', null],
  ])('%s → 400 QUERY_ERROR %s', async (body, sqlstate, constraint) => {
    const reply = await patch('/api/items/1', body)
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', details: { sqlstate, constraint } })
  })
  test('of the tenant to another tenant → 403', async () => {
    const reply = await patch('/api/items/1', { tenant_id: 't2' })
    expect(reply.status).toBe(403)
    expect(reply.json.error).toMatchObject({ code: 'FORBIDDEN', details: { sqlstate: '42501' } })
  })
  test('by a role without SELECT privilege needs return=minimal', async () => {
    expect((await patch('/api/seen/1', { secret: 'y' })).status).toBe(403)
    expect((await patch('/api/seen/1?returning=id', { secret: 'y' })).json).toEqual({ data: { id: 1 } })
    expect((await patch('/api/seen/1', { secret: 'z' }, minimal)).status).toBe(204)
    expect(await sql('select secret from seen')).toEqual([{ secret: 'z' }])
  })
  test.each([
    ['/api/items/x', 'cannot hold "x"'],
    ['/api/lines/1', "the id has 1 of the key's 2 values"],
    ['/api/items/1?name=cup', '"name"'],
    ['/api/items/1?select=id', '"select"'],
    ['/api/items/1?retruning=id', 'did you mean "returning"?'],
    ['/api/items/1?returning=nope', 'has no column "nope"'],
    ['/api/items/1?returning=x.id', 'has no column'],
  ])('%s → 400', async (path, message) => {
    const reply = await patch(path, path.includes('lines') ? { n: 1 } : { name: 'x' })
    expect(reply.status, reply.text).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })
    expect(await names()).toBe(ALL)
  })
  test.each([['text/plain'], ['application/xml']])('a body of type %s → 415', async type => {
    expect((await patch('/api/items/1', { name: 'x' }, { headers: { 'Content-Type': type } })).status).toBe(415)
  })
})

describe('DELETE of one row', () => {
  test('returns 204 without a body', async () => {
    const reply = await remove('/api/items/2')
    expect([reply.status, reply.text, reply.headers.get('preference-applied')]).toEqual([204, '', null])
    expect(await names()).toBe('cup,pot,lid,foreign')
    expect((await remove('/api/items/2')).status).toBe(404)
  })
  test.each([
    ['?returning=name', '{"data":{"name":"pan"}}'],
    ['?returning=stock,id', '{"data":{"stock":3,"id":2}}'],
    ['?returning=*', '{"data":{"id":2,"tenant_id":"t1","name":"pan",'],
  ])('%s → 200 with the deleted row', async (query, text) => {
    const reply = await remove(`/api/items/2${query}`)
    expect(reply.status).toBe(200)
    expect(reply.text).toContain(text)
    expect(await names()).toBe('cup,pot,lid,foreign')
  })
  test('honours Prefer', async () => {
    expect((await remove('/api/items/2', undefined, minimal)).headers.get('preference-applied')).toBe('return=minimal')
    const whole = await remove('/api/items/3', undefined, { headers: { Prefer: 'return=representation' } })
    expect(whole.json.data).toMatchObject({ id: 3, name: 'pot' })
    expect(whole.headers.get('preference-applied')).toBe('return=representation')
    expect((await remove('/api/items/4?returning=id', undefined, minimal)).json).toEqual({ data: { id: 4 } })
  })
  test('supports a composite key', async () => {
    expect((await remove('/api/lines/1,y%252Cz?returning=n')).json).toEqual({ data: { n: 2 } })
    expect(await sql('select part from lines')).toEqual([{ part: 'x' }])
  })
  test('of a referenced row → 400', async () => {
    expect((await remove('/api/items/1')).json.error).toMatchObject({
      code: 'QUERY_ERROR',
      details: { sqlstate: expect.stringMatching(/^23(001|503)$/), constraint: 'lines_item_id_fkey' },
    })
  })
  test.each([
    ['/api/items/9', 404],
    ['/api/items/77', 404],
    ['/api/quiet/1', 404],
    ['/api/journal/1', 404],
    ['/api/nope/1', 404],
    ['/api/items/x', 400],
    ['/api/items/2?name=pan', 400],
    ['/api/items/2?returning=nope', 400],
  ])('%s → %i', async (path, status) => {
    expect((await remove(path)).status).toBe(status)
    expect(await names()).toBe(ALL)
  })
  test('ignores a body', async () => {
    expect((await remove('/api/items/2', '{"no json')).status).toBe(204)
  })
})

describe('a filtered request', () => {
  test('PATCH changes the matching rows and returns them', async () => {
    const reply = await patch('/api/items?stock.gte=3&returning=id,price', { price: 1 })
    expect(reply.status).toBe(200)
    expect(reply.json).toEqual({
      data: expect.arrayContaining([
        { id: 1, price: 1 },
        { id: 2, price: 1 },
        { id: 4, price: 1 },
      ]),
      count: 3,
    })
    expect(await sql(`select id from items where price = 1 and tenant_id = 't1' order by id`)).toHaveLength(3)
  })
  test.each([
    ['size=in.(s,m)', [1, 2]],
    ['or=(id.eq.1,name.eq.pot)', [1, 3]],
    ['name=like.p*&stock=0', [3]],
    ['price=is_null', [4]],
    ['meta->k->0=1', [1]],
    ['tags=contains.a', [1]],
    ['not.or=(id.eq.1,id.eq.2)', [3, 4]],
    ['id.in=', []],
    ['id=9', []],
  ])('PATCH ?%s', async (query, ids) => {
    const reply = await patch(`/api/items?${query}&returning=id`, { stock: 1 })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.json.data.map((row: { id: number }) => row.id).sort()).toEqual(ids)
    expect(reply.json.count).toBe(ids.length)
  })
  test('DELETE returns 204, or 200 with returning', async () => {
    const reply = await remove('/api/items?stock.lt=4')
    expect([reply.status, reply.text]).toEqual([204, ''])
    expect(await names()).toBe('cup,lid,foreign')
    expect((await remove('/api/items?name=lid&returning=name,stock')).json).toEqual({
      data: [{ name: 'lid', stock: 9 }],
      count: 1,
    })
    expect((await remove('/api/items?id=77&returning=id')).json).toEqual({ data: [], count: 0 })
    expect((await remove('/api/items?id=77')).status).toBe(204)
  })
  test('can filter by and set the same column', async () => {
    expect((await patch('/api/items?stock=5&returning=id', { stock: 8 })).json.count).toBe(1)
    expect((await patch('/api/items?stock=5&returning=id', { stock: 8 })).json.count).toBe(0)
  })
  test('works on a table without a key, and on columns with the statement’s internal names', async () => {
    expect((await patch('/api/journal?at=1&returning=x,t', { x: 7, t: 8 })).json).toEqual({
      data: [
        { x: 7, t: 8 },
        { x: 7, t: 8 },
      ],
      count: 2,
    })
    expect((await patch('/api/journal?limit=3&returning=select', '{"select":"z"}')).json).toEqual({
      data: [{ select: 'z' }],
      count: 1,
    })
    expect((await remove('/api/journal?select.eq=z')).status).toBe(204)
    expect(await sql('select from journal')).toHaveLength(2)
  })
  test('returns no rows with return=minimal', async () => {
    const reply = await patch('/api/items?stock.gte=0', { price: 1 }, minimal)
    expect([reply.status, reply.text]).toEqual([204, ''])
    expect((await remove('/api/items?id=2', undefined, minimal)).headers.get('preference-applied')).toBe(
      'return=minimal',
    )
  })
  test('needs an explicit filter to match all rows', async () => {
    for (const reply of [
      await patch('/api/items', { stock: 1 }),
      await remove('/api/items'),
      await remove('/api/items?returning=id'),
    ]) {
      expect(reply.status).toBe(400)
      expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining('filter') })
    }
    expect(await names()).toBe(ALL)
  })
  test('does not see rows of another tenant', async () => {
    expect((await remove('/api/items?id.gte=0&returning=id', undefined, { as: { tenantId: 't2' } })).json).toEqual({
      data: [{ id: 9 }],
      count: 1,
    })
    expect(await names()).toBe('cup,pan,pot,lid')
  })

  describe('X-Max-Affected', () => {
    const limit = (rows: string) => ({ headers: { 'X-Max-Affected': rows } })
    test.each([
      ['PATCH', patch],
      ['DELETE', remove],
    ])('%s of more rows → 400, and nothing is changed', async (method, send) => {
      await sql('truncate lines')
      const body = method === 'PATCH' ? { stock: 99 } : undefined
      for (const query of ['?id.gte=0', '?id.gte=0&returning=id']) {
        for (const max of ['3', '1', '0']) {
          const reply = await send(`/api/items${query}`, body, limit(max))
          expect(reply.status).toBe(400)
          expect(reply.json.error).toMatchObject({
            code: 'PARSE_ERROR',
            message: 'the filters match 4 rows, more than the limit in X-Max-Affected; nothing was changed',
          })
        }
      }
      expect(await sql('select from items where stock = 99')).toHaveLength(0)
      expect(await names()).toBe(ALL)
      expect((await send('/api/items?id.gte=0', body, limit('4'))).status).toBeLessThan(300)
    })
    test('of 0 succeeds if no row matches', async () => {
      expect((await remove('/api/items?id=77', undefined, limit('0'))).status).toBe(204)
    })
    test.each(['', '-1', 'x', '1.5', '1e3', ' ', '99999999999999999999', '1,2'])('%j → 400', async value => {
      const reply = await patch('/api/items?id=1', { stock: 1 }, limit(value))
      expect(reply.status).toBe(400)
      expect(reply.json.error).toMatchObject({
        code: 'PARSE_ERROR',
        message: expect.stringContaining('X-Max-Affected'),
      })
    })
    // Texts with which the limit was once distinguished from other database errors. In a value they have no
    // effect.
    test.each(['svc_max_affected 3', 'svc_max_affected:3', '00000000-0000-0000-0000-000000000000 3'])(
      'a value %j does not limit',
      async value => {
        await sql('truncate lines')
        const encoded = encodeURIComponent(value)
        const refused = [
          await patch('/api/items?id.gte=0', { stock: value }, limit('4')),
          await patch('/api/items/1', { stock: value }),
          await patch(`/api/items?stock.eq=${encoded}`, { name: 'x' }),
          await remove(`/api/items?stock.in=1,${encoded}`),
          await remove(`/api/items/${encoded}`),
        ]
        for (const reply of refused) {
          expect(reply.status).toBe(400)
          expect(reply.json.error.code).toBe('PARSE_ERROR')
          expect(reply.json.error.message).toContain(value)
          expect(reply.json.error.message).not.toMatch(/the filters match|X-Max-Affected/)
        }
        expect((await patch('/api/items?id=1', { name: value }, limit('1'))).json.data).toMatchObject([{ name: value }])
        expect((await remove(`/api/items?name.eq=${encoded}`, undefined, limit('1'))).status).toBe(204)
        expect(await names()).toBe('pan,pot,lid,foreign')
      },
    )
    test('is 1000 by default', async () => {
      await sql(`insert into journal select 5, i from generate_series(1, 1001) i`)
      expect((await patch('/api/journal?at=5', { x: 1 })).status).toBe(400)
      expect((await patch('/api/journal?at=5&limit.lte=1000', { x: 1 }, minimal)).status).toBe(204)
      expect((await remove('/api/journal?at=5', undefined, limit('1001'))).status).toBe(204)
    })
  })

  test.each([
    'sort=id',
    'limit=1',
    'offset=1',
    'cursor=x',
    'select=id',
    'distinct=name',
    'expand=lines',
    'stream=true',
    'search=x',
    'search_columns=name',
  ])('%s cannot be combined with filters → 400', async parameter => {
    for (const reply of [
      await patch(`/api/items?id=1&${parameter}`, { stock: 1 }),
      await remove(`/api/items?id=1&${parameter}`),
    ]) {
      expect(reply.status).toBe(400)
      expect(reply.json.error.message).toContain(`"${parameter.split('=')[0]}"`)
    }
    expect(await names()).toBe(ALL)
  })
  test.each([
    ['?nmae=x', 'did you mean "name"?'],
    ['?id=x', 'column "id" is integer and cannot hold "x"'],
    ['?id=1&returning=nope', 'has no column "nope"'],
    ['?id=1&returning=id&returning=name', 'given twice'],
  ])('%s → 400', async (query, message) => {
    const reply = await remove(`/api/items${query}`)
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })
  })
  test('an error names the value of the body, not one of the filters', async () => {
    const reply = await patch('/api/items?name=x', { stock: 'x' })
    expect([200, 400]).toContain(reply.status)
    expect((await patch('/api/items?name=cup', { stock: 'cup' })).json.error.message).toContain(
      'column "stock" is integer and cannot hold "cup"',
    )
  })
})

describe('requests of the same shape share only the statement', () => {
  test('and keep their own values, filters and columns', async () => {
    expect((await patch('/api/items/1?returning=name,stock', { name: 'a', stock: 1 })).json.data).toEqual({
      name: 'a',
      stock: 1,
    })
    expect((await patch('/api/items/2?returning=name,stock', { stock: 2, name: 'b' })).json.data).toEqual({
      name: 'b',
      stock: 2,
    })
    expect((await patch('/api/items?stock=1&name=a&returning=id', { price: 5 })).json.data).toEqual([{ id: 1 }])
    expect((await patch('/api/items?stock=2&name=b&returning=id', { price: 6 })).json.data).toEqual([{ id: 2 }])
    expect((await patch('/api/items?stock=2&returning=id', { name: 'c', price: 6 })).json.data).toEqual([{ id: 2 }])
    expect(await sql('select name, stock, price from items where id < 3 order by id')).toEqual([
      { name: 'a', stock: 1, price: '5.00' },
      { name: 'c', stock: 2, price: '6.00' },
    ])
  })
})

describe('methods', () => {
  test.each([
    ['PUT', '/api/items/1', 'GET, HEAD, PATCH, DELETE'],
    ['POST', '/api/items/1', 'GET, HEAD, PATCH, DELETE'],
    ['PUT', '/api/items', 'GET, HEAD, POST, PATCH, DELETE'],
    ['PATCH', '/api/items/1/lines', 'GET, HEAD'],
    ['DELETE', '/api/items/1/lines', 'GET, HEAD'],
    ['DELETE', '/api/items/aggregate', 'GET, HEAD'],
    ['PATCH', '/api/items/_explain', 'GET, HEAD'],
    ['DELETE', '/api/_schema', 'GET, HEAD'],
    ['PATCH', '/api/counted?n=1', 'GET, HEAD'],
    ['DELETE', '/api/counted?n=1', 'GET, HEAD'],
    ['PUT', '/api/counted', 'GET, HEAD'],
    ['PUT', '/api/counted/1', 'GET, HEAD'],
    ['POST', '/api/counted/1', 'GET, HEAD'],
  ])('%s %s → 405', async (method, path, allow) => {
    const headers = { 'Content-Type': 'application/json' }
    const reply = await gateway.get(path, { method, headers, ...(method === 'DELETE' ? {} : { body: '{"n":1}' }) })
    expect(reply.status, reply.text).toBe(405)
    expect(reply.headers.get('allow')).toBe(allow)
    expect(reply.json.error).toMatchObject({ code: 'METHOD_NOT_ALLOWED', status: 405 })
  })
  test('of a table that does not exist are answered with 404', async () => {
    for (const path of ['/api/nope', '/api/nope/1']) {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect((await gateway.get(path, { method })).json.error.code, `${method} ${path}`).toBe('NOT_FOUND')
      }
    }
  })
  test('HEAD is GET without the body', async () => {
    for (const path of ['/api/items/1', '/api/items?id=1', '/api/items/77']) {
      const whole = await gateway.get(path)
      const head = await gateway.get(path, { method: 'HEAD' })
      expect([head.status, head.text]).toEqual([whole.status, ''])
      if (whole.status === 200) expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(whole.text)))
    }
  })
  test('without a token → 401', async () => {
    expect((await patch('/api/items/1', { stock: 1 }, { as: null })).status).toBe(401)
    expect((await remove('/api/items/1', undefined, { as: null })).status).toBe(401)
  })
})
