/**
 * docs/reference/writing.md#preconditions and docs/reference/rest-api.md#entity-tags: entity tags of rows,
 * `If-None-Match` of reads and `If-Match` of writes.
 */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, testGateway } from '../support/gateway.ts'
import { sender } from '../support/send.ts'

const database = databaseFixture(`
  create table items (id int primary key, tenant_id text not null, name text, stock int, note text, meta jsonb);
  create table lines (item_id int references items, part text, n int, primary key (item_id, part));
  create table numbered (id int generated always as identity primary key, name text);
  create table granted (id int primary key, name text, secret text);
  create table parts (id int primary key, n int) partition by list (id);
  create table parts_1 partition of parts for values in (1);
  alter table items enable row level security;
  alter table items force row level security;
  create policy own on items for select using (tenant_id = current_setting('app.current_tenant_id', true));
  create policy made on items for insert with check (tenant_id = current_setting('app.current_tenant_id', true));
  create policy changed on items for update using (name <> 'frozen');
  create policy removed on items for delete using (name <> 'frozen');
  grant select, insert, update, delete on all tables in schema public to app;
  revoke all on granted from app;
  grant select (id, name), update (name) on granted to app;
`)
const admin = clientFixture(() => database.adminUrl)
const sql = (text: string) => executeOn(admin, text)
const gateway = gatewayFixture(database, { toml: 'compress_min_bytes = 200' })
const cached = gatewayFixture(database, { toml: '[gateway.cache]\nenabled = true' })
const folder = folderFixture()
const limited = gatewayFixture(database, async () => {
  const path = join(folder, 'policy.toml')
  await writeFile(
    path,
    `default_decision = "allow"
     [tables.items]
     read_columns = { except = ["note"] }
     [tables.lines]
     denied_operations = ["read"]`,
  )
  return {
    toml: `[gateway.tables.items]\nversion_column = "note"\n[access]\nenabled = true\npath = ${JSON.stringify(path)}`,
  }
})
const post = sender(() => gateway, 'POST')
const patch = sender(() => gateway, 'PATCH')
const remove = sender(() => gateway, 'DELETE')

beforeEach(async () => {
  await sql(`
    delete from lines; delete from items; delete from numbered; delete from granted; delete from parts;
    insert into items values (1, 't1', 'cup', 5, 'x', '{"a": 1}'), (2, 't1', 'pan', 3, null, null),
      (3, 't1', 'frozen', 0, null, null), (9, 't2', 'foreign', 1, null, null);
    insert into lines values (1, 'a,b', 1);
    insert into granted values (1, 'a', 's');
    insert into parts values (1, 1);
  `)
})

const PLAIN = { 'Accept-Encoding': 'identity' }
const get = (path: string, headers: AskOptions['headers'] = {}): Promise<Reply> =>
  gateway.get(path, { headers: { ...PLAIN, ...headers } })
const tagOf = (reply: Reply): string => reply.headers.get('etag') ?? ''
const tag = async (path: string): Promise<string> => tagOf(await get(path))
const match = (value: string) => ({ headers: { 'If-Match': value } })
const codeOf = (reply: Reply) => [reply.status, reply.json.error.code]
const STRONG = /^"[\w.-]+"$/
const WEAK = /^W\/"[\w-]{22}"$/

