/**
 * docs/reference/writing.md#bodies: a row is PostgreSQL's JSON form of it, and numbers keep every digit in
 * both directions. A row that was read can be written back: for every column type the stored row is the same.
 */
import fc from 'fast-check'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'
import { POSTGRES_MAJOR } from '../support/postgres-version.ts'
import { sender } from '../support/send.ts'

/** Values that PostgreSQL supports since a major version. */
function since(major: number, values: readonly string[]): readonly string[] {
  return POSTGRES_MAJOR < major ? [] : values
}

/** Values of PostgreSQL's types, as literals: the limits of each type, and special values. */
const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  bool: ['t', 'f'],
  bytea: ['\\x', '\\x00', '\\xdeadbeef', '\\x5c225c'],
  char: ['', 'a', '"', '\\', '\\377', '\\200', ' '],
  name: ['', 'a b', 'x'.repeat(63), 'é"\\'],
  int2: ['-32768', '32767', '0'],
  int4: ['-2147483648', '2147483647'],
  int8: ['-9223372036854775808', '9223372036854775807', '9007199254740993'],
  float4: ['3.4028235e+38', '1.4e-45', '-0', '0.1', '16777217', 'NaN', 'Infinity', '-Infinity'],
  float8: [
    ...[
      '1.7976931348623157e+308',
      '5e-324',
      '2.2250738585072014e-308',
      '-0',
      '0',
      '0.1',
      '0.30000000000000004',
      '1e23',
    ],
    ...['9007199254740993', '1e21', '123456789012345680000', 'NaN', 'Infinity', '-Infinity'],
  ],
  numeric: [
    ...[
      '0',
      '-0.00',
      '1.000',
      '0.10',
      '1e400',
      '1e-400',
      'NaN',
      'Infinity',
      '-Infinity',
      '123456789012345678901234567890.123456789',
    ],
    ...[
      '9'.repeat(1000),
      `0.${'0'.repeat(999)}1`,
      `-${'1234567890'.repeat(100)}.${'0987654321'.repeat(100)}`,
      '-1e131071',
      '1e-16383',
    ],
  ],
  money: ['0', '-92233720368547758.08', '92233720368547758.07', '1234.5'],
  text: [
    '',
    ' ',
    'null',
    'NULL',
    '{}',
    '"',
    '\\',
    '\\\\"',
    "'",
    '\n\r\t\b\f',
    '\u0001\u001f\u007f',
    '\u0080\u2028\u2029\ufeff',
    'é',
    'e\u0301',
    '😀👩‍👩‍👧',
    '\uffff',
    '\u{10ffff}',
    '</script>',
    '%00',
    '\\u0000',
    'x'.repeat(100_000),
  ],
  varchar: ['', ' trailing ', '表'],
  bpchar: ['', 'a', 'a  ', '   '],
  date: [
    '4713-01-01 BC',
    '5874897-12-31',
    '0001-01-01',
    '0001-12-31 BC',
    '10000-01-01',
    'infinity',
    '-infinity',
    '2024-02-29',
  ],
  time: ['00:00:00', '23:59:59.999999', '24:00:00', '00:00:00.000001'],
  timetz: ['00:00:00+15:59:59', '24:00:00-15:59:59', '12:34:56.123456+05:45', '23:59:59.999999-00:00:01'],
  timestamp: [
    '4713-01-01 00:00:00 BC',
    '294276-12-31 23:59:59.999999',
    '0044-03-15 12:00:00 BC',
    '10000-01-01 00:00:00',
    'infinity',
    '-infinity',
    '2026-01-01 00:00:00.000001',
  ],
  timestamptz: [
    '4713-01-01 00:00:00+00 BC',
    '294276-12-31 23:59:59.999999+00',
    '0044-03-15 12:00:00+00 BC',
    '10000-01-01 00:00:00+00',
    'infinity',
    '-infinity',
    '1883-11-18 12:03:57.5+04:56:02',
  ],
  interval: [
    '0',
    '1 year 2 mons 3 days 04:05:06.789',
    '-1 mons +1 day -00:00:01',
    '178000000 years',
    '-178000000 years',
    '00:00:00.000001',
    '2147483647 days',
    '@ 1 hour ago',
    ...since(15, ['-9223372036.854775807 secs']),
    ...since(17, ['infinity', '-infinity']),
  ],
  bit: ['1', '0', '10101', '1'.repeat(100)],
  varbit: ['', '1', '0001000'],
  inet: ['10.0.0.1', '10.0.0.1/8', '::1', '::ffff:10.0.0.1', 'fe80::1/64', '0.0.0.0/0'],
  cidr: ['10.0.0.0/8', '::/0', '2001:db8::/32'],
  macaddr: ['08:00:2b:01:02:03'],
  macaddr8: ['08:00:2b:ff:fe:01:02:03'],
  uuid: ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  json: [
    '{}',
    '[]',
    '"text"',
    '1',
    '1.0',
    '-0',
    '1e400',
    'true',
    '{ "b" : 1,\n "a":[ null ] }',
    '{"a":{"b":null}}',
    '["\\u00e9\\ud83d\\ude00\\/"]',
    '12345678901234567890.10',
    '""',
    '"null"',
  ],
  jsonb: [
    '{}',
    '[]',
    '"text"',
    '1',
    '1.0',
    '-0',
    '1e400',
    'false',
    '{"b": 1, "a": [null, {}]}',
    '{"": {"": [[[]]]}}',
    '"\\u00e9\\n\\\\"',
    '12345678901234567890.10',
    '""',
    '"null"',
    '[1, "x", null, true]',
  ],
  jsonpath: ['$', '$."a"[*]?(@ > 1)', 'strict $.a'],
  xml: ['', '<a b="c">d</a>', 'text &amp; <x/>', '<!-- c --><é/>'],
  tsvector: ['', "'a':1A,2B 'it''s':3", "'\\\\' '😀'"],
  tsquery: ['', "'a' & !'b' | 'c':*A", "'x' <-> 'y' <2> 'z'"],
  point: ['(0,-0)', '(1e+300,-1.5)', '(NaN,Infinity)'],
  lseg: ['[(0,0),(1,1)]'],
  path: ['((0,0),(1,1))', '[(0,0),(1,1)]'],
  box: ['(1,1),(0,0)'],
  polygon: ['((0,0),(1,1),(2,0))'],
  line: ['{1,-1,0}'],
  circle: ['<(0,0),1.5>'],
  pg_lsn: ['0/0', '16/B374D848', 'FFFFFFFF/FFFFFFFF'],
  oid: ['0', '4294967295'],
  tid: ['(0,1)', '(4294967295,65535)'],
  xid: ['0', '4294967295'],
  xid8: ['0', '18446744073709551615'],
  cid: ['0', '4294967295'],
  pg_snapshot: ['10:20:10,14,15'],
  txid_snapshot: ['10:20:10,14,15'],
  refcursor: ['', 'a "cursor"'],
  aclitem: ['postgres=r/postgres', '=arwd/postgres'],
  regclass: ['pg_class', '-', '4294967295'],
  regcollation: ['"C"', '-'],
  regconfig: ['english', '-'],
  regdictionary: ['simple', '-'],
  regnamespace: ['pg_catalog', '-'],
  regoper: ['pg_catalog.||/', '0'],
  regoperator: ['+(integer,integer)', '0'],
  regproc: ['pg_catalog.now', '-'],
  regprocedure: ['abs(integer)', '-'],
  regrole: ['postgres', '-'],
  regtype: ['integer', 'double precision[]', '-'],
  int4range: ['empty', '[1,5)', '(,)', '[-2147483648,2147483647)', '[1,)'],
  int8range: ['[-9223372036854775808,9223372036854775807)', '(,1)'],
  numrange: ['(0.10,1e400]', '[NaN,NaN]', '[-Infinity,Infinity]'],
  daterange: ['[-infinity,infinity)', '["4713-01-01 BC",5874897-12-31)', '[infinity,]'],
  tsrange: [
    '["2026-01-01 00:00:00","2026-01-01 00:00:00.000001"]',
    '["0044-03-15 12:00:00 BC",)',
    '[-infinity,infinity]',
  ],
  tstzrange: ['["2026-01-01 00:00:00+00",infinity)', '(,"294276-12-31 23:59:59.999999+00"]', 'empty'],
  int4multirange: ['{}', '{[1,5),[7,9)}', '{(,)}'],
  int8multirange: ['{[1,9223372036854775807)}'],
  nummultirange: ['{}', '{[0.10,0.20),(5,)}'],
  datemultirange: ['{[2026-01-01,2026-02-01),[infinity,)}'],
  tsmultirange: ['{["2026-01-01 00:00:00","2026-01-02 00:00:00")}'],
  tstzmultirange: ['{(,"2026-01-01 00:00:00+00"),["2027-01-01 00:00:00+00",)}'],
}

