/** docs/guides/coming-from-postgrest.md: reads of tables and views in PostgREST's dialect. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask } = postgrestFixture(
  `create domain document as tsvector;
   create domain short_document as document check (length(value) < 100);
   create table items (
     id int primary key, name text, tags text[], span int4range, data jsonb, words tsvector, active boolean, plain json,
     price numeric(8,2), made timestamptz default '2024-01-01T00:00:00Z',
     summary short_document
   );
   insert into items (id, name, tags, span, data, words, active, price) values
     (1, 'one', '{a,b}', '[1,5)', '{"a": {"b": 1}, "l": [1,2]}', to_tsvector('english', 'fat cats'), true, 1.5),
     (2, 'two', '{b,c}', '[5,9)', '{"a": {"b": 2}}', to_tsvector('english', 'thin dogs'), false, 2),
     (3, 'three', null, null, null, null, null, null),
     (4, 'a "quoted", (name)', '{}', 'empty', '{"a": {}}', to_tsvector('simple', 'cats'), true, 10);
   update items set summary = to_tsvector('simple', name) where id < 3;
   create view cheap as select id, name from items where price < 5;
   create table secret (id int primary key);
   create table hidden_rows (id int primary key, owner text);
   insert into hidden_rows values (1, ':author'), (2, 'someone');
   grant usage on schema public to :anon, :author;
   grant select on items, cheap to :anon;
   grant select on items, cheap, secret to :author`,
)

const ids = async (query: string): Promise<unknown> => {
  const reply = await ask(`/items?select=id&order=id&${query}`)
  return reply.status === 200 ? reply.json.map((row: { id: number }) => row.id) : reply.json
}

describe('filters', () => {
  test.each<[query: string, expected: number[]]>([
    ['id=eq.1', [1]],
    ['name=like(all).{t%,%o}', [2]],
    ['data->"a"->b=eq.2', [2]],
    ['id=neq.1', [2, 3, 4]],
    ['id=gt.2', [3, 4]],
    ['id=gte.2&id=lt.4', [2, 3]],
    ['id=lte.1', [1]],
    ['name=like.t*', [2, 3]],
    ['name=ilike.T*', [2, 3]],
    ['name=match.^t', [2, 3]],
    ['name=imatch.^T', [2, 3]],
    ['name=in.(one,"a \\"quoted\\", (name)")', [1, 4]],
    ['id=in.()', []],
    ['id=not.in.(1,2)', [3, 4]],
    ['price=is.null', [3]],
    ['price=not.is.null', [1, 2, 4]],
    ['price=is.not_null', [1, 2, 4]],
    ['active=is.true', [1, 4]],
    ['active=is.FALSE', [2]],
    ['active=is.unknown', [3]],
    ['active=isdistinct.true', [2, 3]],
    ['tags=cs.{a}', [1]],
    ['tags=cd.{a,b,c}', [1, 2, 4]],
    ['tags=ov.{c,x}', [2]],
    ['span=sl.[5,10)', [1]],
    ['span=sr.[0,5)', [2]],
    ['span=nxr.[0,6)', [1]],
    ['span=nxl.[5,8)', [2]],
    ['span=adj.[9,12)', [2]],
    ['words=fts.cat', [1]],
    ['words=fts(english).cats', [1]],
    ['words=plfts(simple).cats', [4]],
    ['words=phfts.thin dogs', [2]],
    ['words=wfts.cats or dogs', [1, 2]],
    ['name=fts(simple).three', [3]],
    ['summary=fts(simple).two', [2]],
    ['summary=not.wfts(simple).two', [1]],
    ['data->a->>b=eq.1', [1]],
    ['data->a->b=eq.2', [2]],
    ['data->l->>-1=eq.2', [1]],
    ['or=(id.eq.1,name.eq.two)', [1, 2]],
    ['and=(id.gt.1,or(name.eq.two,name.like.*ree))', [2, 3]],
    ['not.or=(id.eq.1,id.eq.2)', [3, 4]],
    ['or=(id.in.(1,2),name.eq."a \\"quoted\\", (name)")', [1, 2, 4]],
    ['or=(not.and(id.gt.1,id.lt.4),id.eq.2)', [1, 2, 4]],
    ['id=eq(any).{1,3}', [1, 3]],
    ['name=like(all).{t*,*o}', [2]],
    ['name=not.like(any).{t*,o*}', [4]],
    ['id=eq(any).{}', []],
  ])('of the query %s find their rows', async (query, expected) => {
    expect(await ids(encodeURI(query).replaceAll('+', '%2B'))).toEqual(expected)
  })
})

describe('select', () => {
  test('a column, an alias, a cast and a JSON path', async () => {
    const { json } = await ask('/items?select=id,label:name,price::text,data->a->b,l:data->l->0&id=eq.1')
    expect(json).toEqual([{ id: 1, label: 'one', price: '1.50', b: 1, l: 1 }])
  })
  test('all columns by default', async () => {
    const { json } = await ask('/cheap?order=id')
    expect(json).toEqual([
      { id: 1, name: 'one' },
      { id: 2, name: 'two' },
    ])
  })
  test('an unknown column is answered as PostgreSQL does', async () => {
    const { status, json } = await ask('/items?select=nothing')
    expect([status, json]).toEqual([
      400,
      { code: '42703', details: null, hint: null, message: 'column items.nothing does not exist' },
    ])
  })
  test('the nearest column is suggested', async () => {
    const { json } = await ask('/items?nam=eq.one')
    expect(json.hint).toBe('Perhaps you meant to reference the column "items.name".')
  })
  test('nulls are stripped on request', async () => {
    const { json, headers } = await ask('/items?id=eq.3', {
      headers: { Accept: 'application/vnd.pgrst.array+json;nulls=stripped' },
    })
    expect(json).toEqual([{ id: 3, name: 'three', made: '2024-01-01T00:00:00+00:00' }])
    expect(headers.get('content-type')).toBe('application/vnd.pgrst.array+json;nulls=stripped; charset=utf-8')
  })
  test('CSV has the quotes of rows in PostgreSQL', async () => {
    const { text, headers } = await ask('/items?select=id,name,price&order=id', { headers: { Accept: 'text/csv' } })
    expect(text).toBe('id,name,price\n1,one,1.50\n2,two,2.00\n3,three,\n4,"a ""quoted"", (name)",10.00')
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
  })
})

describe('order and ranges', () => {
  test.each<[query: string, expected: number[]]>([
    ['order=id.desc', [4, 3, 2, 1]],
    ['order=price.desc.nullslast', [4, 2, 1, 3]],
    ['order=price.nullsfirst', [3, 1, 2, 4]],
    ['order=data->a->>b.desc.nullslast,id', [2, 1, 3, 4]],
    ['order=id&limit=2&offset=1', [2, 3]],
    ['order=id&limit=0', []],
  ])('of the query %s apply to the rows', async (query, expected) => {
    const { json } = await ask(`/items?select=id&${query}`)
    expect(json.map((row: { id: number }) => row.id)).toEqual(expected)
  })

  test('a Range header selects rows', async () => {
    const { status, headers, json } = await ask('/items?select=id&order=id', { headers: { Range: '1-2' } })
    expect([status, headers.get('content-range'), json]).toEqual([200, '1-2/*', [{ id: 2 }, { id: 3 }]])
  })

  test('count=exact reports the total and a partial response', async () => {
    const { status, headers } = await ask('/items?select=id&limit=2', { headers: { Prefer: 'count=exact' } })
    expect([status, headers.get('content-range'), headers.get('preference-applied')]).toEqual([
      206,
      '0-1/4',
      'count=exact',
    ])
  })

  test('count=planned and count=estimated are answered', async () => {
    for (const count of ['planned', 'estimated']) {
      const { headers } = await ask('/items', { headers: { Prefer: `count=${count}` }, method: 'HEAD' })
      expect(headers.get('content-range')).toMatch(/^0-3\/\d+$/)
    }
  })

  test('count=estimated is the larger of the number of rows and the estimate', async () => {
    const counted = async (count: string) =>
      (await ask('/items?id=lt.3', { headers: { Prefer: `count=${count}` } })).headers.get('content-range')
    // Without statistics, PostgreSQL expects more rows than there are.
    const planned = await counted('planned')
    expect(planned).toMatch(/^0-1\/\d{2,}$/)
    expect([await counted('exact'), await counted('estimated')]).toEqual(['0-1/2', planned])
  })

  test('an offset beyond the last row is answered with 416', async () => {
    const { status, headers, json } = await ask('/items?offset=100', { headers: { Prefer: 'count=exact' } })
    expect([status, headers.get('content-range')]).toEqual([416, '*/4'])
    expect(json).toEqual({
      code: 'PGRST103',
      details: 'An offset of 100 was requested, but there are only 4 rows.',
      hint: null,
      message: 'Requested range not satisfiable',
    })
  })

  test('one object is returned for the singular media type', async () => {
    const headers = { Accept: 'application/vnd.pgrst.object+json' }
    const one = await ask('/items?select=id&id=eq.1', { headers })
    expect([one.status, one.json, one.headers.get('content-type')]).toEqual([
      200,
      { id: 1 },
      'application/vnd.pgrst.object+json; charset=utf-8',
    ])
    const several = await ask('/items?select=id', { headers })
    expect([several.status, several.json.code, several.json.details]).toEqual([
      406,
      'PGRST116',
      'The result contains 4 rows',
    ])
  })
})