describe('the tag of a row', () => {
  test('is strong, and changes with every write to the row', async () => {
    const first = await tag('/api/items/1')
    expect(first).toMatch(STRONG)
    expect(await tag('/api/items/1')).toBe(first)
    await sql('update items set stock = stock where id = 1')
    const second = await tag('/api/items/1')
    expect(second).not.toBe(first)
    await patch('/api/items/2', { stock: 1 })
    expect(await tag('/api/items/1')).toBe(second)
  })

  test('is that of one row alone, although one transaction wrote several', async () => {
    expect(await tag('/api/items/1')).not.toBe(await tag('/api/items/2'))
  })

  test('depends on the selected columns, and on the columns that the caller can read', async () => {
    const all = await tag('/api/items/1')
    const some = await tag('/api/items/1?select=id,name')
    expect(some).toMatch(STRONG)
    expect(some).not.toBe(all)
    expect(await tag('/api/items/1?select=id,name')).toBe(some)
    expect(tagOf(await limited.get('/api/items/1'))).not.toBe(all)
  })

  test('does not reveal a version column that the caller cannot read', async () => {
    await sql("update items set note = 'secret' where id = 1")
    const shown = tagOf(await limited.get('/api/items/1'))
    expect(shown).toMatch(STRONG)
    expect(shown.split('.')[0]).toBe((await tag('/api/items/1')).split('.')[0])
  })

  test('does not change the body', async () => {
    expect((await get('/api/items/1')).text).toBe(
      '{"data":{"id":1,"tenant_id":"t1","name":"cup","stock":5,"note":"x","meta":{"a": 1}}}',
    )
    expect((await get('/api/items/1?select=meta->>a,n:name,*')).text).toBe(
      (await get('/api/items?id=1&select=meta->>a,n:name,*')).text.replace(
        /^\{"data":\[(.*)\],"count".*$/,
        '{"data":$1}',
      ),
    )
    expect((await get('/api/lines/1,a%252Cb')).json.data).toEqual({ item_id: 1, part: 'a,b', n: 1 })
    expect((await limited.get('/api/items/1')).json.data).toEqual({
      ...{ id: 1, tenant_id: 't1', name: 'cup', stock: 5, meta: { a: 1 } },
    })
  })

  test.each(['/api/items/1?expand=nested:lines', '/api/parts/1'])(
    'is weak if the response has no version: %s',
    async path => {
      const before = await get(path)
      expect([before.status, tagOf(before)]).toEqual([200, expect.stringMatching(WEAK)])
      expect(await tag(path)).toBe(tagOf(before))
      await sql('update lines set n = 2; update parts set n = 2')
      expect(await tag(path)).not.toBe(tagOf(before))
    },
  )

  test('is weak if the gateway’s role can read columns but not the whole table', async () => {
    const first = await get('/api/granted/1?select=id,name')
    expect([first.status, first.json.data, tagOf(first)]).toEqual([
      200,
      { id: 1, name: 'a' },
      expect.stringMatching(WEAK),
    ])
    expect(await tag('/api/granted/1?select=id,name')).toBe(tagOf(first))
    expect((await get('/api/granted/1')).status).toBe(403)
    expect((await get('/api/granted/2?select=id,name')).status).toBe(404)
  })

  test('cannot be requested as a column', async () => {
    for (const path of ['/api/items/1?select=xmin', '/api/items?xmin=1', '/api/items?sort=xmin']) {
      expect((await get(path)).status, path).toBe(400)
    }
    const query = await post('/api/_query', { query: 'get items where items.xmin = 1' })
    expect(query.status).toBe(400)
  })

  test('is absent from errors', async () => {
    const none = await get('/api/items/7')
    expect([none.status, none.headers.get('etag')]).toEqual([404, null])
  })
})

describe('If-None-Match', () => {
  test.each([
    ['the tag', (current: string) => current],
    ['a list with the tag', (current: string) => `"a", W/"b" , ${current}`],
    ['the tag as a weak one', (current: string) => `W/${current}`],
    ['any', () => '*'],
  ])('%s: 304 without a body', async (_, condition) => {
    const current = await tag('/api/items/1')
    const reply = await get('/api/items/1', { 'If-None-Match': condition(current) })
    expect([reply.status, reply.text, tagOf(reply)]).toEqual([304, '', current])
    expect([reply.headers.get('x-cache'), reply.headers.get('content-type')]).toEqual(['MISS', null])
    expect([reply.headers.get('content-length'), reply.headers.get('x-content-type-options')]).toEqual([
      null,
      'nosniff',
    ])
    const head = await gateway.get('/api/items/1', { method: 'HEAD', headers: { 'If-None-Match': condition(current) } })
    expect([head.status, head.headers.get('etag')]).toEqual([304, current])
  })

  test.each(['"a"', '""', 'W/"a"', '"a', 'a', '"', ',', '"*"', '\u00e4'])(
    '%j matches nothing: 200',
    async condition => {
      const reply = await get('/api/items/1', { 'If-None-Match': condition })
      expect([reply.status, reply.json.data.id]).toEqual([200, 1])
    },
  )

  test('an old tag, and the tag of another selection: 200', async () => {
    const [old, other] = [await tag('/api/items/1'), await tag('/api/items/1?select=id')]
    await sql('update items set stock = 6 where id = 1')
    for (const condition of [old, other, `${old}, ${other}`]) {
      expect((await get('/api/items/1', { 'If-None-Match': condition })).status).toBe(200)
    }
  })

  test('a weak tag: 304', async () => {
    const current = await tag('/api/items/1?expand=nested:lines')
    expect((await get('/api/items/1?expand=nested:lines', { 'If-None-Match': current })).status).toBe(304)
  })

  test('a row that is gone, or of another tenant, is answered with 404', async () => {
    for (const path of ['/api/items/7', '/api/items/9']) {
      expect((await get(path, { 'If-None-Match': '*' })).status).toBe(404)
    }
  })

  test('a compressed response has a separate tag, which both headers accept', async () => {
    await sql(`update items set note = repeat('long', 100) where id = 1`)
    const plain = await tag('/api/items/1')
    for (const coding of ['br', 'gzip']) {
      const headers = { 'Accept-Encoding': coding }
      const packed = await gateway.get('/api/items/1', { headers })
      expect([packed.headers.get('content-encoding'), tagOf(packed)]).toEqual([
        coding,
        plain.replace(/"$/, `-${coding}"`),
      ])
      const again = await gateway.get('/api/items/1', { headers: { ...headers, 'If-None-Match': tagOf(packed) } })
      expect([again.status, tagOf(again), again.headers.get('vary')]).toEqual([304, tagOf(packed), 'Accept-Encoding'])
      expect(again.headers.get('content-encoding')).toBeNull()
      expect((await patch('/api/items/1', { stock: 1 }, match(`"x", ${tagOf(packed)}`))).status).toBe(200)
      await sql('update items set stock = 7 where id = 1')
      const stale = await gateway.get('/api/items/1', { headers: { ...headers, 'If-None-Match': tagOf(packed) } })
      expect(stale.status).toBe(200)
      break
    }
  })

  test('a row from the result cache has the same tag, and a write through the gateway changes it', async () => {
    const ask = (headers: AskOptions['headers'] = {}) => cached.get('/api/items/1', { headers })
    const first = await ask()
    const hit = await ask()
    expect([first.headers.get('x-cache'), hit.headers.get('x-cache')]).toEqual(['MISS', 'HIT'])
    expect(tagOf(hit)).toBe(tagOf(first))
    const same = await ask({ 'If-None-Match': tagOf(first) })
    expect([same.status, same.headers.get('x-cache')]).toEqual([304, 'HIT'])
    const headers = { 'Content-Type': 'application/json', 'If-Match': tagOf(first) }
    const written = await cached.get('/api/items/1', { method: 'PATCH', headers, body: '{"stock":8}' })
    expect(written.status).toBe(200)
    const after = await ask({ 'If-None-Match': tagOf(first) })
    expect([after.status, after.json.data.stock, tagOf(after)]).toEqual([200, 8, tagOf(written)])
  })
})

describe('If-Match', () => {
  test('a write with the current tag succeeds, and its response has the new tag', async () => {
    const first = await tag('/api/items/1')
    const changed = await patch('/api/items/1', { stock: 6 }, match(first))
    expect([changed.status, changed.json.data.stock]).toEqual([200, 6])
    expect(tagOf(changed)).toBe(await tag('/api/items/1'))
    const quiet = { headers: { 'If-Match': tagOf(changed), Prefer: 'return=minimal' } }
    const minimal = await patch('/api/items/1', { stock: 7 }, quiet)
    expect([minimal.status, tagOf(minimal)]).toEqual([204, await tag('/api/items/1')])
    const removed = await remove('/api/items/2', undefined, match(await tag('/api/items/2?select=id')))
    expect([removed.status, removed.headers.get('etag')]).toEqual([204, null])
  })

  test('another tag is answered with 412 and the current tag, and nothing changes', async () => {
    const first = await tag('/api/items/1')
    await sql('update items set stock = 6 where id = 1')
    const current = await tag('/api/items/1')
    for (const send of [
      () => patch('/api/items/1', { stock: 9 }, match(first)),
      () => remove('/api/items/1', undefined, match(first)),
    ]) {
      const reply = await send()
      expect([...codeOf(reply), tagOf(reply)]).toEqual([412, 'PRECONDITION_FAILED', current])
    }
    expect((await get('/api/items/1')).json.data.stock).toBe(6)
    expect((await patch('/api/items/1', { stock: 9 }, match(`${first}, ${current}`))).status).toBe(200)
  })

  test.each([
    ['of another row', () => tag('/api/items/2')],
    ['a weak one', async () => `W/${await tag('/api/items/1')}`],
    ['of another gateway', async () => '"a"'],
    ['an empty one', async () => '""'],
    ['not a version', async () => (await tag('/api/items/1')).replace(/^"[^.]+/, '"zzzzzzz')],
  ])('%s: 412', async (_, make) => {
    const reply = await patch('/api/items/1', { stock: 9 }, match(await make()))
    expect([...codeOf(reply), tagOf(reply)]).toEqual([412, 'PRECONDITION_FAILED', await tag('/api/items/1')])
  })

  test.each(['a', '"a', '"a" "b"', '*, "a"', '', ',', Array(101).fill('"a"').join()])(
    '%j is answered with 400',
    async condition => {
      expect(codeOf(await patch('/api/items/1', { stock: 9 }, match(condition)))).toEqual([400, 'PARSE_ERROR'])
    },
  )

  test('* requires that the row exists; a missing row is answered with 404, whatever the tag', async () => {
    expect((await patch('/api/items/1', { stock: 9 }, match('*'))).status).toBe(200)
    const old = await tag('/api/items/2')
    await sql('delete from items where id = 2')
    for (const condition of ['*', old, '"a"']) {
      expect((await patch('/api/items/2', { stock: 9 }, match(condition))).status).toBe(404)
      expect((await remove('/api/items/2', undefined, match(condition))).status).toBe(404)
      expect((await patch('/api/items/9', { stock: 9 }, match(condition))).status).toBe(404)
    }
  })

  test('a row that the caller cannot write is answered with 404, although its tag is current', async () => {
    expect((await patch('/api/items/3', { stock: 9 }, match(await tag('/api/items/3')))).status).toBe(404)
  })

  test('rows without a version are answered with 412 and their weak tag', async () => {
    const current = await tag('/api/parts/1')
    const reply = await patch('/api/parts/1', { n: 2 }, match(current))
    expect([...codeOf(reply), tagOf(reply)]).toEqual([412, 'PRECONDITION_FAILED', current])
    expect((await patch('/api/parts/1', { n: 2 }, match('*'))).status).toBe(200)
  })

  test('a filtered write and a creation have no row to compare, and are answered with 412', async () => {
    const current = await tag('/api/items/1')
    const row = { id: 10, tenant_id: 't1' }
    const replies = [
      await patch('/api/items?id=1', { stock: 9 }, match(current)),
      await remove('/api/items?id=1', undefined, match(current)),
      await post('/api/items', row, match(current)),
    ]
    expect(replies.map(codeOf)).toEqual(Array(3).fill([412, 'PRECONDITION_FAILED']))
    expect(await tag('/api/items/1')).toBe(current)
    expect((await patch('/api/items?id=1', { stock: 9 }, match('*'))).status).toBe(200)
    expect((await post('/api/items', row, match('*'))).status).toBe(201)
  })

  test('the tag is not revealed to a caller who cannot read the table', async () => {
    const headers = { 'Content-Type': 'application/json', 'If-Match': '"a"' }
    const reply = await limited.get('/api/lines/1,a%252Cb', { method: 'PATCH', headers, body: '{"n":2}' })
    expect([...codeOf(reply), reply.headers.get('etag')]).toEqual([412, 'PRECONDITION_FAILED', null])
  })

  test('only one of many concurrent writers with the same tag succeeds', async () => {
    const current = await tag('/api/items/1')
    const writers = Array.from({ length: 20 }, (_, n) => patch('/api/items/1', { stock: 100 + n }, match(current)))
    const replies = await Promise.all(writers)
    const statuses = replies.map(({ status }) => status)
    expect(statuses.filter(status => status === 200)).toHaveLength(1)
    expect(statuses.filter(status => status === 412)).toHaveLength(19)
    expect((await get('/api/items/1')).json.data.stock).toBe(100 + statuses.indexOf(200))
  })

  test('a write that waits for another write is compared with the version that the other write leaves', async () => {
    const current = await tag('/api/items/1')
    await sql('begin')
    await sql('update items set stock = 50 where id = 1')
    const waiting = patch('/api/items/1', { stock: 60 }, match(current))
    await admin.query(`do $$ begin
      while not exists (select from pg_locks where not granted) loop perform pg_sleep(0.01); end loop;
    end $$`)
    await sql('commit')
    expect((await waiting).status).toBe(412)
    expect((await get('/api/items/1')).json.data.stock).toBe(50)
  })
})

describe('a creation', () => {
  test('returns the tag of the row, with and without a body', async () => {
    const made = await post('/api/items', { id: 10, tenant_id: 't1', name: 'new' })
    expect([made.status, tagOf(made)]).toEqual([201, await tag('/api/items/10')])
    const numbered = await post('/api/numbered', { name: 'a' }, { headers: { Prefer: 'return=minimal' } })
    expect([numbered.status, tagOf(numbered)]).toEqual([201, await tag(numbered.headers.get('location') ?? '')])
    const upsert = { headers: { 'X-Upsert': 'true' } }
    const replaced = await post('/api/items', { id: 10, tenant_id: 't1', name: 'newer' }, upsert)
    expect([replaced.status, tagOf(replaced)]).toEqual([200, await tag('/api/items/10')])
    const line = await post('/api/lines', { item_id: 1, part: 'c,d', n: 1 })
    expect(tagOf(line)).toBe(await tag('/api/lines/1,c%252Cd'))
  })

  test('of a batch returns no tag, and neither does a change of the key', async () => {
    const made = await post('/api/items', [{ id: 11, tenant_id: 't1', name: 'a' }])
    expect([made.status, made.headers.get('etag')]).toEqual([201, null])
    const renamed = await patch('/api/items/11', { id: 12 })
    expect([renamed.status, renamed.headers.get('etag')]).toEqual([200, null])
  })
})

describe('lists', () => {
  test.each(['/api/items?sort=id', '/api/items?select=id&limit=1', '/api/items/1/lines', '/api/items?distinct=name'])(
    '%s: a weak tag, which changes with the rows',
    async path => {
      const first = await get(path)
      expect([first.status, tagOf(first)]).toEqual([200, expect.stringMatching(WEAK)])
      const again = await get(path, { 'If-None-Match': tagOf(first) })
      expect([again.status, again.text, tagOf(again)]).toEqual([304, '', tagOf(first)])
      await sql("update items set id = 0, name = 'mug' where id = 2; update lines set n = 2")
      expect((await get(path, { 'If-None-Match': tagOf(first) })).status).toBe(200)
    },
  )

  test('a stream has no tag', async () => {
    expect((await get('/api/items?stream=true')).headers.get('etag')).toBeNull()
  })
})

describe('version_column and require_if_match', () => {
  const versioned = gatewayFixture(database, {
    toml: `[gateway.tables.parts]\nversion_column = "n"
      [gateway.tables."public.items"]\nversion_column = "note"\nrequire_if_match = true
      [gateway.tables.numbered]\nversion_column = "name"`,
  })
  const ask = (path: string, options: AskOptions = {}) => versioned.get(path, options)
  const change = (path: string, body: object, headers: AskOptions['headers'] = {}) =>
    ask(path, {
      method: 'PATCH',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...headers },
    })
  const versionTag = async (path: string): Promise<string> => tagOf(await ask(path, { headers: PLAIN }))

  test.each([
    ['/api/parts/1', { n: 2 }],
    ['/api/items/1', { note: 'ü"\u202e ,' }],
  ])('the column is the version: %s', async (path, body) => {
    const first = await versionTag(path)
    expect(first).toMatch(STRONG)
    const changed = await change(path, body, { 'If-Match': first })
    expect([changed.status, tagOf(changed)]).toEqual([200, await versionTag(path)])
    const stale = await change(path, body, { 'If-Match': first })
    expect([...codeOf(stale), tagOf(stale)]).toEqual([412, 'PRECONDITION_FAILED', tagOf(changed)])
    const minimal = await change(path, body, { 'If-Match': tagOf(changed), Prefer: 'return=minimal' })
    expect([minimal.status, tagOf(minimal)]).toEqual([204, tagOf(changed)])
  })

  test('a creation returns the tag, with and without a body', async () => {
    const create = (headers: AskOptions['headers']) =>
      ask('/api/numbered', {
        ...{ method: 'POST', body: '{"name":"a"}', headers: { 'Content-Type': 'application/json', ...headers } },
      })
    for (const headers of [{}, { Prefer: 'return=minimal' }]) {
      const made = await create(headers)
      expect([made.status, tagOf(made)]).toEqual([201, await versionTag(made.headers.get('location') ?? '')])
    }
  })

  test('a row whose version is NULL, or too long, has a weak tag', async () => {
    for (const note of ['null', "repeat('x', 257)"]) {
      await sql(`update items set note = ${note} where id = 1`)
      const current = await versionTag('/api/items/1')
      expect(current).toMatch(WEAK)
      expect((await change('/api/items/1', { stock: 1 }, { 'If-Match': current })).status).toBe(412)
    }
    await sql("update items set note = repeat('x', 256) where id = 1")
    expect(await versionTag('/api/items/1')).toMatch(STRONG)
  })

  test('tags of other versions and hostile ones are answered with 412', async () => {
    const current = await versionTag('/api/parts/1')
    const [, row, columns] = current.slice(1, -1).split('.')
    for (const version of ['_AA', '_gA', '_', 'zz', `_${Buffer.from("1'; drop").toString('base64url')}`]) {
      const reply = await change('/api/parts/1', { n: 2 }, { 'If-Match': `"${version}.${row}.${columns}"` })
      expect(reply.status, version).toBe(412)
    }
  })

  test('a write without If-Match is answered with 428, also if filtered, but not for other tables', async () => {
    const writes = [
      await change('/api/items/1', { stock: 1 }),
      await change('/api/items?id=1', { stock: 1 }),
      await ask('/api/items/1', { method: 'DELETE' }),
      await ask('/api/items?id=1', { method: 'DELETE' }),
    ]
    expect(writes.map(codeOf)).toEqual(Array(4).fill([428, 'PRECONDITION_REQUIRED']))
    expect((await change('/api/items?id=1', { stock: 1 }, { 'If-Match': '*' })).status).toBe(200)
    expect((await change('/api/items/1', { stock: 1 }, { 'If-Match': '*' })).status).toBe(200)
    expect((await change('/api/items/7', { stock: 1 }, { 'If-Match': '*' })).status).toBe(404)
    expect((await change('/api/parts/1', { n: 3 })).status).toBe(200)
  })

  test('an upsert and an import that change existing rows need If-Match too; creations do not', async () => {
    const post = (headers: Record<string, string>, type = 'application/json') =>
      ask('/api/items', {
        ...{
          method: 'POST',
          body: type === 'text/csv' ? 'id,tenant_id,name\n1,t1,up\n' : '{"id":1,"tenant_id":"t1","name":"up"}',
        },
        headers: { 'Content-Type': type, ...headers },
      })
    for (const type of ['application/json', 'text/csv']) {
      expect(codeOf(await post({ 'X-Upsert': 'true' }, type))).toEqual([428, 'PRECONDITION_REQUIRED'])
      expect((await post({ 'X-Upsert': 'true', 'If-Match': '*' }, type)).status).toBe(200)
      expect((await post({ 'X-Upsert': 'ignore' }, type)).status).toBe(200)
      expect((await post({}, type)).json.error.details.sqlstate).toBe('23505')
    }
  })

  test.each([
    ['[gateway.tables.itms]\nrequire_if_match = true', 'there is no table "itms"'],
    ['[gateway.tables.items]\nversion_column = "nmae"', 'has no column "nmae" (version_column)'],
  ])('a name that is not in the schema prevents the start: %s', async (toml, reason) => {
    await expect(testGateway(database.url, { toml })).rejects.toThrow(reason)
  })
})