/** Types that no application uses for columns, or that have no input function. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  int2vector: 'of system catalogues: an array that begins at 0, which JSON cannot say',
  oidvector: 'of system catalogues: an array that begins at 0, which JSON cannot say',
  gtsvector: 'inside of GiST indexes; has no input',
  pg_brin_bloom_summary: 'inside of indexes; has no input',
  pg_brin_minmax_multi_summary: 'inside of indexes; has no input',
  pg_dependencies: 'of extended statistics; has no input',
  pg_mcv_list: 'of extended statistics; has no input',
  pg_ndistinct: 'of extended statistics; has no input',
  pg_node_tree: 'of system catalogues; has no input',
}

const DEFINITIONS = `
create type mood as enum ('sad', 'so so', '"', '\\', '', 'null', 'a,b', '{x}', '😀', 'it''s');
create domain positive as int check (value > 0);
create domain small as positive check (value < 100);
create domain ints as int[] check (cardinality(value) < 5);
create domain words_of as text[];
create domain lists as ints[];
create domain good as mood check (value <> 'sad');
create domain amount as numeric(12, 2);
create domain document as jsonb check (jsonb_typeof(value) = 'object');
create domain documents as jsonb[];
create type inner_pair as ("the key" text, "a.b" numeric, doc jsonb, moods mood[]);
create type outer_pair as (id bigint, "inner" inner_pair, many inner_pair[], at timestamptz, level small,
  raw json, span int4range);
create type holder as (many jsonb[]);
create domain checked_pair as inner_pair check ((value)."the key" <> 'bad');
create type spans as range (subtype = float8);
create type words as range (subtype = text, collation = "C");
`

const FUNCTIONS = `
create function shown(docs jsonb[], lists ints[] default '{}') returns text immutable language sql
  return docs::text || ' ' || lists::text;
create function shown_domain(docs documents, one ints default '{}') returns text immutable language sql
  return docs::text || ' ' || one::text;
create function shown_all(variadic docs json[]) returns text immutable language sql return docs::text;
create function shown_lists(variadic lists ints[]) returns text immutable language sql return lists::text;
create function shown_any(docs anyarray) returns text immutable
  language sql as 'select pg_typeof(docs) || '' '' || docs::text';
`

const MOODS = `array['a,b', '"', null]::mood[]`
const INNER = `row('k "\\,()', 12345678901234567890.10, '{"a": [1, null]}', ${MOODS})::inner_pair`
const EMPTY_INNER = `row(null, null, null, null)::inner_pair`

/** User-defined types and type modifiers: SQL expressions. */
const MADE: Readonly<Record<string, readonly string[]>> = {
  mood: [`'sad'`, `'"'`, `'\\'`, `''`, `'null'`, `'😀'`],
  'mood[]': [`array['so so', '"', '\\', '', 'null', 'a,b', '{x}', 'it''s', null]::mood[]`, `'{}'`],
  positive: ['1', '2147483647', 'null'],
  'small[]': ['array[1, 99]::small[]', 'array[array[1, 2], array[3, 4]]::small[]'],
  ints: [`'{1,2}'`, `'{{1,2},{3,null}}'`, `'{}'`],
  good: [`'so so'`, `''`],
  'good[]': [`array['😀', '']::good[]`],
  amount: ['1', '-9999999999.99'],
  document: [`'{}'`, `'{"a": 1e400}'`],
  inner_pair: [INNER, EMPTY_INNER, 'null', `row('', 'NaN', '[]', '{}')::inner_pair`],
  'inner_pair[]': [`array[${INNER}, null, ${EMPTY_INNER}]`, `array[array[${INNER}], array[${EMPTY_INNER}]]`],
  checked_pair: [INNER],
  outer_pair: [
    `row(9223372036854775807, ${INNER}, array[${INNER}, ${EMPTY_INNER}], ` +
      `'infinity', 5, '{ "exact" : 1.0 }', '[1,2)')::outer_pair`,
    `row(1, null, '{}', null, null, null, 'empty')::outer_pair`,
  ],
  spans: [`'[-0,1e+300)'`, `'(-Infinity,NaN]'`, `'empty'`],
  'spans[]': [`array['[0,1)', null]::spans[]`],
  spans_multirange: [`'{[0,1),[2,)}'`],
  words: [`'["","a,b")'`, `'["\\"","\\\\"]'`, `'(,"x y"]'`],
  'char(5)': [`'a'`, `''`, `'abcde'`],
  'varchar(3)': [`'abc'`, `''`],
  'bit(5)': [`'10101'`],
  'bit varying(5)': [`''`, `'101'`],
  'numeric(5,2)': [`'999.99'`, `'NaN'`, `'0.00'`],
  ...(POSTGRES_MAJOR < 15 ? {} : { 'numeric(2,-3)': [`'99000'`], 'numeric(3,5)': [`'0.00123'`] }),
  'timestamp(0)': [`'2026-01-01 00:00:01'`],
  'timestamptz(3)': [`'2026-01-01 00:00:00.123+00'`],
  'time(3)': [`'24:00:00'`, `'00:00:00.123'`],
  'interval year to month': [`'1 year 2 mons'`],
  'interval second(3)': [`'1.123'`],
  'char(5)[]': [`array['a', 'abc  ']::char(5)[]`],
  'numeric(5,2)[]': [`array[1.5, null, 'NaN']::numeric(5,2)[]`],
  'text[]': [
    `array['', 'null', null, 'NULL', '"', '\\', '{', ',', ' ', E'\\n', '[]', '{}', '😀']`,
    `array[array['a', null], array['', '"']]`,
    `array[array[array['x']]]`,
    `'{}'`,
  ],
  'jsonb[]': [
    `array['{"a": 1}', '[]', '"x"', '1', null]::jsonb[]`,
    `array['[1]', '2', '[[3, [4]], {}]']::jsonb[]`,
    `array['["a"]', '[["a"]]', '"{}"', '"\\\\ \\" \\n é"', '1.50', '-1e400', '"null"', 'true']::jsonb[]`,
    `'{}'`,
  ],
  'json[]': [
    `array['{"a" : 1}', '[ ]', '"x"', null]::json[]`,
    `array[E'[\\n1 ]', '"\\u00e9\\/"', '1.0', '["\\\\", "\\""]']::json[]`,
  ],
  'document[]': [`array['{}', '{"a": [1, [2]]}', null]::document[]`],
  documents: [`array['[1]', '{}', '"["', null]::jsonb[]`, `'{}'`],
  'documents[]': [
    `array[array['[1]', '"x"', null]::jsonb[]::text, '{}', null, array['[[]]']::jsonb[]::text]::documents[]`,
  ],
  'ints[]': [`array['{1,2}', '{3}', '{}', '{null}', null]::ints[]`, `array['{{1,2},{3,null}}']::ints[]`, `'{}'`],
  'words_of[]': [
    `array[array['', 'null', null, 'NULL', '"', '\\', '{', ',', E'\\n', '[]', '😀']::text[]::text, ` +
      `'{}', null]::words_of[]`,
  ],
  lists: [`array['{1}', '{2,3}']::ints[]`],
  'lists[]': [`array[array['{1}', '{2,3}']::ints[]::text, array['{{4},{5}}', null]::ints[]::text]::lists[]`],
  'tsvector[]': [`array['a b', '']::tsvector[]`],
}

