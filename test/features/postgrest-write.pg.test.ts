/** docs/guides/coming-from-postgrest.md: writes in PostgREST's dialect. */
import { beforeEach, describe, expect, test } from 'vitest'
import { clientFixture } from '../support/fixtures.ts'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask, adminUrl, anon } = postgrestFixture(
  `create table items (
     id serial primary key, name text not null, price numeric(8,2) default 1, tags text[], data jsonb);
   create table pairs (a int, b int, note text, primary key (a, b));
   create table notes (text text);
   create table insert_only (id int primary key, secret text);
   create table codes (id int primary key default 1, bits bit(5), letters char(5), label varchar(3));
   create table filled (
     id int primary key, doubled int generated always as (id * 2) stored, n int generated always as identity);
   create table told (id int primary key);
   create function tell() returns trigger language plpgsql as $$
   begin
     perform set_config('response.headers', '[{"X-Told": "yes"}]', true);
     return null;
   end $$;
   create trigger tell after insert or delete on told execute function tell();
   create view cheap as select id, name from items where price < 5;
   grant usage on schema public to :anon;
   grant select, insert, update, delete on items, pairs, notes, codes, filled, cheap, told to :anon;
   grant insert on insert_only to :anon;
   grant usage on all sequences in schema public to :anon`,
  'tx_end = "commit-allow-override"',
)
const admin = clientFixture(() => adminUrl())

beforeEach(async () => {
  await admin.query(`
    truncate items restart identity; truncate pairs, notes, insert_only, codes;
    insert into items (name, price) values ('one', 1), ('two', 2), ('three', 3)`)
})

