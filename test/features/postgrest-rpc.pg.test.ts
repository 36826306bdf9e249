/** docs/guides/coming-from-postgrest.md: calls of functions in PostgREST's dialect. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask } = postgrestFixture(
  `create table items (id int primary key, name text);
   insert into items select n, 'item ' || n from generate_series(1, 5) n;
   create sequence calls; grant usage, update on sequence calls to :anon;
   create type point_2d as (x int, y int);
   create domain evil_int as int check (value > 0);
   create function add_them(a int, b int) returns int language sql immutable as 'select a + b';
   create function hello(name text default 'world') returns text language sql immutable as $$select 'Hello, ' || name$$;
   create function range_of(min int, max int) returns setof items language sql stable as
     'select * from items where id > min and id <= max order by id';
   create function ints() returns setof int language sql stable as 'select generate_series(1, 3)';
   create function point() returns point_2d language sql stable as 'select (10, 5)::point_2d';
   create function no_item() returns items language sql stable as 'select * from items where false';
   create function nothing() returns void language sql as 'select 1';
   create function null_int() returns int language sql as 'select null::int';
   create function count_calls() returns bigint language sql volatile as $$select nextval('calls')$$;
   create function joined(variadic parts text[] default '{}') returns text language sql immutable as
     $$select array_to_string(parts, '-')$$;
   create function array_of(arr int[]) returns int[] language sql immutable as 'select arr';
   create function domain_of(val evil_int) returns evil_int language sql immutable as 'select val';
   create function plus_one(num int, out num_plus_one int) language sql immutable as 'select num + 1';
   create function one_column() returns table (value int) language sql stable as 'select 1';
   create function same(arg int) returns int language sql as 'select 1';
   create function same(arg text) returns text language sql as $$select 'x'$$;
   create function kind_of(json) returns text language sql immutable as 'select json_typeof($1)';
   create function length_of(bytea) returns int language sql immutable as 'select length($1)';
   create function shout(text) returns text language sql immutable as 'select upper($1)';
   create function reserved("varchar" text, "integer" int default 2, "left" boolean default true) returns text
     language sql immutable as $$select concat_ws('/', "varchar", "integer", "left")$$;
   create function several(b int, a int) returns int language sql immutable as 'select 1';
   create function several(a int, b text) returns int language sql immutable as 'select 2';
   create function several(b text, a int, c int default 0) returns int language sql immutable as 'select 3';
   create function nameless(int) returns int language sql immutable as 'select $1';
   create function refuse() returns void language plpgsql as $$begin raise 'no'; end$$;
   create function headers() returns text language plpgsql as $$
   begin
     perform set_config('response.headers', '[{"X-From":"function"}]', true);
     perform set_config('response.status', '418', true);
     return 'x';
   end$$;
   create function insert_item() returns items language sql volatile as
     $$insert into items values (99, 'new') returning *$$;
   grant usage on schema public to :anon;
   grant select, insert on items to :anon`,
  'tx_end = "commit-allow-override"',
)

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(`/rpc/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

describe('results', () => {
  test.each<[path: string, expected: unknown]>([
    ['add_them?a=3&b=4', 7],
    ['hello', 'Hello, world'],
    ['hello?name=you', 'Hello, you'],
    ['ints', [1, 2, 3]],
    ['point', { x: 10, y: 5 }],
    ['no_item', null],
    ['null_int', null],
    ['joined?parts=a&parts=b', 'a-b'],
    ['joined?parts=a', 'a'],
    ['joined', ''],
    ['array_of?arr={1,2}', [1, 2]],
    ['domain_of?val=8', 8],
    ['plus_one?num=5', { num_plus_one: 6 }],
    ['reserved?varchar=a&integer=3&left=false', 'a/3/f'],
    ['ints?select=', [1, 2, 3]],
    ['one_column', [{ value: 1 }]],
    [
      'range_of?min=1&max=3',
      [
        { id: 2, name: 'item 2' },
        { id: 3, name: 'item 3' },
      ],
    ],
    ['range_of?min=0&max=5&select=id&id=gt.1&order=id.desc&limit=2&offset=1', [{ id: 4 }, { id: 3 }]],
  ])('of GET %s are those of the function', async (path, expected) => {
    const { status, json } = await ask(`/rpc/${path}`)
    expect([status, json]).toEqual([200, expected])
  })

  test.each<[path: string, body: unknown, expected: unknown]>([
    ['add_them', { a: 3, b: 4 }, 7],
    ['hello', {}, 'Hello, world'],
    ['hello', '', 'Hello, world'],
    ['array_of', { arr: [1, 2] }, [1, 2]],
    ['joined', { parts: ['a', 'b'] }, 'a-b'],
    ['range_of?select=id', { min: 1, max: 2 }, [{ id: 2 }]],
    ['kind_of', { any: 'object' }, 'object'],
    ['kind_of', [1, 2], 'array'],
    ['domain_of', { val: 8 }, 8],
  ])('of POST %s with %j are those of the function', async (path, body, expected) => {
    const { status, json } = await post(path, body)
    expect([status, json]).toEqual([200, expected])
  })

  test('of a void function have no body', async () => {
    const { status, text, headers } = await post('nothing', {})
    expect([status, text, headers.get('content-type')]).toEqual([204, '', null])
  })

  test('have ranges and counts, and the function is called once', async () => {
    const counted = await ask('/rpc/range_of?min=0&max=5&limit=2&offset=1', { headers: { Prefer: 'count=exact' } })
    expect([counted.status, counted.headers.get('content-range'), counted.json.length]).toEqual([206, '1-2/5', 2])
    const ranged = await ask('/rpc/range_of?min=0&max=5&select=id', { headers: { Range: '1-1' } })
    expect([ranged.status, ranged.headers.get('content-range'), ranged.json]).toEqual([200, '1-1/*', [{ id: 2 }]])
    const one = await ask('/rpc/add_them?a=1&b=2', { headers: { Prefer: 'count=exact' } })
    expect([one.headers.get('content-range'), one.json]).toEqual(['0-0/1', 3])
    const first = (await post('count_calls', {}, { Prefer: 'count=exact' })).json
    expect((await post('count_calls', {})).json).toBe(first + 1)
  })

  test('can be CSV or one object', async () => {
    const csv = await ask('/rpc/range_of?min=0&max=2', { headers: { Accept: 'text/csv' } })
    expect(csv.text).toBe('id,name\n1,"item 1"\n2,"item 2"')
    const one = await ask('/rpc/range_of?min=0&max=1', { headers: { Accept: 'application/vnd.pgrst.object+json' } })
    expect(one.json).toEqual({ id: 1, name: 'item 1' })
    const two = await ask('/rpc/range_of?min=0&max=2', { headers: { Accept: 'application/vnd.pgrst.object+json' } })
    expect([two.status, two.json.code]).toEqual([406, 'PGRST116'])
  })

  test('are headers alone for HEAD', async () => {
    const { status, text, headers } = await ask('/rpc/range_of?min=0&max=2', { method: 'HEAD' })
    expect([status, text, headers.get('content-range')]).toEqual([200, '', '0-1/*'])
  })
})

test('a body can be the only argument', async () => {
  expect((await post('shout', 'hey', { 'Content-Type': 'text/plain' })).json).toBe('HEY')
  expect((await post('length_of', 'abc', { 'Content-Type': 'application/octet-stream' })).json).toBe(3)
})

test('a form has arguments', async () => {
  const { json } = await post('add_them', 'a=1&b=2', { 'Content-Type': 'application/x-www-form-urlencoded' })
  expect(json).toBe(3)
})

test('a function chooses status and headers', async () => {
  const { status, headers } = await post('headers', {})
  expect([status, headers.get('x-from')]).toEqual([418, 'function'])
})

test('a function that writes is refused for GET and rolled back with tx=rollback', async () => {
  const read = await ask('/rpc/insert_item')
  expect([read.status, read.json.code]).toEqual([405, '25006'])
  const tried = await post('insert_item', {}, { Prefer: 'tx=rollback' })
  expect([tried.json, (await ask('/items?id=eq.99')).json]).toEqual([{ id: 99, name: 'new' }, []])
})

describe('errors', () => {
  test.each<[path: string, status: number, error: object]>([
    [
      'hell',
      404,
      {
        code: 'PGRST202',
        message: 'Could not find the function public.hell without parameters in the schema cache',
        details:
          'Searched for the function public.hell without parameters, but no matches were found in the schema cache.',
        hint: 'Perhaps you meant to call the function public.hello',
      },
    ],
    [
      'hello?nam=Peter',
      404,
      {
        message: 'Could not find the function public.hello(nam) in the schema cache',
        hint: 'Perhaps you meant to call the function public.hello(name)',
      },
    ],
    [
      'add_them?a=1&b=2&smthelse=blabla',
      404,
      {
        hint: 'Perhaps you meant to call the function public.add_them(a, b)',
        details:
          'Searched for the function public.add_them with parameters a, b, smthelse, ' +
          'but no matches were found in the schema cache.',
      },
    ],
    [
      'same?arg=1',
      300,
      {
        code: 'PGRST203',
        message:
          'Could not choose the best candidate function between: ' +
          'public.same(arg => integer), public.same(arg => text)',
      },
    ],
    [
      'several?a=1&b=2',
      300,
      {
        code: 'PGRST203',
        message:
          'Could not choose the best candidate function between: public.several(a => integer, b => text), ' +
          'public.several(b => integer, a => integer), public.several(b => text, a => integer, c => integer)',
      },
    ],
    ['nameless', 404, { code: 'PGRST202', hint: null }],
    ['refuse', 400, { code: 'P0001', message: 'no' }],
    ['add_them?a=x&b=2', 400, { code: '22P02' }],
    ['range_of?min=0&max=1&select=nothing', 400, { code: '42703' }],
  ])('of GET %s have the code of PostgREST', async (path, status, error) => {
    const reply = await ask(`/rpc/${path}`)
    expect([reply.status, reply.json]).toEqual([status, expect.objectContaining(error)])
  })

  test.each([
    ['a body that is not JSON', 'hello', 'hello there', 'PGRST102', 'Empty or invalid json'],
    [
      'an argument in the query string',
      'hello?name=x',
      {},
      'PGRST100',
      '"failed to parse filter (x)" (line 1, column 1)',
    ],
  ])('of a POST with %s are 400', async (_, path, body, code, message) => {
    const { status, json } = await post(path, body)
    expect([status, json.code, json.message]).toEqual([400, code, message])
  })

  test('of other methods are 405', async () => {
    const { status, json } = await ask('/rpc/hello', { method: 'DELETE' })
    expect([status, json.code, json.message]).toEqual([405, 'PGRST101', 'Cannot use the DELETE method on RPC'])
  })

  test('of a body that no function takes name what was searched', async () => {
    const { status, json } = await post('hello', 'x', { 'Content-Type': 'text/plain' })
    expect([status, json.details]).toEqual([
      404,
      'Searched for the function public.hello with a single unnamed text parameter, ' +
        'but no matches were found in the schema cache.',
    ])
  })
})