const database = databaseFixture()

const post = sender(() => gateway, 'POST')
const patch = sender(() => gateway, 'PATCH')

interface Case {
  readonly type: string
  readonly table: string
  /** Values as SQL expressions. */
  readonly values: readonly string[]
}

const literal = (text: string) => pg.escapeLiteral(text)
const own = Object.entries(SAMPLES).map(([name, texts]) => ({
  type: `pg_catalog."${name}"`,
  values: texts.map(literal),
}))
const arrays = own.map(({ type, values }) => {
  const [one, two = one] = values
  return {
    type: `${type}[]`,
    values: [
      `array[${[...values, 'null'].join(', ')}]::${type}[]`,
      // Arrays of documents are read with one dimension, see below.
      ...(/"jsonb?"/.test(type) ? [] : [`array[array[${one}, ${two}], array[null, ${one}]]::${type}[]`]),
      `'{}'`,
    ],
  }
})
const made = Object.entries(MADE).map(([type, values]) => ({ type, values }))
const CASES: readonly Case[] = [...own, ...arrays, ...made].map((one, index) => ({ ...one, table: `t${index}` }))

beforeAll(async () => {
  await execute(database.adminUrl, DEFINITIONS + FUNCTIONS)
  const tables = CASES.map(({ type, table, values }) => {
    const rows = [...values, 'null'].map((value, index) => `(${index}, ${value})`)
    return `create table ${table} (id int primary key, v ${type}); insert into ${table} values ${rows.join(', ')}`
  })
  await execute(
    database.adminUrl,
    `${tables.join(';\n')};
     create table mixed (id bigint generated by default as identity primary key, n numeric, i int8, f float8,
       t text, j jsonb, x json, a text[], at timestamptz, b bytea, docs jsonb[], raws json[], words words_of[]);
     create table edges (id int primary key, j jsonb, x json, many jsonb[], a int[], lists ints[],
       pair inner_pair, holder holder, unique (many));
     grant select, insert, update on all tables in schema public to app`,
  )
})
const gateway = gatewayFixture(database)
const admin = clientFixture(() => database.adminUrl)

