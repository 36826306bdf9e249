/**
 * Attacks with valid and malformed requests: every operator on every type, unusual tables, requests made to
 * hit another request's plan, and bytes that are almost HTTP. Every request is answered, none with 5xx.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { exchange } from '../support/raw-http.ts'

/** Column type, value of the first rows (later ones are NULL), and other values to compare with. */
const TYPES: Readonly<Record<string, readonly [value: string, ...others: string[]]>> = {
  text: ['a', "'", '%', '*\\', '\u{1f600}'],
  'varchar(5)': ['ab', 'longer than five'],
  'char(4)': ['ab', 'ab  '],
  '"char"': ['A', '\\377'],
  name: ['n'],
  citype: ['a'],
  bool: ['true', 'maybe'],
  int2: ['1', '40000'],
  int8: ['9223372036854775807', '9223372036854775808', '-9223372036854775809', '1e3', '0x10', ' 1 '],
  'numeric(10,2)': ['1.50', '1e400', 'NaN', 'Infinity', '9'.repeat(500)],
  float4: ['0.1', 'NaN', '-Infinity', '1e-400'],
  float8: ['0.1', '1e999'],
  money: ['$1.25', 'x'],
  date: ['2026-01-02', 'infinity', '5874898-01-01', '0044-03-15 BC', '2026-02-30'],
  time: ['10:00:01', '24:00:00'],
  timetz: ['10:00:01+02', 'allballs'],
  timestamp: ['2026-01-02T03:04:05.123456', 'now'],
  timestamptz: ['2026-01-02T03:04:05.123456Z', '294277-01-01'],
  interval: ['1 mon 2 days 03:00:00', '178000000 years', 'P1Y'],
  bytea: ['\\x00ff', '\\xzz', '\\'],
  uuid: ['00000000-0000-0000-0000-000000000001', 'x'],
  json: ['{"a": 1}', '{', '"\\u0000"'],
  jsonb: ['{"a": 1}', '[', '"\\u0000"', '"\\ud800"', '['.repeat(3_000)],
  jsonpath: ['$."a"', '$'.repeat(99)],
  xml: ['<a/>', '<a>', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
  point: ['(1,2)', '1'],
  polygon: ['((0,0),(1,1),(1,0))'],
  box: ['(1,1),(0,0)'],
  circle: ['<(0,0),1>', '<(0,0),-1>'],
  inet: ['10.0.0.1', '10.0.0.1/33'],
  macaddr: ['08:00:2b:01:02:03'],
  'bit(3)': ['101', '1'],
  varbit: ['1'],
  tsvector: ["'a':1", 'a:99999'],
  tsquery: ["'a' & 'b'", '!'.repeat(8_000), '('.repeat(8_000)],
  oid: ['1', '-1'],
  regclass: ['pg_class', 'no_such_thing', 'a.b.c.d'],
  xid: ['1'],
  pg_lsn: ['0/1'],
  mood: ['glad', 'angry'],
  address: ['(a,1)', '(', '(a,b)', '(,)'],
  positive: ['1', '-1'],
  moody: ['glad', 'angry'],
  jsony: ['{}'],
  listy: ['{a}'],
  'int4[]': ['{1,NULL}', '{{1,2},{3}}', '[0:1]={1,2}', '[1:2147483647]={}', '{'.repeat(3_000)],
  'text[]': ['[0:1]={a,b}', 'a', '(a,"b,c")', '("', '{"}'],
  'mood[]': ['{glad}', '{angry}'],
  'positive[]': ['{1}'],
  'json[]': ['{"{}"}'],
  'point[]': ['{"(1,2)"}'],
  'address[]': ['{"(a,1)"}'],
  int4range: ['[1,5)', '[5,1]', 'empty', '3', '(,)'],
  tstzrange: ['["2026-01-01 00:00:00+00","2026-01-02 00:00:00+00")'],
  int4multirange: ['{[1,2),[4,5)}', '{[1,2),[0,9]}'],
}

const OPERATORS = [
  ...[
    'eq',
    'ne',
    'gt',
    'lte',
    'in',
    'not_in',
    'like',
    'ilike',
    'is_null',
    'is_distinct',
    'contains',
    'contained',
    'overlaps',
  ],
  ...['match', 'imatch', 'fts'],
]

/** Types without an ordering. PostgreSQL can sort by all others. */
const UNORDERED = new Set([
  'json',
  'jsonpath',
  'xml',
  'point',
  'polygon',
  'box',
  'circle',
  'xid',
  'jsony',
  'json[]',
  'point[]',
])

const columns = Object.entries(TYPES).map(([type, [value, ...others]], index) => ({
  name: `c${index}`,
  type,
  value,
  others,
}))

const SCHEMA = `
create extension if not exists citext;
create type mood as enum ('sad', 'glad');
create type address as (street text, number int);
create domain positive as int check (value > 0);
create domain moody as mood;
create domain jsony as json;
create domain listy as text[];
create domain citype as citext;
create table zoo (id int primary key, ${columns.map(({ name, type }) => `${name} ${type}`).join(', ')});
insert into zoo select n, ${columns.map(({ type, value }) => `'${value.replaceAll("'", "''")}'::${type}`).join(', ')}
  from generate_series(1, 3) n;
insert into zoo (id) values (4), (5);
update zoo set ${columnOf('address')} = row(null, null) where id = 2;
update zoo set ${columnOf('address')} = row('b', null) where id = 5;
update zoo set ${columnOf('text[]')} = '{a,b}' where id = 2;

create table nothing ();
insert into nothing default values;
do $$ begin
  execute 'create table wide (id int primary key, ' || (select string_agg('c' || n || ' text', ', ')
    from generate_series(1, 1599) n) || ')';
end $$;
insert into wide (id, c1, c1599) values (1, 'needle', 'x'), (2, 'y', 'a needle too'), (3, null, null);
create table deep (${Array.from({ length: 32 }, (_, n) => `k${n} int`).join(', ')}, j jsonb,
  primary key (${Array.from({ length: 32 }, (_, n) => `k${n}`).join(', ')}));
insert into deep select ${Array.from({ length: 31 }, () => '1').join(', ')}, n, '{}' from generate_series(1, 3) n;
create table t (t int primary key, r text, n text, p text, j int, j1 int, t1_id int references t, page text,
  c1 text, "limit" int, "select" text,
  "or" int, "not" int, "a.b" text, "a.eq" int, "a.not" int, "a->b" int, "a""b" text, "a,b" text, " a" text, "é" text);
insert into t values
  (1, 'r', 'n', 'p', 1, 1, null, 'pg', 'c', 5, 's', 6, 7, 'ab', 8, 9, 10, 'q', 'comma', 'blank', 'accent'),
  (2, 'R', 'N', 'P', 2, 2, 1, 'PG', 'C', 50, 'S', 60, 70, 'AB', 80, 90, 100, 'Q', 'COMMA', 'BLANK', 'ACCENT');
create table parents (id int primary key, code text not null unique);
create table kids (id int primary key, parent text references parents (code), big bigint);
insert into parents values (1, 'a/b'), (2, 'c,d');
insert into kids values (1, 'a/b', 10), (2, 'c,d', 20), (3, null, 30);
create table days (id int, day date, note text, primary key (id, day)) partition by range (day);
create table days2026 partition of days for values from ('2026-01-01') to ('2027-01-01');
insert into days values (1, '2026-01-02', 'x'), (1, '2026-01-03', 'y');
create table visits (id int primary key, day_id int, day date, foreign key (day_id, day) references days);
insert into visits values (1, 1, '2026-01-02'), (2, 1, '2026-01-03');
create function fails(n int) returns text language plpgsql as $$ begin raise exception 'row % is broken', n
  using hint = 'ask Ann'; end $$;
create function reads_what_is_gone() returns text language plpgsql as $$ begin return (select secret from gone); end $$;
create function writes() returns int language plpgsql as $$ begin insert into parents values (7, 'x'); return 1; end $$;
create view failing with (security_invoker = true) as select id, fails(id) as x from parents;
create view stale with (security_invoker = true) as select reads_what_is_gone() as x;
create view writing with (security_invoker = true) as select writes() as x;
create view listing with (security_invoker = true) as select n, n * 2 as twice from generate_series(1, 5) n;
create table hidden (id int primary key, secret text);
create table partly (id int primary key, secret text);
insert into partly values (1, 'secret');
create table many (id int primary key, body text);
insert into many select n, repeat('x', 500) from generate_series(1, 5000) n;
grant select on all tables in schema public to app;
revoke select on hidden, partly from app;
grant select (id) on partly to app;
`

function columnOf(type: string): string {
  const found = columns.find(column => column.type === type)
  if (found === undefined) throw new Error(`no column of type ${type}`)
  return found.name
}

let authorization: string
const database = databaseFixture(SCHEMA)
const gateway = gatewayFixture(database, { toml: 'max_connections = 2' })

beforeAll(async () => {
  authorization = `Bearer ${await gateway.token({ tenantId: 't1' })}`
})

function ask(path: string): Promise<Reply> {
  return gateway.get(path, { as: null, headers: { authorization } })
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items]
  const worker = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: 8 }, worker))
}

describe('types', () => {
  test('every operator on every type is answered or rejected', async () => {
    const asked = columns.flatMap(column => [
      ...OPERATORS.map(operator => ({ column, operator, value: operator === 'is_null' ? '' : column.value })),
      ...column.others.flatMap(value =>
        ['eq', 'in', 'contains', 'like'].map(operator => ({ column, operator, value })),
      ),
    ])
    await inParallel(asked, async ({ column, operator, value }) => {
      const written = operator.endsWith('in') ? `("${value.replace(/["\\]/g, '\\$&')}")` : value
      const reply = await ask(`/api/zoo?select=id&${column.name}.${operator}=${encodeURIComponent(written)}`)
      const shown = `${column.type} ${operator} ${value.slice(0, 80)} → ${reply.status} ${reply.text}`
      expect([200, 400], shown).toContain(reply.status)
      if (reply.status === 400) expect(['PARSE_ERROR', 'QUERY_ERROR'], shown).toContain(reply.json.error.code)
    })
  })
  test('a value of each type finds its rows', async () => {
    const incomparable = new Set(['json', 'jsonpath', 'xml', 'point', 'polygon', 'jsony', 'json[]', 'point[]'])
    await inParallel(columns, async ({ name, type, value }) => {
      const reply = await ask(`/api/zoo?select=id&${name}.eq=${encodeURIComponent(value)}`)
      if (incomparable.has(type)) {
        expect(reply.json.error.message, type).toContain(`column "${name}" is ${type}, whose values cannot be compared`)
        return
      }
      expect(reply.status, `${type} ${reply.text}`).toBe(200)
      expect(reply.json.data, type).toEqual(expect.arrayContaining([{ id: 1 }, { id: 3 }]))
    })
  })
  test('following the cursors of a sort by each type returns every row once', async () => {
    const sorts = columns.flatMap(column => [column.name, `-${column.name}`].map(sort => ({ ...column, sort })))
    await inParallel(sorts, async ({ name, type, sort }) => {
      const whole = await ask(`/api/zoo?select=id&sort=${sort}`)
      if (UNORDERED.has(type)) {
        expect(whole.json.error.message, type).toContain(`column "${name}" is ${type}, whose values have no order`)
        return
      }
      const walked: unknown[] = []
      for (let cursor = ''; walked.length <= 5; ) {
        const page = await ask(`/api/zoo?select=id&sort=${sort}&limit=2${cursor}`)
        expect(page.status, `${type} ${page.text}`).toBe(200)
        walked.push(...page.json.data)
        if (page.json.next_cursor === null) break
        cursor = `&cursor=${page.json.next_cursor}`
      }
      expect(walked, `${type} ${sort}`).toEqual(whole.json.data)
    })
  })
  test('distinct values of each type are returned', async () => {
    await inParallel(columns, async ({ name, type }) => {
      const reply = await ask(`/api/zoo?distinct=${name}`)
      expect(reply.status, `${type} ${reply.text}`).toBe(UNORDERED.has(type) ? 400 : 200)
    })
  })
  test('a row of NULLs is a value, in filters too', async () => {
    const place = columnOf('address')
    expect((await ask(`/api/zoo?select=id&${place}=is_null`)).json.data).toEqual([{ id: 4 }])
    expect((await ask(`/api/zoo?select=id&${place}=is_not_null`)).json.count).toBe(4)
  })
})

