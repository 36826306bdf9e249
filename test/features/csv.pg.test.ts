/**
 * docs/reference/reading.md#csv: `Accept: text/csv` answers a list as CSV, with the same rights, filters and
 * pages as in JSON. An import reads the same rows back.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import type { AskOptions, Reply } from '../support/gateway.ts'
import { ask } from '../support/raw-http.ts'
import { shopDatabase } from './shop.ts'

const CSV = { Accept: 'text/csv' }
/** Values that PostgreSQL prints in unusual ways, and columns that CSV has to quote. */
const COLUMNS = `id int primary key, title text, mood mood, stars numeric(9, 4), "a, ""b""" text, tags text[],
  doc jsonb, raw bytea, span int4range, spans int4multirange, at timestamptz, days interval, pair pair, ok boolean,
  f float8, j json`

const database = databaseFixture(
  shopDatabase,
  `create type mood as enum ('sad', 'very "happy"');
   create type pair as (a text, b int);
   create table source (${COLUMNS});
   create table copy (${COLUMNS});
   create table ones (v text);
   create table "two words" ("snow \u2603" int, "x\\y" int, "line\nbreak" int);
   insert into "two words" values (1, 2, 3);
   create view broken with (security_invoker) as
     select n as id, 1 / (1001 - n) as share from (select generate_series(1, 2000) as n) s;
   grant select, insert on source, copy, ones, "two words", broken to app`,
)
const admin = clientFixture(() => database.adminUrl)
const gateway = gatewayFixture(database, { toml: 'default_limit = 3\n[gateway.cache]\nenabled = true' })

const POLICY = `default_decision = "deny"
[tables.users]
operations = ["read"]
read_columns = { only = ["id", "name"] }
[tables.labels]
operations = ["read"]
read_columns = { only = ["name"] }
`
const folder = folderFixture()
const limited = gatewayFixture(database, async () => {
  await writeFile(join(folder, 'policy.toml'), POLICY)
  return { toml: `[access]\nenabled = true\npath = ${JSON.stringify(join(folder, 'policy.toml'))}` }
})
const asClerk = (path: string): Promise<Reply> => limited.get(`/api/${path}`, { headers: CSV })

const csv = (path: string, { headers = {}, ...options }: AskOptions = {}): Promise<Reply> =>
  gateway.get(`/api/${path}`, { ...options, headers: { ...CSV, ...headers } })
const importInto = (table: string, body: string) =>
  gateway.get(`/api/${table}`, { method: 'POST', body, headers: { 'Content-Type': 'text/csv' } })