const rowsOf = async (text: string): Promise<readonly (readonly (string | null)[])[]> => {
  const types = { getTypeParser: () => (value: string | null) => value }
  return (await admin.query({ text, rowMode: 'array', types })).rows as (string | null)[][]
}

test('every type of pg_catalog is tested, or is omitted for a reason', async () => {
  const found = await rowsOf(
    `select typname from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype in ('b', 'r', 'm')
      and not (typcategory = 'A' and typname like '\\_%')`,
  )
  const known = [...Object.keys(SAMPLES), ...Object.keys(LEFT_OUT)]
  expect(found.map(([name]) => name).sort()).toEqual(known.sort())
})

/** The JSON of `v` with exactly the bytes that were read. */
async function read(table: string, id: number): Promise<string> {
  const reply = await gateway.get(`/api/${table}/${id}`)
  const start = `{"data":{"id":${id},"v":`
  if (!reply.text.startsWith(start)) throw new Error(`${table}/${id}: ${reply.text.slice(0, 300)}`)
  return reply.text.slice(start.length, -2)
}

const ONE = 1_000
const TWO = 2_000

describe('a value that was read can be written back unchanged', () => {
  test.each(CASES.map(one => [one.type, one] as const))('%s', async (type, { table, values }) => {
    const ids = [...values.keys(), values.length]
    const texts = await rowsOf(`select v::text, format('%s', v) from ${table} order by id`)
    const json = await Promise.all(ids.map(id => read(table, id)))
    const again = await post(
      `/api/${table}?returning=v`,
      `[${json.map((v, id) => `{"id":${id + ONE},"v":${v}}`).join()}]`,
    )
    expect(again.status, again.text.slice(0, 500)).toBe(201)
    expect(again.text).toBe(`{"data":[${json.map(v => `{"v":${v}}`).join()}],"count":${ids.length}}`)
    // For a JSON string the value is the string; for all other types it is their text form.
    const isJson = /^(pg_catalog."jsonb?"|document)$/.test(type)
    if (!isJson) {
      const rows = texts.map(([text, form], id) => ({ id: id + TWO, v: text === null ? null : form }))
      const written = await post(`/api/${table}?returning=v`, rows)
      expect(written.status, written.text.slice(0, 500)).toBe(201)
      expect(written.text).toBe(again.text)
    }
    // %L is the type's output without a cast to text, which would remove padding.
    const compared = await rowsOf(
      `select a.id, format('%L', a.v), format('%L', b.v) from ${table} a join ${table} b
        on b.id in (a.id + ${ONE}, a.id + ${TWO}) where a.id < ${ONE} and
         format('%L', a.v) <> format('%L', b.v)`,
    )
    expect(compared).toEqual([])
    expect(await rowsOf(`select count(*) from ${table}`)).toEqual([[String(ids.length * (isJson ? 2 : 3))]])
  })
})