describe('tables', () => {
  test('without columns are readable', async () => {
    expect((await ask('/api/nothing')).json.data).toEqual([{}])
    expect((await ask('/api/nothing?stream=true')).text).toBe('{}\n')
    expect((await ask('/api/nothing?search=x')).json.error.message).toContain('no text columns')
    expect((await ask('/api/nothing?id=1')).status).toBe(400)
  })
  test('with 1600 columns are readable', async () => {
    expect((await ask('/api/wide?search=needle&select=id')).json.data).toEqual([{ id: 1 }, { id: 2 }])
    const page = await ask('/api/wide?sort=-c1599&limit=1&id=not.eq.3')
    expect(Object.keys(page.json.data[0])).toHaveLength(1_600)
    const next = await ask(`/api/wide?sort=-c1599&limit=1&id=not.eq.3&cursor=${page.json.next_cursor}`)
    expect(next.json.data[0].id).toBe(2)
  })
  test('with more columns than PostgreSQL can return cause a clear error', async () => {
    const aliases = Array.from({ length: 1_665 }, (_, n) => `a${n}:id`).join(',')
    expect((await ask(`/api/zoo?select=${aliases}`)).json.error).toMatchObject({ code: 'QUERY_ERROR', status: 400 })
  })
  test('with a key of 32 columns can be sorted by 32 paths', async () => {
    const sort = Array.from({ length: 32 }, (_, n) => `j->a${n}`).join(',')
    const first = await ask(`/api/deep?select=k31&limit=2&sort=${sort}`)
    expect(first.json.data).toEqual([{ k31: 1 }, { k31: 2 }])
    const rest = await ask(`/api/deep?select=k31&limit=2&sort=${sort}&cursor=${first.json.next_cursor}`)
    expect(rest.json).toMatchObject({ data: [{ k31: 3 }], next_cursor: null })
  })
  test.each([
    ['t?limit.eq=5', 1],
    ['t?"select"=S', 2],
    ['t?or.eq=6', 1],
    ['t?not=70', 2],
    ['t?a.b=ab', 1],
    ['t?a.b.eq=AB', 2],
    ['t?a.eq.eq=8', 1],
    ['t?"a.not".eq=90', 2],
    ['t?"a->b"=10', 1],
    ['t?"a""b"=Q', 2],
    ['t?"a,b"=comma', 1],
    ['t?%20a=BLANK', 2],
    ['t?%C3%A9=accent', 1],
    ['t?or=("limit".eq.50,"a.b".eq.x)', 2],
    ['t?t=1&r=r&n=n&p=p&j=1&j1=1&page=pg&c1=c', 1],
  ])('with columns named like parameters, operators and generated aliases are readable: %s', async (path, expected) => {
    const reply = await ask(`/api/${path}`)
    expect(
      reply.json.data?.map((row: { t: number }) => row.t),
      reply.text,
    ).toEqual([expected])
  })
  test('aliases equal to generated aliases work in every form of the statement', async () => {
    const query = 'select=t:r,r:n,n:t,page:c1,c1:page&sort=-n,j&limit=1&expand=p:t1,j:nested:t.t1'
    const reply = await ask(`/api/t?${query}&offset=0`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.json.data[0]).toMatchObject({
      t: 'r',
      r: 'n',
      n: 1,
      page: 'c',
      c1: 'pg',
      p: null,
      j: [{ t: 2, t1: { t: 1 } }],
    })
    expect((await ask('/api/t?expand=t1,t1:nested:t')).json.error.message).toContain('"t1" twice')
    expect((await ask('/api/t?expand=p:t1')).json.error.message).toContain(
      '"p" is both a column and an expanded relation',
    )
  })
  test('children are found by a unique column, in a partitioned table, and by a plain id', async () => {
    expect((await ask('/api/parents/1/kids')).json.data).toEqual([{ id: 1, parent: 'a/b', big: 10 }])
    expect((await ask('/api/days/1,2026-01-03/visits')).json.data).toEqual([{ id: 2, day_id: 1, day: '2026-01-03' }])
    expect((await ask('/api/visits?expand=days&id=1')).json.data[0].days.note).toBe('x')
    expect((await ask('/api/parents/99999999999/kids')).json.error.message).toContain('column "id" is integer')
    expect((await ask('/api/parents/5/kids')).status).toBe(404)
    expect((await ask('/api/days2026')).status).toBe(404)
  })
  test('an id with an invalid second part is distinguished from an invalid filter', async () => {
    const reply = await ask('/api/days/1,2026-01-03/visits?id=abc')
    expect(reply.json.error.message).toContain('column "id" is integer and cannot hold "abc"')
  })
  test.each([
    ['limt=1', 'has no column "limt"; did you mean "limit"?'],
    ['strem=true', 'has no column "strem"; did you mean "stream"?'],
    ['bdy=1', 'has no column "bdy"; did you mean "body"?'],
    ['bdy.eq=1', 'has no column "bdy"; did you mean "body"?'],
    ['apikey=1', 'has no column "apikey"'],
  ])('an error about a misspelt parameter suggests the nearest name: %s', async (query, message) => {
    expect((await ask(`/api/many?${query}`)).json.error).toMatchObject({
      code: 'PARSE_ERROR',
      message: expect.stringContaining(message),
    })
  })
  test('views over functions are readable', async () => {
    expect((await ask('/api/listing?sort=-n&limit=2')).json.data).toEqual([
      { n: 5, twice: 10 },
      { n: 4, twice: 8 },
    ])
    expect((await ask('/api/failing')).json.error).toMatchObject({
      code: 'QUERY_ERROR',
      message: 'row 1 is broken',
      hint: 'ask Ann',
    })
    expect((await ask('/api/stale')).json.error).toMatchObject({ code: 'QUERY_ERROR', status: 400 })
    expect((await ask('/api/writing')).json.error).toMatchObject({
      code: 'QUERY_ERROR',
      details: { sqlstate: '25006' },
    })
    expect((await ask('/api/parents')).json.count).toBe(2)
  })
  test('without SELECT privilege are rejected', async () => {
    const missing = { code: 'FORBIDDEN', status: 403, details: { sqlstate: '42501' } }
    for (const path of [
      'hidden',
      'hidden/1',
      'hidden?stream=true',
      'partly',
      'partly?select=id&secret=x',
      'partly?select=id&sort=secret',
    ]) {
      expect((await ask(`/api/${path}`)).json.error, path).toMatchObject(missing)
    }
    expect((await ask('/api/partly?select=id')).json.data).toEqual([{ id: 1 }])
  })
})

