/**
 * docs/guides/allow-list.md: a query whose shape is not on the list is answered with 403 before any name is
 * looked up.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import type { Event } from '../../src/events.ts'
import { startGateway } from '../../src/gateway/gateway.ts'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, configFile, type Reply, SECRET } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { sampleDatabase } from '../support/sample.ts'
import { read } from '../tidy/tree.ts'
import { shopDatabase } from './shop.ts'

const LIST = `
# What the shop's own pages ask.
GET /api/orders?select&status.eq&sort=-placed_at
GET /api/orders?expand=customers&total.gte&total.lt   # by price
GET /api/orders/{id}?select=id,total
GET /api/customers/{id}/orders?status.eq
GET /api/orders/aggregate?fn=count&status.eq
GET /api/orders/_explain?status.eq
GET /api/customers?or=(vip.is_null,and(name.ilike,zip.eq))&meta->>theme.ne
GET /api/products?search
GET /api/codes/{id}
POST /api/labels?returning=id,name
POST /api/labels?X-Upsert=true&returning
PATCH /api/labels/{id}?returning=name
DELETE /api/labels?id.eq&returning=id
GET /api/rpc/shout?word
POST /api/rpc/shout
get orders fields id where status = ? and total > ? order by id limit 2
get customers fields name, meta ->> 'theme' as theme where id in (?) order by id
set labels values name = ? where id = ? returning name
`

const database = databaseFixture(
  shopDatabase,
  `create function shout(word text) returns text stable language sql as 'select upper(word)';
   create function whisper(word text) returns text stable language sql as 'select lower(word)'`,
)
const folder = folderFixture()
beforeAll(() => writeFile(join(folder, 'allow.txt'), LIST))
const gateway = gatewayFixture(database, { toml: `allow_list_path = '${join(folder, 'allow.txt')}'` })

const json = { 'Content-Type': 'application/json' }
const send = (method: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
  gateway.get(path, { method, body: JSON.stringify(body), headers: { ...json, ...headers } })
const query = (text: string, parameters?: unknown): Promise<Reply> =>
  send('POST', '/api/_query', { query: text, ...(parameters === undefined ? {} : { parameters }) })

describe('a listed request is answered', () => {
  test.each([
    'orders?select=id,total&status=eq.paid&sort=-placed_at',
    'orders?sort=placed_at:desc&status.eq=shipped&select=id&limit=1',
    'orders?select=*&status=paid&sort=-placed_at&stream=true',
    'orders?total.lt=200&total=gte.5&expand=customers',
    'orders/1?select=id,total',
    'customers/1/orders?status=paid',
    'orders/aggregate?fn=count&status=paid',
    'orders/_aggregate?status=paid&fn=count',
    'orders/_explain?status=paid',
    'customers?meta->>theme=ne.light&or=(and(zip.eq.01234,name.ilike.a*),vip.is_null)',
    'products?search=bicycle',
    'codes/a%252Cb,c',
    'rpc/shout?word=hello',
  ])('GET /api/%s', async path => {
    const reply = await gateway.get(`/api/${path}`)
    // The response is not empty: the shop has rows for every path.
    expect([reply.status, reply.text.includes('"data":[]')]).toEqual([200, false])
    expect((await gateway.get(`/api/${path}`, { method: 'HEAD' })).status).toBe(200)
  })
  test('even for later pages by cursor', async () => {
    const first = await gateway.get('/api/orders?select=id&status=paid&sort=-placed_at&limit=1')
    const next = `cursor=${first.json.next_cursor}`
    const second = await gateway.get(`/api/orders?select=id&status=paid&sort=-placed_at&limit=1&${next}`)
    expect([...first.json.data, ...second.json.data]).toEqual([{ id: 2 }, { id: 1 }])
  })
  test('even if it is a write', async () => {
    const row = { id: 50, tenant_id: 't1', name: 'new' }
    expect((await send('POST', '/api/labels?returning=id,name', row)).json).toEqual({ data: { id: 50, name: 'new' } })
    const upsert = await send('POST', '/api/labels?returning=name', { ...row, name: 'again' }, { 'X-Upsert': 'true' })
    expect([upsert.status, upsert.json]).toEqual([200, { data: { name: 'again' } }])
    const patched = await send('PATCH', '/api/labels/50?returning=name', { name: 'changed' })
    expect(patched.json).toEqual({ data: { name: 'changed' } })
    expect((await query("set labels values name = 'set' where id = $1 returning name", [50])).json.data).toEqual([
      { name: 'set' },
    ])
    const deleted = await gateway.get('/api/labels?id=50&returning=id', { method: 'DELETE' })
    expect(deleted.json).toEqual({ data: [{ id: 50 }], count: 1 })
  })
  test('if it is a function call', async () => {
    expect((await send('POST', '/api/rpc/shout', ['quietly'])).json.data).toBe('QUIETLY')
    expect((await send('POST', '/api/rpc/shout', { word: 'quietly' })).json.data).toBe('QUIETLY')
  })
  test('if it is a query text', async () => {
    const listed = await query("get orders fields id where status = 'paid' and total > :least order by id limit 2", {
      least: 1,
    })
    expect(listed.json.data).toEqual([{ id: 1 }, { id: 2 }])
    const themes = await query("get customers fields name, meta ->> 'theme' as theme where id in (1, 2) order by id")
    expect(themes.json.data).toEqual([
      { name: 'Acme', theme: 'dark' },
      { name: 'Bolt', theme: 'light' },
    ])
  })
})

describe('an unlisted request is answered with 403', () => {
  test.each([
    'orders',
    'orders?status=paid',
    'orders?select=id&status=paid',
    'orders?select=id&status=paid&sort=placed_at',
    'orders?select=id&status=ne.paid&sort=-placed_at',
    'orders?select=id&status=paid&sort=-placed_at&note=x',
    'orders?select=id&status=paid&sort=-placed_at&expand=customers',
    'orders?total.lt=200&total=gte.5&expand=users!created_by',
    'orders/1',
    'orders/1?select=id,note',
    'orders/1?select=id,total&expand=customers',
    'customers/1/orders',
    'customers/1/orders!customer_id?status=paid',
    'orders/aggregate?fn=sum&column=total&status=paid',
    'customers?or=(vip.is_null,and(name.ilike.a*,zip.ne.1))&meta->>theme=ne.x',
    'customers?or=(vip.is_null,and(name.ilike.a*,zip.eq.1))&meta->>secret=ne.x',
    'products?search=bicycle&search_columns=name',
    'rpc/shout?word=hello&select=x',
    'rpc/whisper?word=hello',
    'users',
  ])('GET /api/%s', async path => {
    const reply = await gateway.get(`/api/${path}`)
    expect(reply.status).toBe(403)
    expect(reply.json.error).toEqual({
      code: 'FORBIDDEN',
      message: 'this query is not on the allow-list (allow_list_path)',
      status: 403,
      request_id: reply.headers.get('x-request-id'),
      hint: expect.stringMatching(/^its shape is: GET \/api\//),
    })
  })
  test.each([
    ['PUT', '/api/labels/1?returning=name', {}],
    ['POST', '/api/labels', {}],
    ['POST', '/api/labels?returning=id,name', { 'X-Upsert': 'true', 'X-On-Conflict': 'id' }],
    ['POST', '/api/labels?returning=id,name', { 'X-Upsert': 'ignore' }],
    ['PATCH', '/api/labels/1', {}],
    ['PATCH', '/api/labels?id=1&returning=name', {}],
    ['POST', '/api/rpc/whisper', {}],
    ['POST', '/api/rpc/shout?select=word', {}],
  ])('%s %s %j', async (method, path, headers) => {
    expect((await send(method, path, { id: 51, tenant_id: 't1', name: 'x' }, headers)).json.error.code).toBe(
      'FORBIDDEN',
    )
  })
  test('if it is a deletion that returns its rows', async () => {
    const reply = await gateway.get('/api/labels?id=1', {
      method: 'DELETE',
      headers: { Prefer: 'return=representation' },
    })
    expect(reply.json.error.hint).toBe('its shape is: DELETE /api/labels?id.eq&returning=*')
  })
  test.each([
    'get orders',
    'get orders fields id where status = $1 and total > 5 order by id limit 3',
    "get customers fields name, meta ->> 'secret' as theme where id in (1) order by id",
    "get customers fields name, meta ->> 'theme' as theme where id in (1, (get users fields max(id))) order by id",
    'explain get orders fields id where status = $1 and total > 5 order by id limit 2',
    'set labels values name = $1 where id > 1 returning name',
    'del labels where all',
  ])('%s', async text => {
    const reply = await query(text, text.includes('$1') ? ['x'] : undefined)
    expect(reply.status).toBe(403)
    expect(reply.json.error.message).toBe('this query is not on the allow-list (allow_list_path)')
    expect(reply.json.error.hint).toMatch(/^its shape is: /)
  })
  test('and changes nothing', async () => {
    const [{ count } = {}] = await execute(database.adminUrl, "select count(*)::int from labels where name <> 'x'")
    expect(count).toBe(3)
  })
})

describe('a rejection reveals nothing about the schema', () => {
  const answer = async (path: string, options?: AskOptions) => {
    const reply = await gateway.get(path, options)
    return [reply.status, reply.text.replaceAll(/"request_id":"[^"]*"/g, '').replaceAll(/users|absent/g, 'name')]
  }
  test.each([
    ['/api/users', '/api/absent', {}],
    ['/api/users/1', '/api/absent/1', {}],
    ['/api/orders?users=1', '/api/orders?absent=1', {}],
    ['/api/orders/1/users', '/api/orders/1/absent', {}],
    ['/api/rpc/users', '/api/rpc/absent', {}],
    ['/api/users', '/api/absent', { method: 'PUT' }],
    ['/api/users', '/api/absent', { method: 'POST', body: 'no json' }],
  ])('%s and %s', async (one, other, options) => {
    const refused = await answer(one, options)
    expect(refused[0]).toBe(403)
    expect(await answer(other, options)).toEqual(refused)
  })
})

test('a request without a valid token is answered with 401 first', async () => {
  expect((await gateway.get('/api/orders', { as: null })).status).toBe(401)
})

test.each(['/health', '/health/internal', '/metrics', '/api/_schema', '/api/_rpc/contracts'])(
  '%s is allowed, because it is not a request for data',
  async path => {
    expect((await gateway.get(path)).status).toBe(200)
  },
)

test('an unparsable request is answered with 400, as without a list', async () => {
  expect((await gateway.get('/api/orders?total=in.5')).status).toBe(400)
  expect((await query('get orders where')).status).toBe(400)
})

describe('the guide docs/guides/allow-list.md', () => {
  const guide = read('docs/guides/allow-list.md')

  const sample = databaseFixture(sampleDatabase)
  const file = join(folder, 'guide.txt')
  beforeAll(() => writeFile(file, /^```text\n([\s\S]*?)^```/m.exec(guide)?.[1] ?? 'no list'))
  const shown = gatewayFixture(sample, { toml: `allow_list_path = '${file}'` })

  test('shows a valid list, and the error for a query that is not on it', async () => {
    const [tenant] = sample.tenants
    const as = { tenantId: tenant?.id ?? '', userId: tenant?.userId ?? '', role: 'clerk' }
    const status = async (path: string, options: AskOptions = {}) => (await shown.get(path, { as, ...options })).status
    expect(await status('/api/orders?select=id,total&status=paid&sort=-placed_at')).toBe(200)
    expect(await status('/api/orders/5?expand=customer,nested:order_items')).toBe(200)
    expect(await status('/api/customers/934/orders?limit=1')).toBe(200)
    expect(await status('/api/orders/aggregate?fn=sum&column=total&group_by=status')).toBe(200)
    const text = { method: 'POST', headers: { 'Content-Type': 'text/plain' } }
    const body = "get orders fields id, total where status = 'paid' order by placed_at desc limit 5"
    expect(await status('/api/_query', { ...text, body })).toBe(200)
    expect(await status('/api/rpc/order_summary', { ...text, headers: json, body: '[5]' })).toBe(200)

    const refused = (await shown.get('/api/orders?note=x', { as })).json
    const example = JSON.parse(/^```json\n([\s\S]*?)^```/m.exec(guide)?.[1] ?? '{}')
    expect(refused).toEqual({ error: { ...example.error, request_id: expect.any(String) } })
  })
})

describe('the allow-list file', () => {
  let file: string
  beforeEach(async () => {
    file = join(await mkdtemp(join(folder, 'list-')), 'allow.txt')
  })

  async function start(toml: string) {
    const path = await configFile(toml)
    const events: Event[] = []
    const { config } = loadConfig({
      file: path,
      environment: { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0', SVC_LOG_LEVEL: 'silent' },
      workingDirectory: tmpdir(),
    })
    return { gateway: await startGateway(config, { emit: event => events.push(event) }), events }
  }

  test('prevents the start if it is missing or invalid, and all problems of both lists are reported', async () => {
    const functions = join(folder, 'functions.txt')
    await writeFile(functions, 'ok\nno function\n')
    await writeFile(file, 'GET /api/orders\nGET /api/orders?status=paid\nget orders where\n')
    const both = `allow_list_path = '${file}'\nrpc_allowlist_path = '${functions}'`
    await expect(start(both)).rejects.toThrow(
      /^.*functions\.txt:2: .*\n.*allow\.txt:2: "status=paid" .*\n.*allow\.txt:3: .*\(column 17\)$/,
    )
    await rm(file)
    await expect(start(both)).rejects.toThrow(/allow_list_path: expected a file that can be read: ENOENT/)
  })

  test('is read again on a reload; an invalid file leaves the old list in force and is reported', async () => {
    await writeFile(file, 'get orders\n')
    const { gateway, events } = await start(`allow_list_path = '${file}'\nrequire_auth = false`)
    const ask = async (text: string) =>
      (
        await fetch(`${gateway.url}/api/_query`, {
          method: 'POST',
          body: text,
          headers: { 'Content-Type': 'text/plain' },
        })
      ).status
    try {
      expect([await ask('get orders'), await ask('get users')]).toEqual([200, 403])
      await writeFile(file, 'get users\nget\n')
      await gateway.reload()
      expect([await ask('get orders'), await ask('get users')]).toEqual([200, 403])
      expect(events).toContainEqual({
        kind: 'warning',
        message: expect.stringMatching(/allow\.txt:2: .*; the list read before stays in effect$/),
        fix: 'Fix the file and send SIGHUP again.',
      })
      await rm(file)
      await gateway.reload()
      expect([await ask('get orders'), await ask('get users')]).toEqual([200, 403])
      await writeFile(file, 'get users\n')
      await gateway.reload()
      expect([await ask('get orders'), await ask('get users')]).toEqual([403, 200])
    } finally {
      await gateway.close()
    }
  })
})