/** JSON values of every kind, for columns that expect another kind. */
const ANYTHING: readonly string[] = [
  ...[
    '0',
    '-1',
    '1.5',
    '-1e400',
    '123456789012345678901234567890',
    'true',
    '""',
    '"x"',
    '"{"',
    '"\\""',
    '"\\\\x0"',
    '"[,"',
    '"(1"',
    '"10:99"',
  ],
  ...[
    '[]',
    '{}',
    '[1]',
    '[null]',
    '["x",{}]',
    '[[1],[2,3]]',
    '[[1,2],3]',
    '[[[[[[[1]]]]]]]',
    '{"a":1}',
    '{"the key":[],"moods":1}',
    '[{"inner":5}]',
  ],
  `"${'9'.repeat(400)}"`,
  `${'['.repeat(60)}${']'.repeat(60)}`,
]

test.each(CASES.map(one => [one.type, one] as const))(
  'any JSON for %s is accepted or rejected',
  async (_, { table }) => {
    const replies = await Promise.all(
      ANYTHING.flatMap((json, index) => [
        post(`/api/${table}`, `{"id":${10_000 + index},"v":${json}}`),
        gateway.get(`/api/${table}/0`, {
          method: 'PATCH',
          headers: { 'Content-Type': 'application/json' },
          body: `{"v":${json}}`,
        }),
      ]),
    )
    for (const [index, { status, text }] of replies.entries()) {
      expect([200, 201, 400], `${ANYTHING[Math.floor(index / 2)]}: ${text.slice(0, 300)}`).toContain(status)
      if (status === 400) expect(JSON.parse(text).error.code).toMatch(/^(PARSE|QUERY)_ERROR$/)
    }
  },
)