describe('errors', () => {
  test.each<[path: string, status: number, error: object]>([
    ['/nothing', 404, { code: 'PGRST205', message: "Could not find the table 'public.nothing' in the schema cache" }],
    ['/itemz', 404, { hint: "Perhaps you meant the table 'public.items'" }],
    ['/items/1', 404, { code: 'PGRST125', message: 'Invalid path specified in request URL' }],
    ['/secret', 401, { code: '42501', message: 'permission denied for table secret' }],
    ['/items?id=eq.x', 400, { code: '22P02', message: 'invalid input syntax for type integer: "x"' }],
    ['/items?select=id::no_such_type', 400, { code: '42704', message: 'type "no_such_type" does not exist' }],
    [
      '/items?id=noop.1',
      400,
      {
        code: 'PGRST100',
        message: '"failed to parse filter (noop.1)" (line 1, column 1)',
        details: 'unexpected "o" expecting "not" or operator (eq, gt, ...)',
      },
    ],
    [
      '/items?order=id.ac',
      400,
      {
        message: '"failed to parse order (id.ac)" (line 1, column 4)',
        details: 'unexpected "c" expecting "asc", "desc", "nullsfirst" or "nullslast"',
      },
    ],
    [
      '/items?or=()',
      400,
      {
        message: '"failed to parse logic tree (())" (line 1, column 4)',
        details:
          'unexpected ")" expecting field name (* or [a..z0..9_$]), negation operator (not) ' +
          'or logic operator (and, or)',
      },
    ],
    ['/items?other.id=eq.1', 400, { code: 'PGRST108' }],
    ['/items?select=data->>a->1', 404, { code: '42883', message: 'operator does not exist: text -> integer' }],
    ['/items?data->>a->>b=eq.1', 404, { code: '42883', message: 'operator does not exist: text ->> unknown' }],
    ['/items?plain=eq.{}', 404, { code: '42883' }],
    ['/items?plain->a=eq.1', 404, { code: '42883' }],
    ['/items?order=plain', 404, { code: '42883' }],
    ['/items?id=eq(any).{1,2', 400, { code: '22P02', message: 'malformed array literal: "{1,2"' }],
  ])('of %s have the code of PostgREST', async (path, status, error) => {
    const reply = await ask(path)
    expect([reply.status, reply.json]).toEqual([status, expect.objectContaining(error)])
  })
})

test('an empty select means all columns', async () => {
  expect((await ask('/cheap?select=&id=eq.1')).json).toEqual([{ id: 1, name: 'one' }])
})

test('a key of a JSON path has any characters that do not end it', async () => {
  const { json } = await ask('/items?select=data->!@%23$%^%26*_x,data->l->>-1&id=eq.1')
  expect(json).toEqual([{ '!@#$%^&*_x': null, l: '2' }])
  expect((await ask('/items?select=data->(x')).json.details).toBe(
    'unexpected "(" expecting "-", digit or any non reserved character different from: .,>()',
  )
})
