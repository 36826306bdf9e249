/** docs/guides/coming-from-postgrest.md: domains with casts from and to json and text. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask } = postgrestFixture(
  `create schema casts;
   create domain color as int check (value >= 0);
   create function casts.to_json(color) returns json language sql immutable
     as $$select to_json('#' || lpad(upper(to_hex($1)), 6, '0'))$$;
   create function casts.to_color(text) returns color language sql immutable
     as $$select (('x' || lpad(ltrim($1, '#'), 8, '0'))::bit(32)::int)::color$$;
   create function casts.to_color(json) returns color language sql stable as $$select casts.to_color($1 #>> '{}')$$;
   create cast (color as json) with function casts.to_json(color) as implicit;
   create cast (text as color) with function casts.to_color(text) as implicit;
   create cast (json as color) with function casts.to_color(json) as implicit;
   create table paints (id int primary key, name text, shade color, plain int default 7);
   create table cans (id int primary key, paint int references paints, shade color);
   insert into paints values (1, 'black', 0), (2, 'red', 16711680), (3, 'blue', 255), (4, 'none', null);
   insert into cans values (1, 2, 255);
   create view shades as select id, shade from paints;
   create function paints_of(min int) returns setof paints language sql stable as
     'select * from paints where id >= min order by id';
   grant usage on schema public, casts to :anon;
   grant select, insert, update, delete on paints, cans, shades to :anon`,
  'tx_end = "rollback"',
)

const rows = async (path: string) => (await ask(path)).json

describe('reads', () => {
  test.each<[path: string, expected: unknown]>([
    ['/paints?id=eq.2', [{ id: 2, name: 'red', shade: '#FF0000', plain: 7 }]],
    ['/paints?id=eq.4&select=shade', [{ shade: null }]],
    ['/paints?id=eq.3&select=name,as:shade', [{ name: 'blue', as: '#0000FF' }]],
    ['/paints?id=eq.3&select=shade::text', [{ shade: '"#0000FF"' }]],
    ['/shades?id=eq.3', [{ id: 3, shade: '#0000FF' }]],
    [
      '/cans?select=*,paints(*)',
      [{ id: 1, paint: 2, shade: '#0000FF', paints: expect.objectContaining({ shade: '#FF0000' }) }],
    ],
    ['/cans?select=id,...paints(of:shade)', [{ id: 1, of: '#FF0000' }]],
    ['/rpc/paints_of?min=3&limit=1', [{ id: 3, name: 'blue', shade: '#0000FF', plain: 7 }]],
  ])('%s shows the form of the domain', async (path, expected) => {
    expect(await rows(path)).toEqual(expected)
  })

  test('also as CSV', async () => {
    const { text } = await ask('/paints?select=id,shade&id=eq.2', { headers: { Accept: 'text/csv' } })
    expect(text).toBe('id,shade\n2,"""#FF0000"""')
  })
})

test.each<[filter: string, ids: readonly number[]]>([
  ['shade=eq.%23FF0000', [2]],
  ['shade=not.eq.%23FF0000', [1, 3]],
  ['shade=gt.0000FE', [2, 3]],
  ['shade=in.(%23FF0000,%23000000)', [1, 2]],
  ['shade=not.in.(%23FF0000)', [1, 3]],
  ['shade=in.()', []],
  ['shade=eq(any).{%230000FF,%23FF0000}', [2, 3]],
  ['shade=isdistinct.%23FF0000', [1, 3, 4]],
  ['or=(shade.eq.%230000FF,shade.is.null)', [3, 4]],
  ['plain=eq.7', [1, 2, 3, 4]],
])('the filter %s converts its values', async (filter, ids) => {
  expect(await rows(`/paints?${filter}&order=id&select=id`)).toEqual(ids.map(id => ({ id })))
})

test.each([
  ['ilike', '~~*'],
  ['like(any)', '~~'],
])('%s does not apply to the form of the domain', async (operator, symbol) => {
  const { status, json } = await ask(`/paints?shade=${operator}.{*ff*}`)
  expect([status, json.code, json.message]).toEqual([404, '42883', `operator does not exist: color ${symbol} unknown`])
})

describe('writes', () => {
  const write = async (method: string, path: string, body: unknown, type = 'application/json') => {
    const headers = { 'Content-Type': type, Prefer: 'return=representation' }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const reply = await ask(path, { method, headers, ...(method === 'DELETE' ? {} : { body: text }) })
    return [reply.status, reply.json]
  }

  test.each<[method: string, path: string, body: unknown, status: number, expected: unknown]>([
    ['POST', '/paints', { id: 9, shade: '#00FF00' }, 201, [{ id: 9, name: null, shade: '#00FF00', plain: 7 }]],
    [
      'POST',
      '/paints?select=shade',
      [
        { id: 8, shade: '#1' },
        { id: 9, shade: null },
      ],
      201,
      [{ shade: '#000001' }, { shade: null }],
    ],
    ['PATCH', '/paints?shade=eq.%23FF0000&select=id,shade', { shade: '#0000AA' }, 200, [{ id: 2, shade: '#0000AA' }]],
    ['PUT', '/paints?id=eq.3&select=shade', { id: 3, name: 'x', shade: '#AA', plain: 1 }, 200, [{ shade: '#0000AA' }]],
    ['DELETE', '/paints?shade=in.(%23000000)&select=id', '', 200, [{ id: 1 }]],
  ])('%s %s', async (method, path, body, status, expected) => {
    expect(await write(method, path, body)).toEqual([status, expected])
  })

  test('a CSV', async () => {
    expect(await write('POST', '/paints?select=shade', 'id,shade\n9,#00FF00', 'text/csv')).toEqual([
      201,
      [{ shade: '#00FF00' }],
    ])
  })

  test('a value that the cast refuses', async () => {
    const [status, error] = await write('POST', '/paints', { id: 9, shade: 'green' })
    expect([status, (error as { code: string }).code]).toEqual([400, '22P02'])
  })
})