const write = (method: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(path, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
const REPRESENTATION = { Prefer: 'return=representation' }
const names = async () => (await admin.query('select name from items order by id')).rows.map(({ name }) => name)

test('a trigger sets headers of the response', async () => {
  expect((await write('POST', '/told', { id: 1 })).headers.get('x-told')).toBe('yes')
  expect((await write('DELETE', '/told?id=eq.1', undefined)).headers.get('x-told')).toBe('yes')
  expect((await write('POST', '/items', { name: 'x' })).headers.get('x-told')).toBeNull()
})

describe('POST', () => {
  test('inserts a row and answers nothing by default', async () => {
    const { status, text, headers } = await write('POST', '/items', { name: 'four', tags: ['a', 'b'], data: { x: 1 } })
    expect([status, text, headers.get('content-range'), headers.get('content-type')]).toEqual([201, '', '*/*', null])
    const { rows } = await admin.query('select name, tags, data from items where id = 4')
    expect(rows).toEqual([{ name: 'four', tags: ['a', 'b'], data: { x: 1 } }])
  })

  test('returns selected columns with return=representation', async () => {
    const { status, json, headers } = await write('POST', '/items?select=id,label:name', { name: 'x' }, REPRESENTATION)
    expect([status, json, headers.get('preference-applied')]).toEqual([
      201,
      [{ id: 4, label: 'x' }],
      'return=representation',
    ])
  })

  test('inserts several rows and counts them', async () => {
    const { status, headers } = await write('POST', '/items', [{ name: 'a' }, { name: 'b' }], { Prefer: 'count=exact' })
    expect([status, headers.get('content-range'), await names()]).toEqual([
      201,
      '*/2',
      ['one', 'two', 'three', 'a', 'b'],
    ])
  })

  test('answers Location with return=headers-only', async () => {
    const one = await write('POST', '/items', { name: 'x' }, { Prefer: 'return=headers-only' })
    expect([one.headers.get('location'), one.text]).toEqual(['/items?id=eq.4', ''])
    const pair = await write('POST', '/pairs', { a: 1, b: 2 }, { Prefer: 'return=headers-only' })
    expect(pair.headers.get('location')).toBe('/pairs?a=eq.1&b=eq.2')
    const several = await write('POST', '/items', [{ name: 'x' }, { name: 'y' }], { Prefer: 'return=headers-only' })
    expect(several.headers.get('location')).toBeNull()
  })

  test('keeps the length of types', async () => {
    const row = { bits: '10101', letters: 'abcde', label: 'abc' }
    const { status, json } = await write('POST', '/codes?select=bits,letters,label', row, REPRESENTATION)
    expect([status, json]).toEqual([201, [row]])
    const changed = { bits: '01010', letters: 'vwxyz', label: 'x' }
    const path = '/codes?bits=eq.10101&letters=eq.abcde&select=bits,letters,label'
    expect((await write('PATCH', path, changed, REPRESENTATION)).json).toEqual([changed])
    const long = await write('POST', '/codes', { id: 2, label: 'abcd' })
    expect([long.status, long.json.code]).toEqual([400, '22001'])
  })

  test('merging no rows creates nothing', async () => {
    const prefer = (resolution: string) => ({ Prefer: `return=representation, resolution=${resolution}` })
    const merged = await write('POST', '/items', [], prefer('merge-duplicates'))
    expect([merged.status, merged.json]).toEqual([200, []])
    expect((await write('POST', '/items', [], prefer('ignore-duplicates'))).status).toBe(201)
    expect((await write('POST', '/items', [], REPRESENTATION)).status).toBe(201)
  })

  test('inserts CSV and forms', async () => {
    const csv = await write('POST', '/items', 'name,price\n"a ""b"", c",4\nd,NULL\n', { 'Content-Type': 'text/csv' })
    const form = await write('POST', '/items', 'name=e+f&price=2.5', {
      'Content-Type': 'application/x-www-form-urlencoded',
    })
    expect([csv.status, form.status]).toEqual([201, 201])
    const { rows } = await admin.query('select name, price from items where id > 3 order by id')
    expect(rows).toEqual([
      { name: 'a "b", c', price: '4.00' },
      { name: 'd', price: null },
      { name: 'e f', price: '2.50' },
    ])
  })

  test('writes only the columns that the parameter columns lists', async () => {
    const { json } = await write(
      'POST',
      '/items?columns=name&select=name,price',
      { name: 'x', price: 9, other: 1 },
      REPRESENTATION,
    )
    expect(json).toEqual([{ name: 'x', price: 1 }])
  })

  test('uses null for a missing value of columns, and the default with missing=default', async () => {
    const rows = [{ name: 'a', price: 5 }, { name: 'b' }]
    const path = '/items?columns=name,price&select=name,price'
    expect((await write('POST', path, rows, REPRESENTATION)).json).toEqual([
      { name: 'a', price: 5 },
      { name: 'b', price: null },
    ])
    const reply = await write('POST', path, rows, { Prefer: 'return=representation, missing=default' })
    expect(reply.json).toEqual([
      { name: 'a', price: 5 },
      { name: 'b', price: 1 },
    ])
    expect(reply.headers.get('preference-applied')).toBe('missing=default, return=representation')
  })

  test('merges or ignores duplicates', async () => {
    const merged = await write('POST', '/items', [{ id: 1, name: 'new' }], {
      Prefer: 'resolution=merge-duplicates, return=representation',
    })
    expect([merged.status, merged.json[0].name]).toEqual([200, 'new'])
    const ignored = await write(
      'POST',
      '/items?on_conflict=id',
      [
        { id: 1, name: 'x' },
        { id: 9, name: 'nine' },
      ],
      {
        Prefer: 'resolution=ignore-duplicates, return=representation',
      },
    )
    expect([ignored.status, ignored.json.map((row: { id: number }) => row.id)]).toEqual([201, [9]])
    expect(ignored.headers.get('preference-applied')).toBe('resolution=ignore-duplicates, return=representation')
    expect((await names()).slice(0, 2)).toEqual(['new', 'two'])
  })

  test('a role that can only insert can insert', async () => {
    const { status } = await write('POST', '/insert_only', { id: 1, secret: 's' })
    expect(status).toBe(201)
    const refused = await write('POST', '/insert_only', { id: 2, secret: 's' }, REPRESENTATION)
    expect([refused.status, refused.json.code]).toEqual([401, '42501'])
  })

  test('one object is returned for the singular media type, or nothing is written', async () => {
    const headers = { ...REPRESENTATION, Accept: 'application/vnd.pgrst.object+json' }
    const one = await write('POST', '/items?select=id', { name: 'x' }, headers)
    expect([one.status, one.json]).toEqual([201, { id: 4 }])
    const two = await write('POST', '/items', [{ name: 'y' }, { name: 'z' }], headers)
    expect([two.status, two.json.code, two.json.details]).toEqual([406, 'PGRST116', 'The result contains 2 rows'])
    expect(await names()).toEqual(['one', 'two', 'three', 'x'])
  })

  test.each<[what: string, path: string, body: unknown, status: number, error: object]>([
    ['invalid JSON', '/items', '{x}', 400, { code: 'PGRST102', message: 'Empty or invalid json' }],
    ['an empty body', '/items', '', 400, { code: 'PGRST102', message: 'Empty or invalid json' }],
    ['rows with different keys', '/items', [{ name: 'a' }, { id: 7 }], 400, { message: 'All object keys must match' }],
    [
      'an unknown column',
      '/items',
      { nothing: 1 },
      400,
      { code: 'PGRST204', message: "Could not find the 'nothing' column of 'items' in the schema cache" },
    ],
    ['a missing value', '/items', { price: 1 }, 400, { code: '23502' }],
    ['a duplicate', '/items', { id: 1, name: 'x' }, 409, { code: '23505', details: 'Key (id)=(1) already exists.' }],
    ['an unknown table', '/nothing', { a: 1 }, 404, { code: 'PGRST205' }],
    ['a conflict target without a key', '/items?on_conflict=name', { name: 'a' }, 400, { code: '42P10' }],
  ])('of %s is refused', async (_, path, body, status, error) => {
    const reply = await write('POST', path, body, path.includes('?') ? { Prefer: 'resolution=merge-duplicates' } : {})
    expect([reply.status, reply.json]).toEqual([status, expect.objectContaining(error)])
    expect(await names()).toEqual(['one', 'two', 'three'])
  })
})

describe('PATCH', () => {
  test('sets columns without a value to their defaults with missing=default', async () => {
    const prefer = { Prefer: 'return=representation, missing=default' }
    const path = '/items?id=eq.3&columns=name,price&select=name,price'
    const one = await write('PATCH', path, { name: 'x' }, prefer)
    expect([one.status, one.json, one.headers.get('preference-applied')]).toEqual([
      ...[200, [{ name: 'x', price: 1 }], 'missing=default, return=representation'],
    ])
    expect((await write('PATCH', path, { name: 'y', price: 2 }, prefer)).json).toEqual([{ name: 'y', price: 2 }])
    const none = await write('PATCH', '/items?id=eq.3&columns=price&select=name,price', { other: 1 }, prefer)
    expect(none.json).toEqual([{ name: 'y', price: 1 }])
    expect((await write('PATCH', path, { name: 'z' }, REPRESENTATION)).json).toEqual([{ name: 'z', price: null }])
  })

  test('changes the rows that filters select', async () => {
    const { status, text, headers } = await write('PATCH', '/items?id=in.(1,2)', { name: 'x' })
    expect([status, text, headers.get('content-range'), await names()]).toEqual([204, '', '0-1/*', ['x', 'x', 'three']])
  })

  test('returns the rows, and their number', async () => {
    const { status, json, headers } = await write(
      'PATCH',
      '/items?id=eq.1&select=id,name',
      { name: 'x' },
      {
        Prefer: 'return=representation, count=exact',
      },
    )
    expect([status, json, headers.get('content-range')]).toEqual([200, [{ id: 1, name: 'x' }], '0-0/1'])
  })

  test('changes nothing without columns or rows', async () => {
    const empty = await write('PATCH', '/items', {}, REPRESENTATION)
    expect([empty.status, empty.json, empty.headers.get('content-range')]).toEqual([200, [], '*/*'])
    const none = await write('PATCH', '/items?id=eq.99', { name: 'x' })
    expect([none.status, none.headers.get('content-range')]).toEqual([204, '*/*'])
  })

  test('is rolled back above max-affected', async () => {
    const { status, json } = await write(
      'PATCH',
      '/items',
      { name: 'x' },
      { Prefer: 'handling=strict, max-affected=2' },
    )
    expect([status, json]).toEqual([
      400,
      {
        code: 'PGRST124',
        details: 'The query affects 3 rows',
        hint: null,
        message: 'Query result exceeds max-affected preference constraint',
      },
    ])
    expect(await names()).toEqual(['one', 'two', 'three'])
  })

  test('is rolled back with tx=rollback, which is reported', async () => {
    const { status, json, headers } = await write(
      'PATCH',
      '/items?id=eq.1',
      { name: 'x' },
      {
        Prefer: 'tx=rollback, return=representation',
      },
    )
    expect([status, json[0].name, headers.get('preference-applied')]).toEqual([
      200,
      'x',
      'return=representation, tx=rollback',
    ])
    expect(await names()).toEqual(['one', 'two', 'three'])
  })
})

describe('DELETE', () => {
  test('deletes the rows that filters select', async () => {
    const { status, headers } = await write('DELETE', '/items?id=gt.1', undefined, { Prefer: 'count=exact' })
    expect([status, headers.get('content-range'), await names()]).toEqual([204, '*/2', ['one']])
  })

  test('returns the deleted rows', async () => {
    const { status, json } = await write('DELETE', '/items?name=eq.two&select=name', undefined, REPRESENTATION)
    expect([status, json]).toEqual([200, [{ name: 'two' }]])
  })
})

describe('PUT', () => {
  test('creates and replaces a row', async () => {
    const created = await write('PUT', '/items?id=eq.7&select=id,name', { id: 7, name: 'seven' }, REPRESENTATION)
    expect([created.status, created.json]).toEqual([201, [{ id: 7, name: 'seven' }]])
    const replaced = await write('PUT', '/items?id=eq.7&select=name', { id: 7, name: 'VII' }, REPRESENTATION)
    expect([replaced.status, replaced.json]).toEqual([200, [{ name: 'VII' }]])
    expect((await write('PUT', '/items?id=eq.7', { id: 7, name: 'x' })).status).toBe(204)
  })

  test('writes the row with the key of the filters, whatever the range', async () => {
    const rows = [
      { id: 8, name: 'other' },
      { id: 7, name: 'seven' },
    ]
    const { status, json } = await write('PUT', '/items?id=eq.7&select=id,name', rows, {
      ...{ ...REPRESENTATION, Range: '1-1', Accept: 'application/vnd.pgrst.object+json' },
    })
    expect([status, json]).toEqual([201, { id: 7, name: 'seven' }])
    expect(await names()).toEqual(['one', 'two', 'three', 'seven'])
  })

  test.each<[path: string, body: object]>([
    ['/items?id=eq.07', { id: 7, name: 'same' }],
    ['/items?id=eq.7', { id: '+7', name: 'same' }],
    [
      '/items?id=eq.7',
      [
        { id: 8, name: 'other' },
        { id: '07', name: 'same' },
      ],
    ],
  ])('with %s and %j writes the row whose key is the same value', async (path, body) => {
    const { status, json } = await write('PUT', `${path}&select=id,name`, body, REPRESENTATION)
    expect([status, json]).toEqual([201, [{ id: 7, name: 'same' }]])
    expect(await names()).toEqual(['one', 'two', 'three', 'same'])
  })

  test.each<[path: string, body: object, status: number, code: string]>([
    ['/items?id=eq.x', { id: 7, name: 'x' }, 400, '22P02'],
    ['/items?id=eq.7', { name: 'x' }, 400, 'PGRST115'],
    ['/items?id=eq.7&columns=name', { id: '07', name: 'x' }, 400, 'PGRST115'],
    ['/items?id=gt.7', { id: 7, name: 'x' }, 405, 'PGRST105'],
    ['/items?name=eq.x', { id: 7, name: 'x' }, 405, 'PGRST105'],
    ['/pairs?a=eq.1', { a: 1, b: 1 }, 405, 'PGRST105'],
    ['/items?id=eq.7&limit=1', { id: 7, name: 'x' }, 400, 'PGRST114'],
    ['/items?id=eq.7', { id: 8, name: 'x' }, 400, 'PGRST115'],
    [
      '/items?id=eq.7',
      [
        { id: 7, name: 'x' },
        { id: 7, name: 'y' },
      ],
      400,
      'PGRST115',
    ],
  ])('of %s is refused', async (path, body, status, code) => {
    const reply = await write('PUT', path, body)
    expect([reply.status, reply.json.code]).toEqual([status, code])
  })
})

test('the anonymous role is the one that writes', async () => {
  await admin.query(`alter table notes alter column text set default current_user`)
  const { json } = await write('POST', '/notes', {}, REPRESENTATION)
  expect(json).toEqual([{ text: anon }])
})

test('values can repeat keys of JSON, rows cannot', async () => {
  const { status, text } = await write(
    'POST',
    '/items?select=data',
    '{"name":"x","data":{"a":1,"a":2}}',
    REPRESENTATION,
  )
  expect([status, text]).toEqual([201, '[{"data":{"a": 2}}]'])
  const refused = await write('POST', '/items', '{"name":"x","name":"y"}')
  expect([refused.status, refused.json.code]).toEqual([400, 'PGRST102'])
})

describe('columns that PostgreSQL fills in', () => {
  test.each([
    ['POST', '/filled', { id: 1, doubled: 2 }, 'cannot insert a non-DEFAULT value into column "doubled"'],
    ['POST', '/filled', { id: 1, n: 2 }, 'cannot insert a non-DEFAULT value into column "n"'],
    ['PATCH', '/filled?id=eq.1', { doubled: 2 }, 'column "doubled" can only be updated to DEFAULT'],
  ])('are refused in the words of PostgreSQL: %s %s %j', async (method, path, body, message) => {
    const { status, json } = await write(method, path, body)
    expect([status, json.code, json.message]).toEqual([400, '428C9', message])
    const own = await admin
      .query(
        `${method === 'POST' ? 'insert into filled (id, doubled) values (1, 2)' : 'update filled set doubled = 2'}`,
      )
      .catch(error => error)
    expect(own.code).toBe('428C9')
  })
})