describe('plans', () => {
  test('the plan of a stream is not used for a page', async () => {
    const page = '/api/many?select=id&limit=25'
    await ask('/api/many?select=id&stream=true&limit=26')
    const first = await ask(page)
    const second = await ask(`${page}&cursor=${first.json.next_cursor}`)
    expect(second.json.data[0]).toEqual({ id: 26 })
  })
  test('an endless number of shapes evicts plans and does not affect responses', async () => {
    const shapes = Array.from({ length: 600 }, (_, n) => n)
    await inParallel(shapes, async n => {
      const expand = n % 3 === 0 ? `&expand=${Array.from({ length: 10 }, (_, m) => `x${m}:nested:kids`).join(',')}` : ''
      const reply = await ask(`/api/parents?select=a${n}:code${expand}&limit=1`)
      expect(reply.json.data[0][`a${n}`], reply.text).toBe('a/b')
    })
    expect((await ask('/api/parents?select=id')).json.data).toEqual([{ id: 1 }, { id: 2 }])
  })
  test('responses to HEAD hold no connection', async () => {
    for (let n = 0; n < 5; n++) {
      const reply = await gateway.get('/api/many?stream=true', { method: 'HEAD' })
      expect([reply.status, reply.text]).toEqual([200, ''])
    }
    expect((await ask('/api/many/1')).status).toBe(200)
  })
})