describe('a list', () => {
  test('has a header and a line for each row, NULL as an empty field and "" as the empty text', async () => {
    const reply = await csv('customers?select=id,name,mail,meta->>theme,tags&sort=id')
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8'])
    expect(reply.text).toBe(
      'id,name,mail,theme,tags\n1,Acme,a@acme.io,dark,"{big,old}"\n2,Bolt,,light,{old}\n3,Cord,c@cord.io,,{}\n',
    )
    expect((await csv('products?select=id,description&id=3')).text).toBe('id,description\n3,""\n')
  })

  test('without select has all readable columns, in the order of the table', async () => {
    expect((await csv('users?limit=1')).text).toBe('id,tenant_id,name,boss_id\n1,t1,Ann,\n')
    expect((await csv('users?select=name,*&limit=1')).text).toBe('name,id,tenant_id,name,boss_id\nAnn,1,t1,Ann,\n')
    expect((await csv('two%20words')).text).toBe('"snow \u2603","x\\y","line\nbreak"\n1,2,3\n')
  })

  test('without rows is the header', async () => {
    expect((await csv('users?id=77')).text).toBe('id,tenant_id,name,boss_id\n')
    expect((await csv('users?limit=0&select=name')).text).toBe('name\n')
  })

  test('has the pages of the list: the cursor and the total are headers', async () => {
    const first = await csv('orders?select=id&limit=2', { headers: { Prefer: 'count=exact' } })
    const cursor = first.headers.get('x-next-cursor') ?? ''
    expect([first.text, first.headers.get('x-total-count')]).toEqual(['id\n1\n2\n', '5'])
    const second = await csv(`orders?select=id&limit=2&cursor=${cursor}`)
    expect([second.text, second.headers.get('x-total-count')]).toEqual(['id\n3\n4\n', null])
    const last = await csv(`orders?select=id&limit=2&cursor=${second.headers.get('x-next-cursor')}`)
    expect([last.text, last.headers.get('x-next-cursor')]).toEqual(['id\n9007199254740993\n', null])
    expect((await csv('orders?select=id')).text).toBe('id\n1\n2\n3\n')
  })

  test('can be of children, distinct, searched, and sorted by a column that is not selected', async () => {
    expect((await csv('customers/1/orders?select=id&sort=-total')).text).toBe('id\n2\n1\n9007199254740993\n')
    expect((await csv('customers/77/orders')).status).toBe(404)
    expect((await csv('orders?distinct=status')).text).toBe('status\ndraft\npaid\nshipped\n')
    expect((await csv('products?search=bicycle&select=id&offset=1')).text).toBe('id\n2\n')
  })

  test('has related rows as JSON in a field', async () => {
    expect((await csv('orders?id=3&select=id&expand=customer(name),items:nested:order_items(quantity)')).text).toBe(
      'id,customer,items\n3,"{""name"":""Bolt""}","[{""quantity"":1}]"\n',
    )
  })

  test('of a request that is refused answers the error as JSON', async () => {
    const reply = await csv('orders?sort=nothing')
    expect([reply.status, reply.json.error.code]).toEqual([400, 'PARSE_ERROR'])
  })

  test('is chosen by the weights of Accept, and varies by it in caches', async () => {
    const types = async (accept: string) => {
      const reply = await gateway.get('/api/users', { headers: { Accept: accept } })
      expect(reply.headers.get('vary')).toMatch(/(^|, )Accept(,|$)/)
      return reply.headers.get('content-type')?.split(';')[0]
    }
    // The same address in turn: neither plans nor results may be mistaken for each other.
    for (const _ of [1, 2]) {
      expect(await types('*/*')).toBe('application/json')
      expect(await types('text/csv;q=0.9, application/json')).toBe('application/json')
      expect(await types('text/csv, application/json;q=0.9')).toBe('text/csv')
      expect(await types('text/csv, */*')).toBe('text/csv')
    }
    expect((await gateway.get('/api/users', { headers: { Accept: '*/*', Prefer: 'csv' } })).json.count).toBe(3)
    expect((await gateway.get('/api/users', { headers: { Accept: '*/*' } })).headers.get('x-cache')).toBe('HIT')
    expect((await csv('users')).headers.get('x-cache')).toBe('HIT')
  })

  test('has another entity tag than the JSON, and HEAD has the headers', async () => {
    const reply = await csv('labels')
    const tag = reply.headers.get('etag') ?? ''
    expect(tag).toMatch(/^W\//)
    expect((await csv('labels', { headers: { 'If-None-Match': tag } })).status).toBe(304)
    expect((await gateway.get('/api/labels', { headers: { 'If-None-Match': tag } })).status).toBe(200)
    const head = await csv('labels', { method: 'HEAD' })
    expect([head.headers.get('etag'), head.headers.get('content-length')]).toEqual([tag, String(reply.text.length)])
  })

  test('has only the rows of the tenant', async () => {
    expect((await csv('users?select=id', { as: { tenantId: 't2' } })).text).toBe('id\n9\n')
  })

  test('has only the columns that the policy lets the caller read', async () => {
    expect((await asClerk('users')).text).toBe('id,name\n1,Ann\n2,Bob\n3,Cyd\n')
    expect((await asClerk('users?select=boss_id')).status).toBe(403)
    expect((await asClerk('orders')).status).toBe(403)
    // Paged by offset, because the key cannot be read.
    expect((await asClerk('labels?limit=1')).text).toBe('name\nsport\n')
  })

  test('can be an operation of a batch, as a text', async () => {
    const operations = [{ method: 'GET', path: '/api/labels?select=id', headers: { Accept: 'text/csv' } }]
    const { json } = await gateway.get('/api/_batch', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ operations }),
    })
    expect(json.results[0].body).toBe('id\n1\n2\n')
  })

  test('has no effect on other reads', async () => {
    for (const path of ['users/1', 'users/aggregate?fn=count', 'users/_explain', '_schema']) {
      expect((await csv(path)).headers.get('content-type')).toMatch(/^application\/json/)
    }
  })
})