describe('limits of PostgreSQL’s JSON form', () => {
  /** Writes `row` and reads it with SQL. */
  async function written(row: string, expression: string): Promise<string | null | undefined> {
    await admin.query('truncate edges')
    const reply = await post('/api/edges', row)
    expect(reply.status, reply.text).toBe(201)
    return (await rowsOf(`select ${expression} from edges`))[0]?.[0]
  }

  test('null for a jsonb column is the JSON null only inside a document, otherwise NULL', async () => {
    await admin.query(`truncate edges; insert into edges (id, j, x) values (1, 'null', 'null')`)
    const { text } = await gateway.get('/api/edges/1?select=id,j,x')
    expect(text).toBe('{"data":{"id":1,"j":null,"x":null}}')
    expect(await written('{"id":1,"j":null,"x":null}', 'num_nulls(j, x)')).toBe('2')
  })
  test('null inside a document is kept', async () => {
    expect(await written('{"id":1,"j":[null],"x":{"a":null}}', 'j::text || x::text')).toBe('[null]{"a":null}')
  })
  test('a json column that is one string keeps the string, not its escapes', async () => {
    expect(await written('{"id":1,"x":"\\u00e9\\/"}', 'x::text')).toBe('"é/"')
    expect(await written('{"id":1,"x":["\\u00e9\\/"]}', 'x::text')).toBe('["\\u00e9\\/"]')
  })
  test('the lower bound of an array is not kept', async () => {
    await admin.query(`truncate edges; insert into edges (id, a) values (1, '[0:1]={1,2}')`)
    expect((await gateway.get('/api/edges/1?select=a')).json.data).toEqual({ a: [1, 2] })
    expect(await written('{"id":1,"a":[1,2]}', 'a::text')).toBe('{1,2}')
    expect(await written('{"id":1,"a":"[0:1]={1,2}"}', 'a::text')).toBe('[0:1]={1,2}')
  })
  test('an array of documents or of a domain over arrays has one dimension; the text form can have more', async () => {
    await admin.query(`truncate edges; insert into edges (id, many) values (1, '{{1,2},{3,4}}')`)
    expect((await gateway.get('/api/edges/1?select=many')).json.data).toEqual({
      many: [
        [1, 2],
        [3, 4],
      ],
    })
    expect(await written('{"id":1,"many":[[1,2],[3,4]]}', 'many::text')).toBe('{"[1, 2]","[3, 4]"}')
    expect(await written('{"id":1,"many":"{{1,2},{3,4}}"}', 'many::text')).toBe('{{1,2},{3,4}}')
    expect(await written('{"id":1,"lists":[[[1,2]],[[3,4]]]}', 'lists::text')).toBe('{"{{1,2}}","{{3,4}}"}')
    expect(await written('{"id":1,"lists":"{{\\"{1,2}\\"},{\\"{3}\\"}}"}', 'lists::text')).toBe('{{"{1,2}"},{"{3}"}}')
  })
  test('null in an array of documents is NULL; the text form can contain the JSON null', async () => {
    expect(await written('{"id":1,"many":[null,[null],{"a":null}]}', 'many::text')).toBe(
      '{NULL,[null],"{\\"a\\": null}"}',
    )
    expect(await written('{"id":1,"many":"{null,\\"null\\"}"}', `array_position(many, 'null')`)).toBe('2')
  })
  test('such an array in a composite value is written in its text form', async () => {
    const nested = await post('/api/edges', '{"id":1,"holder":{"many":[[1],2]}}')
    expect([nested.status, nested.json.error.code]).toEqual([400, 'QUERY_ERROR'])
    expect(await written('{"id":1,"holder":{"many":"{\\"[1]\\",\\"2\\"}"}}', '(holder).many::text')).toBe('{[1],2}')
  })
  test('missing members of a composite value are NULL, and unknown members are ignored', async () => {
    expect(await written('{"id":1,"pair":{"a.b":1.50,"zzz":1}}', 'pair::text')).toBe('(,1.50,,)')
    expect(await written('{"id":1,"pair":{}}', 'pair::text')).toBe('(,,,)')
  })
  test('a document with duplicate keys or more than 64 levels cannot be written', async () => {
    await admin.query('truncate edges')
    await admin.query(
      `insert into edges (id, x) values (1, '{"a":1,"a":2}'), (2, (repeat('[', 70) || repeat(']', 70))::json)`,
    )
    for (const id of [1, 2]) {
      const read = await gateway.get(`/api/edges/${id}?select=x`)
      expect(read.status).toBe(200)
      const reply = await post('/api/edges', read.text.slice('{"data":'.length, -1).replace('{', '{"id":7,'))
      expect([reply.status, reply.json.error.code]).toEqual([400, 'PARSE_ERROR'])
    }
  })
})