describe('limits', () => {
  const cases: readonly (readonly [path: string, status: number])[] = [
    ['many?limit=9007199254740991', 200],
    ['many?limit=9007199254740992', 400],
    ['many?limit=9223372036854775808', 400],
    ['many?limit=-0', 400],
    ['many?limit=1.0', 400],
    ['many?limit=1&offset=9007199254740991', 200],
    ['many?limit=1&offset=9223372036854775807', 400],
    ['many/2147483648', 400],
    ['many/-2147483648', 404],
    ['many/9223372036854775808', 400],
    ['many/%00', 400],
    ['many/1%00', 400],
    ['many/%ed%a0%80', 400],
    ['many/%', 400],
    ['many?body=%c0%80', 400],
    ['many?body=%f4%90%80%80', 400],
    [`many?limit=1&body=${'x'.repeat(30_000)}`, 200],
    [`many?limit=1&body=match.${encodeURIComponent('(a*)*b|'.repeat(500))}`, 200],
    ['many?limit=1&body=match.(', 400],
    ['many?limit=1&body=like.\\', 400],
    [`many?limit=1&search=${encodeURIComponent('or "'.repeat(3_000))}`, 200],
    [`many?search=x&search_columns=${'body,'.repeat(6_000)}body`, 400],
  ]
  test.each(cases.map(([path, status]) => [path.slice(0, 60), status, path] as const))(
    '%s → %i',
    async (_, status, path) => {
      const reply = await ask(`/api/${path}`)
      expect(reply.status, reply.text.slice(0, 300)).toBe(status)
    },
  )
})