describe('a stream', () => {
  test('is CSV in chunks', async () => {
    const reply = await csv('orders?select=id,note&stream=true')
    expect([reply.headers.get('content-type'), reply.headers.get('transfer-encoding')]).toEqual([
      'text/csv; charset=utf-8',
      'chunked',
    ])
    expect(reply.text).toBe('id,note\n1,first\n2,\n3,in.x\n4,100%\n9007199254740993,\n')
    expect((await csv('customers/1/orders?select=id&stream=true')).text).toBe('id\n1\n2\n9007199254740993\n')
    expect((await csv('users?select=id&id=77&stream=true')).text).toBe('id\n')
    expect((await csv('orders?stream=true', { method: 'HEAD' })).headers.get('content-type')).toContain('text/csv')
  })

  test('ends without its last chunk if the query fails after the first row', async () => {
    const token = await gateway.token({ tenantId: 't1' })
    const asked = await ask(`${gateway.url}/api/broken?stream=true`, token, { headers: CSV })
    const lines = await asked.lines()
    expect(lines.slice(0, 2)).toEqual(['id,share', '1,0'])
    expect([lines.join().includes('error'), asked.complete]).toEqual([false, false])
  })
})

describe('an import', () => {
  beforeEach(async () => {
    await admin.query('truncate source, copy, ones')
  })

  test('reads back what a list answers, for every type', async () => {
    await admin.query(`insert into source values
      (1, 'plain', 'sad', 1.5, 'x', '{a,"b c"}', '{"a": [1, "\\"\\\\"]}', '\\x00ff5c', '[1,5)', '{[1,2),[5,9)}',
        '2026-01-31T12:00:00.123456Z', '1 mon -2 days 03:04:05.6', '("a ""q"" \\\\, b",7)', true, 0.1, '{"k":\n 1}'),
      (2, '', 'very "happy"', null, '"', '{}', '"text"', '', 'empty', '{}', 'infinity', '0', '(,)', false,
        'NaN', 'null'),
      (3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
      (4, E'back\\\\slash \\\\\\\\ "quote" , comma (paren)\\ttab\\r\\nlines\\n', null, 9999.0001, '\\',
        '{NULL,"NULL",""}',
        'null', '\\x5c5c', '(,)', '{(,)}', '-infinity', '-1 year', '("",)', null, 'Infinity', '[]'),
      (5, '\u2603 \u{1f600}\u00a0\u0085', null, 0, ' ', '{{1,2},{3,4}}', '{}', '\\x22', '[3,4)', null,
        '0044-03-15 BC', null,
        null, null, 1e300, '""')`)
    const out = await csv('source?limit=100')
    expect(await importInto('copy', out.text)).toMatchObject({ status: 201, json: { count: 5, errors: [] } })
    const different = `(table source except table copy) union all (table copy except table source)`
    const { rows } = await admin.query(different.replaceAll(/table (\w+)/g, 'select ($1.*)::text from $1'))
    expect(rows).toEqual([])
    expect((await csv('source?stream=true')).text).toBe(out.text)
  })

  test('reads back NULL and the empty text of a single column', async () => {
    await admin.query(`insert into ones values (null), (''), ('x')`)
    const out = await csv('ones')
    expect([...out.text.split('\n')].toSorted()).toEqual(['', '', '""', 'v', 'x'])
    await admin.query('truncate ones')
    expect((await importInto('ones', out.text)).json).toEqual({ count: 3, errors: [] })
    expect((await admin.query('select v from ones order by v nulls last')).rows).toEqual([
      { v: '' },
      { v: 'x' },
      { v: null },
    ])
  })
})