describe('an array whose elements are arrays', () => {
  const rows = () => rowsOf('select id, many::text, lists::text from edges order by id')

  test('can be written in a batch with any keys', async () => {
    await admin.query('truncate edges')
    const reply = await post(
      '/api/edges?returning=many,lists',
      '[{"id":1,"many":[[1],2]}, {"many":[["a"]],"id":2} ,{"id":3},' +
        '{"id":4,"lists":[[1,2],[3]]},{"id":5,"many":[[1.50]]}]',
    )
    expect(reply.text).toBe(
      '{"data":[{"many":[[1],2],"lists":null},{"many":[["a"]],"lists":null},{"many":null,"lists":null},' +
        '{"many":null,"lists":[[1,2],[3]]},{"many":[[1.50]],"lists":null}],"count":5}',
    )
    expect(await rows()).toEqual([
      ['1', '{[1],2}', null],
      ['2', '{"[\\"a\\"]"}', null],
      ['3', null, null],
      ['4', null, '{"{1,2}","{3}"}'],
      ['5', '{[1.50]}', null],
    ])
  })
  test('can be written by an update of one row and of many rows', async () => {
    await admin.query('truncate edges; insert into edges (id) values (1), (2)')
    const one = await patch('/api/edges/1?returning=many', '{"many":[[["x"]],[]]}')
    expect(one.text).toBe('{"data":{"many":[[["x"]],[]]}}')
    const many = await patch('/api/edges?id=gt.0&returning=lists', '{"lists":[[1],[2,3]]}')
    expect(many.json).toEqual({ data: Array(2).fill({ lists: [[1], [2, 3]] }), count: 2 })
    expect(await rows()).toEqual([
      ['1', '{"[[\\"x\\"]]",[]}', '{"{1}","{2,3}"}'],
      ['2', null, '{"{1}","{2,3}"}'],
    ])
  })
  test('can be written by an upsert, also as its key', async () => {
    await admin.query('truncate edges')
    const headers = { 'X-Upsert': 'true', 'X-On-Conflict': 'many' }
    for (const id of [1, 2]) {
      expect((await post('/api/edges', `{"id":${id},"many":[[1],2]}`, { headers })).status).toBe(id === 1 ? 201 : 200)
    }
    expect(await rows()).toEqual([['2', '{[1],2}', null]])
    const different = '[{"id":3,"many":[[1],[2]]},{"id":4,"many":[[1,2]],"a":[1]}]'
    expect((await post('/api/edges', different, { headers })).status).toBe(201)
    const repeated = await post('/api/edges', '[{"id":5,"many":[["a"]]},{"id":6,"many":[["a"]],"a":[1]}]', { headers })
    expect([repeated.status, repeated.json.error.code]).toEqual([400, 'PARSE_ERROR'])
    expect(repeated.json.error.message).toContain('a key can appear only once in an upsert')
  })
  test('is quoted unchanged in an error', async () => {
    const message = async (body: string) => (await post('/api/edges', body)).json.error.message as string
    expect(await message('[{"id":7},{"id":8,"lists":[[1],["x"]]}]')).toMatch(
      /^item 2: column "lists" is ints\[\] and cannot hold "x": invalid input syntax for type integer/,
    )
    expect(await message('{"id":8,"lists":[[[1,2],3]]}')).toMatch(
      /^column "lists" is ints\[\] and cannot hold "\[\[\[1,2\],3\]\]": malformed array literal/,
    )
    expect(await message('{"id":8,"many":"[1]"}')).toMatch(/^column "many" is jsonb\[\] and cannot hold "\[1\]"/)
    expect(await message('{"id":8,"many":{"a":[1]}}')).toContain('expected JSON array')
  })
  test.each([
    ['shown', '{"docs":[[1],2.50,null]}', '{[1],2.50,NULL} {}'],
    ['shown', '{"lists":[[1,2],[3]], "docs":[["a"]]}', '{"[\\"a\\"]"} {"{1,2}","{3}"}'],
    ['shown', '[[[1],2],[[1,2]]]', '{[1],2} {"{1,2}"}'],
    ['shown_domain', '{"docs":[[1],2],"one":[[1,2]]}', '{[1],2} {{1,2}}'],
    ['shown_domain', '[[[1],2]]', '{[1],2} {}'],
    ['shown_all', '[[ 1 ],2.0,null,"a"]', '{"[ 1 ]",2.0,NULL,"\\"a\\""}'],
    ['shown_all', '{"docs":[[ 1 ],{}]}', '{"[ 1 ]","{}"}'],
    ['shown_lists', '[[1,2],[3]]', '{"{1,2}","{3}"}'],
    ['shown_any', '[[[1],"a"]]', 'jsonb[] {[1],"\\"a\\""}'],
    ['shown_any', '[[[1,2],[3,4]]]', 'integer[] {{1,2},{3,4}}'],
  ])('can be an argument: %s of %s', async (name, body, expected) => {
    const reply = await post(`/api/rpc/${name}`, body)
    expect(reply.json.data, reply.text).toBe(expected)
  })
})

test('a row of a stream is one line, even if a document has several lines', async () => {
  await admin.query(`truncate edges; insert into edges (id, x) values (1, E'{\\n"a":\\r\\n[1]\\n}'), (2, '"\\n"')`)
  const { text } = await gateway.get('/api/edges?select=x&sort=id&stream=true')
  expect(text).toBe('{"x":{ "a":  [1] }}\n{"x":"\\n"}\n')
})

/** The raw JSON of a value, and the literal that it must equal. */
interface Sample {
  readonly json: string
  readonly literal: string
}

/** Writes the values, writes back the response, and compares both with the literals. */
async function assertSame(column: string, samples: readonly Sample[]): Promise<void> {
  await admin.query('truncate mixed restart identity')
  const first = await post(
    `/api/mixed?returning=${column}`,
    `[${samples.map(({ json }) => `{"${column}":${json}}`).join()}]`,
  )
  expect(first.status, first.text).toBe(201)
  const rows = first.text.slice('{"data":'.length, first.text.lastIndexOf(',"count":'))
  const second = await post(`/api/mixed?returning=${column}`, rows)
  expect(second.text).toBe(first.text)
  const literals = samples.map(sample => sample.literal)
  const { rows: wrong } = await admin.query(
    `select id, format('%L', ${column}) as is, lit from mixed join unnest($1::text[]) with ordinality e(lit,
      place) on (mixed.id - 1) % ${samples.length} = place - 1
       where format('%L', ${column}) <> format('%L', lit::${TYPES[column]})`,
    [literals],
  )
  expect(wrong).toEqual([])
  expect(await rowsOf('select count(*) from mixed')).toEqual([[String(samples.length * 2)]])
}

const TYPES: Readonly<Record<string, string>> = {
  n: 'numeric',
  i: 'int8',
  f: 'float8',
  t: 'text',
  j: 'jsonb',
  x: 'json',
  a: 'text[]',
  at: 'timestamptz',
  b: 'bytea',
  docs: 'jsonb[]',
  raws: 'json[]',
  words: 'words_of[]',
}