describe('bytes that are almost HTTP', () => {
  const head = (line: string, ...more: string[]) =>
    [line, 'Host: x', `Authorization: ${authorization}`, ...more].join('\r\n')
  const last = 'Connection: close'
  const answers = (text: string) => text.split(/(?=HTTP\/1\.1 \d\d\d )/).filter(part => part !== '')

  const send = (...bytes: readonly (string | Buffer)[]) => exchange(gateway.url, ...bytes)

  test.each([
    ['two lengths', ['Content-Length: 5', 'Content-Length: 6'], 'abcdef'],
    ['length and chunks', ['Content-Length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
    ['an unknown coding', ['Transfer-Encoding: xchunked'], '0\r\n\r\n'],
    ['chunked twice', ['Transfer-Encoding: chunked, chunked'], '0\r\n\r\n'],
    ['a negative length', ['Content-Length: -5'], ''],
    ['a length with a sign', ['Content-Length: +5'], 'abcde'],
    ['a space before the colon', ['Content-Length : 5'], 'abcde'],
    ['a folded line', ['X-A: 1', ' Content-Length: 5'], 'abcde'],
    ['a bare line feed', ['X-A: 1\nX-B: 2'], ''],
    ['a NUL in a header', ['X-A: \0'], ''],
    ['a chunk that lies', ['Transfer-Encoding: chunked'], '5\r\nabcdefgh\r\n0\r\n\r\n'],
  ])('%s is rejected, and the connection is closed with everything after it', async (_, headers, body) => {
    const smuggled = `\r\n${head('GET /api/partly?select=id HTTP/1.1', last)}\r\n\r\n`
    const received = await send(
      `${head('POST /api/many HTTP/1.1', 'Content-Type: application/json', ...headers)}\r\n\r\n${body}${smuggled}`,
    )
    expect(answers(received).length, received).toBeLessThanOrEqual(1)
    expect(received).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect(received).not.toContain('"data"')
  })
  test('the body of a GET is not treated as a request', async () => {
    const inner = `${head('GET /api/hidden HTTP/1.1')}\r\n\r\n`
    const received = await send(
      `${head('GET /api/many?limit=0 HTTP/1.1', `Content-Length: ${inner.length}`)}\r\n\r\n${inner}`,
      `${head('GET /api/partly?select=id HTTP/1.1', last)}\r\n\r\n`,
    )
    expect(answers(received).map(answer => answer.slice(9, 12))).toEqual(['200', '200'])
    expect(received).not.toContain('permission denied')
  })
  test('pipelined requests are answered in order', async () => {
    const paths = Array.from({ length: 40 }, (_, n) =>
      n % 5 === 4 ? '/api/many?id=x' : `/api/many/${n + 1}?select=id`,
    )
    const received = await send(
      paths.map((path, n) => `${head(`GET ${path} HTTP/1.1`, ...(n === 39 ? [last] : []))}\r\n\r\n`).join(''),
    )
    const ids = answers(received).map(answer => /"data":\{"id":(\d+)\}/.exec(answer)?.[1] ?? answer.slice(9, 12))
    expect(ids).toEqual(paths.map((_, n) => (n % 5 === 4 ? '400' : String(n + 1))))
  })
  test.each([
    'GET /api/many?body=\u0001 HTTP/1.1',
    'GET /api/many?body=a\tb HTTP/1.1',
    'GET api/many HTTP/1.1',
    'FOO / HTTP/1.1',
    'PRI * HTTP/2.0',
  ])('%j is rejected', async line => {
    expect(await send(`${head(line, last)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /)
  })
  test('no part of a request is copied into a response header', async () => {
    const line = 'GET /api/no%0d%0aX-Injected:%201?a=%0d%0aX-Injected:%201 HTTP/1.1'
    const received = await send(`${head(line, 'X-Request-Id: a%0d%0aX-Injected: 1', last)}\r\n\r\n`)
    const [headers = ''] = received.split('\r\n\r\n')
    expect(headers).toMatch(/^HTTP\/1\.1 404 /)
    expect(headers.toLowerCase()).not.toContain('injected')
  })
})