const asString = (literal: string): Sample => ({ json: JSON.stringify(literal), literal })
/** Both JSON forms of the value. */
const either = (literal: string) =>
  fc.boolean().map((bare): Sample => (bare ? { json: literal, literal } : asString(literal)))
const anyText = fc
  .oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: fc.constantFrom('"', '\\', '{', '}', ',', "'", ' ', '\n') }),
  )
  .map(text => text.replaceAll('\0', ''))
const document = fc
  .jsonValue({ maxDepth: 5, stringUnit: 'binary' })
  .filter(value => value !== null && !JSON.stringify(value).includes('\\u0000'))

/** An array literal of PostgreSQL with every element in quotes. */
const arrayLiteral = (value: unknown): string =>
  Array.isArray(value)
    ? `{${value.map(arrayLiteral).join()}}`
    : value === null
      ? 'NULL'
      : `"${String(value).replace(/["\\]/g, '\\$&')}"`

/** Of one or two dimensions. */
const textArray = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }))
  .chain(([height, width]) =>
    fc.array(fc.array(fc.option(anyText), { minLength: width, maxLength: width }), {
      minLength: height,
      maxLength: height,
    }),
  )
  .chain(rows => fc.constantFrom<readonly unknown[]>(rows, rows[0] ?? []))

const digits = (max: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: max })
const signed = fc.constantFrom('', '-')
const two = (value: number) => String(value).padStart(2, '0')

const PROPERTIES: Readonly<Record<string, fc.Arbitrary<Sample>>> = {
  n: fc
    .tuple(signed, digits(400), fc.option(digits(400)), fc.option(fc.integer({ min: -300, max: 300 })))
    .map(([sign, whole, fraction, exponent]) => {
      const start = whole.replace(/^0+(?=.)/, '')
      return `${sign}${start}${fraction === null ? '' : `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`
    })
    .chain(either),
  i: fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    .map(String)
    .chain(either),
  f: fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .map(value => (Object.is(value, -0) ? '-0' : String(value)))
    .chain(either),
  t: anyText.map(asString),
  j: document.map(value => ({ json: JSON.stringify(value), literal: JSON.stringify(value) })),
  // A single string loses its escapes, see above.
  x: fc.tuple(document, fc.constantFrom('', ' ', '\n\t')).map(([value, indent]) => {
    const json = JSON.stringify([value], null, indent)
    return { json, literal: json }
  }),
  a: textArray.map(value => ({ json: JSON.stringify(value), literal: arrayLiteral(value) })),
  at: fc
    .record({
      year: fc.oneof(fc.integer({ min: 1, max: 294_275 }), fc.integer({ min: 1, max: 9999 })),
      before: fc.boolean(),
      month: fc.integer({ min: 1, max: 12 }),
      day: fc.integer({ min: 1, max: 28 }),
      second: fc.integer({ min: 0, max: 86_400 }),
      micros: fc.integer({ min: 0, max: 999_999 }),
      zone: fc.integer({ min: -15 * 60, max: 15 * 60 }),
      letter: fc.constantFrom('T', ' '),
    })
    .map(({ year, before, month, day, second, micros, zone, letter }) => {
      const time = `${two(Math.floor(second / 3600))}:${two(Math.floor(second / 60) % 60)}:${two(second % 60)}`
      const fraction = second === 86_400 ? '' : `.${String(micros).padStart(6, '0')}`
      const offset = `${zone < 0 ? '-' : '+'}${two(Math.floor(Math.abs(zone) / 60))}:${two(Math.abs(zone) % 60)}`
      const date = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`
      const era = before && year <= 4_700 ? ' BC' : ''
      return asString(`${date}${letter}${time}${fraction}${offset}${era}`)
    }),
  docs: fc.array(fc.option(document)).map(values => ({
    json: JSON.stringify(values),
    literal: arrayLiteral(values.map(value => (value === null ? null : JSON.stringify(value)))),
  })),
  raws: fc.tuple(fc.array(fc.option(document)), fc.constantFrom('', ' ', '\n\t')).map(([values, indent]) => {
    const texts = values.map(value => (value === null ? null : JSON.stringify(value, null, indent)))
    return { json: `[${texts.map(String).join(` ,${indent}`)}]`, literal: arrayLiteral(texts) }
  }),
  words: fc.array(fc.option(textArray)).map(values => ({
    json: JSON.stringify(values),
    literal: arrayLiteral(values.map(value => value && arrayLiteral(value))),
  })),
  b: fc.uint8Array({ maxLength: 40 }).map(bytes => asString(`\\x${Buffer.from(bytes).toString('hex')}`)),
}

test.each(Object.keys(PROPERTIES))(
  'any value is unchanged after being written and read: %s',
  { timeout: 60_000 },
  async column => {
    const sample = PROPERTIES[column]
    if (sample === undefined) throw new Error(column)
    await fc.assert(
      fc.asyncProperty(fc.array(sample, { minLength: 1, maxLength: 40 }), samples => assertSame(column, samples)),
      { numRuns: 25 },
    )
  },
)
