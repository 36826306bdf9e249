/**
 * docs/guides/access-policies.md: what a role can do with tables, columns and rows, wherever a request
 * mentions them.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, SECRET, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { shopDatabase } from './shop.ts'

const folder = folderFixture()
const database = databaseFixture(
  shopDatabase,
  `create function all_users() returns setof users stable language sql as 'select * from users order by id';
   create function boss() returns users stable language sql as 'select * from users where boss_id is null limit 1';
   create function total_of(n int) returns int immutable language sql as 'select n';
   create table "__proto__" (id int primary key, "constructor" text);
   insert into "__proto__" values (1, 'x');
   grant select, insert, update, delete on all tables in schema public to app`,
)

async function fileWith(name: string, text: string): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, text)
  return file
}

const NATIVE = `
default_decision = "deny"

[tables.users]
operations = ["read"]
read_columns = { only = ["id", "name"] }

[tables.customers]
operations = ["read", "create", "update"]
read_columns = { except = ["mail", "meta"] }
write_columns = { only = ["id", "tenant_id", "name", "mail"] }

[tables.orders]
operations = ["read", "create", "update", "delete"]
denied_operations = ["delete"]

[tables.products]
operations = ["read", "create", "update", "delete"]
require_any_role = ["manager", "__proto__"]
returning_columns = { only = ["id"] }

[tables.labels]
operations = ["read"]
require_scopes = ["labels:read", "labels:all"]

[tables.codes]
operations = ["read", "create"]
read_columns = { only = ["title"] }

[tables.journal]
operations = ["create"]

[tables.__proto__]
operations = ["read"]
read_columns = { except = ["constructor"] }
`

describe('the native access policy', () => {
  const gateway = gatewayFixture(database, async () => ({
    toml: `[access]\nenabled = true\npath = ${JSON.stringify(await fileWith('native.toml', NATIVE))}`,
  }))

  const clerk = { tenantId: 't1', role: 'clerk' }
  const manager = { tenantId: 't1', role: 'manager' }
  const get = (path: string, as: AskOptions['as'] = clerk): Promise<Reply> => gateway.get(path, { as })
  const send = (method: string, path: string, body?: unknown, options: AskOptions = {}): Promise<Reply> =>
    gateway.get(path, {
      as: clerk,
      ...options,
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: { 'Content-Type': 'application/json', ...options.headers },
    })
  const query = (text: string, as: AskOptions['as'] = clerk): Promise<Reply> =>
    gateway.get('/api/_query', { as, method: 'POST', body: text, headers: { 'Content-Type': 'text/plain' } })

  test('rejects with the usual envelope, and names what is rejected', async () => {
    const reply = await get('/api/users?select=id,tenant_id')
    expect(reply.status).toBe(403)
    expect(reply.json).toEqual({
      error: {
        code: 'FORBIDDEN',
        message: 'permission denied: cannot read column "tenant_id" of "users"',
        status: 403,
        request_id: reply.headers.get('x-request-id'),
      },
    })
  })

  test.each([
    ['GET', '/api/order_items', 'the access policy has no entry for it'],
    ['GET', '/api/order_items/aggregate?fn=count', 'the access policy has no entry for it'],
    ['GET', '/api/order_items/_explain', 'the access policy has no entry for it'],
    ['GET', '/api/journal', 'the access policy does not allow read'],
    ['POST', '/api/users', 'the access policy does not allow create'],
    ['PATCH', '/api/users/1', 'the access policy does not allow update'],
    ['DELETE', '/api/orders/1', 'the access policy does not allow delete'],
    ['DELETE', '/api/orders?id=1', 'the access policy does not allow delete'],
    ['GET', '/api/products', 'the access policy requires another role'],
    ['POST', '/api/products', 'the access policy requires another role'],
    ['GET', '/api/labels', 'the access policy requires scope labels:read, labels:all'],
  ])('%s %s is rejected before the request is parsed: %s', async (method, path, reason) => {
    const reply = await send(method, path, method === 'GET' ? undefined : 'no row at all')
    expect([reply.status, reply.json.error.code]).toEqual([403, 'FORBIDDEN'])
    expect(reply.json.error.message).toContain(reason)
  })

  test('grants rights by role and scope', async () => {
    expect((await get('/api/products', manager)).status).toBe(200)
    expect((await get('/api/products', { tenantId: 't1', role: '__proto__' })).status).toBe(200)
    const some = { tenantId: 't1', role: 'clerk', scopes: ['labels:read'] }
    expect((await get('/api/labels', some)).json.error.message).toContain('requires scope labels:all')
    expect((await get('/api/labels', { ...some, scopes: ['x', 'labels:all', 'labels:read'] })).status).toBe(200)
  })

  test('* returns all readable columns', async () => {
    const names = ['id', 'name']
    expect(Object.keys((await get('/api/users')).json.data[0])).toEqual(names)
    expect(Object.keys((await get('/api/users?select=*')).json.data[0])).toEqual(names)
    expect(Object.keys((await get('/api/users/1')).json.data)).toEqual(names)
    expect(Object.keys(JSON.parse((await get('/api/users?stream=true')).text.split('\n')[0] ?? ''))).toEqual(names)
    expect(Object.keys((await query('get users')).json.data[0])).toEqual(names)
    expect(Object.keys((await query('get users u fields u.*')).json.data[0])).toEqual(names)
    expect(Object.keys((await get('/api/rpc/all_users')).json.data[0])).toEqual(names)
    expect((await get('/api/rpc/boss')).json.data).toEqual({ id: 1, name: 'Ann' })
    expect(Object.keys((await get('/api/__proto__')).json.data[0])).toEqual(['id'])
  })

  test.each([
    '/api/users?boss_id=1',
    '/api/users?boss_id.is_null=true',
    '/api/users?or=(id.eq.1,and(name.eq.x,boss_id.eq.1))',
    '/api/users?not.and=(boss_id.eq.1)',
    '/api/users?sort=boss_id',
    '/api/users?sort=-name,boss_id:desc.nullslast',
    '/api/users?distinct=boss_id',
    '/api/users?select=x:boss_id',
    '/api/users?search=Ann&search_columns=name,tenant_id',
    '/api/users/aggregate?fn=max&column=boss_id',
    '/api/users/aggregate?fn=count&group_by=boss_id',
    '/api/users/aggregate?fn=count&boss_id=1',
    '/api/users/_explain?boss_id=1',
    '/api/users/1?select=boss_id',
    '/api/users?stream=true&boss_id=1',
    '/api/users?expand=boss',
    '/api/users/1/users',
    '/api/rpc/all_users?boss_id=1',
    '/api/rpc/all_users?sort=boss_id',
    '/api/rpc/all_users?select=boss_id',
    '/api/customers?meta->>theme=dark',
    '/api/customers?select=meta->a',
    '/api/customers?sort=meta->>theme',
    '/api/__proto__?constructor=x',
  ])('rejects any mention of a hidden column: %s', async path => {
    const reply = await get(path)
    expect([reply.status, reply.text]).toEqual([403, expect.stringMatching(/permission denied: cannot read column/)])
  })

  test.each([
    'get users fields boss_id',
    'get users where boss_id = 1',
    'get users fields id order by boss_id',
    'get users fields count(boss_id) as n',
    'get users fields id where id in (get users fields boss_id)',
    'get users fields id where exists (get customers c where c.meta is not null)',
    'get orders join users u on orders.created_by = u.boss_id fields orders.id',
    'with u as (get users fields boss_id) get u',
    'get orders nest users on orders.created_by = users.boss_id fields orders.id',
    'explain get users where boss_id = 1',
    'count users where boss_id = 1',
    'export users where boss_id = 1',
    'set customers values name = meta::text where id = 1 returning name',
    "set customers values name = 'x' where meta is not null",
  ])('rejects it in a query text as well: %s', async text => {
    const reply = await query(text)
    expect([reply.status, reply.text]).toEqual([403, expect.stringMatching(/permission denied: cannot read column/)])
  })

  test('reports a nonexistent name as missing, and never suggests a hidden name', async () => {
    const reply = await get('/api/users?select=bos_id')
    expect([reply.status, reply.json.error.message]).toEqual([400, 'table "users" has no column "bos_id"'])
    expect((await get('/api/users?bos_id=1')).json.error.message).not.toContain('boss_id')
    expect((await get('/api/journl')).json.error.message).toContain('did you mean "journal"')
    expect((await get('/api/order_item')).json.error.message).not.toContain('order_items')
    expect((await get('/api/orders?expand=custmers')).json.error.message).toContain('did you mean "customers"')
    expect((await get('/api/orders?expand=nested:order_item')).json.error.message).not.toContain('order_items')
  })

  test('limits expanded rows to their readable columns', async () => {
    const { data } = (await get('/api/orders/1?select=id&expand=customers,creator:users!created_by')).json
    expect(data.creator).toEqual({ id: 1, name: 'Ann' })
    expect(Object.keys(data.customers)).toEqual(['id', 'tenant_id', 'name', 'zip', 'tags', 'born', 'vip'])
    expect((await get('/api/orders?expand=nested:order_items')).status).toBe(403)
    expect((await get('/api/orders/1/order_items')).status).toBe(403)
  })

  test('keeps unreadable columns out of execution plans', async () => {
    const reply = await get('/api/customers/_explain?name=Acme')
    expect(reply.status).toBe(200)
    expect(reply.text).not.toMatch(/mail|meta/)
  })

  test('limits search to the readable text', async () => {
    expect((await get('/api/users?search=t1')).json.data).toEqual([])
    expect((await get('/api/users?search=ann')).json.data).toEqual([{ id: 1, name: 'Ann' }])
  })

  test('does not reveal a hidden key in cursors', async () => {
    const first = await get('/api/codes?limit=2')
    expect(first.json.data).toHaveLength(2)
    const cursor: string = first.json.next_cursor
    expect(Buffer.from(cursor, 'base64url').toString()).not.toMatch(/comma|a,b|y\/z|50%/)
    const second = await get(`/api/codes?limit=2&cursor=${cursor}`)
    const titles = [...first.json.data, ...second.json.data].map(({ title }) => title)
    expect(titles.sort()).toEqual(['comma', 'percent', 'slash'])
    expect((await get('/api/codes/x,y%2Fz')).json.data).toEqual({ title: 'slash' })
  })

  test('limits the columns that can be written and returned', async () => {
    const created = await send('POST', '/api/customers', { id: 70, tenant_id: 't1', name: 'New', mail: 'n@n.io' })
    expect([created.status, created.headers.get('location')]).toEqual([201, '/api/customers/70'])
    // The columns that can be read and those that were written, and no others.
    expect(Object.keys(created.json.data)).toEqual(['id', 'tenant_id', 'name', 'mail', 'zip', 'tags', 'born', 'vip'])
    const changed = await send('PATCH', '/api/customers/70', { name: 'Newer' })
    expect(Object.keys(changed.json.data)).toEqual(['id', 'tenant_id', 'name', 'zip', 'tags', 'born', 'vip'])
    const refused = await send('PATCH', '/api/customers/70', { name: 'x', zip: '1' })
    expect([refused.status, refused.json.error.message]).toEqual([
      403,
      'permission denied: cannot write column "zip" of "customers"',
    ])
    const returning = await send('PATCH', '/api/customers/70?returning=name,meta', { name: 'x' })
    expect(returning.status).toBe(403)
    const bulk = await send('PATCH', '/api/customers?mail=n@n.io', { name: 'x' })
    expect([bulk.status, bulk.json.error.message]).toEqual([
      403,
      'permission denied: cannot read column "mail" of "customers"',
    ])
    expect((await send('PATCH', '/api/customers?name=Newer', { name: 'Newest' })).json.count).toBe(1)
    const batch = await send('POST', '/api/customers', [
      { id: 71, tenant_id: 't1', name: 'a' },
      { id: 72, vip: true },
    ])
    expect([batch.status, (await get('/api/customers/71')).status]).toEqual([403, 404])
  })

  test('limits the response to a write to returning_columns', async () => {
    const body = { id: 70, tenant_id: 't1', name: 'Ball' }
    expect((await send('POST', '/api/products', body, { as: manager })).json).toEqual({ data: { id: 70 } })
    expect((await send('PATCH', '/api/products/70', { name: 'Balls' }, { as: manager })).json).toEqual({
      data: { id: 70 },
    })
    expect((await send('DELETE', '/api/products/70?returning=name', undefined, { as: manager })).status).toBe(403)
    expect((await send('DELETE', '/api/products/70?returning=*', undefined, { as: manager })).json).toEqual({
      data: { id: 70 },
    })
    expect(
      (await query("add products fields id, tenant_id, name values 71, 't1', 'x' returning name", manager)).status,
    ).toBe(403)
  })

  test('limits what an upsert returns of an existing row to its readable columns', async () => {
    const text =
      "add customers fields id, tenant_id, name, mail values 1, 't1', 'x', 'm@m' " +
      "conflict (id) update name = 'Acme' returning *"
    const { data } = (await query(text)).json
    expect(Object.keys(data[0])).not.toContain('mail')
    const taking = text.replace("name = 'Acme'", "name = 'Acme', mail = excluded.mail")
    expect((await query(taking)).json.data[0].mail).toBe('m@m')
  })

  test('returns the created row to a role that can only create', async () => {
    const reply = await send('POST', '/api/journal', { tenant_id: 't1', at: 5, what: 'five' })
    expect([reply.status, reply.json]).toEqual([201, { data: { tenant_id: 't1', at: 5, what: 'five' } }])
    const codes = await send('POST', '/api/codes', { part: 'new', sub: 's', tenant_id: 't1', title: 'T' })
    expect([codes.status, codes.headers.get('location')]).toEqual([201, '/api/codes/new,s'])
  })

  test('requires create and update for an upsert, and a readable conflict target', async () => {
    const upsert = { headers: { 'X-Upsert': 'true' } }
    const row = { part: 'x', sub: 'y/z', tenant_id: 't1', title: 'slash' }
    const refused = await send('POST', '/api/codes', row, upsert)
    expect([refused.status, refused.json.error.message]).toEqual([
      403,
      expect.stringContaining('does not allow update'),
    ])
    expect((await send('POST', '/api/codes', row, { headers: { 'X-Upsert': 'ignore' } })).json).toEqual({ data: null })
    const customer = { id: 1, tenant_id: 't1', name: 'Acme' }
    expect((await send('POST', '/api/customers', customer, upsert)).status).toBe(200)
    const on = (columns: string) => ({ headers: { ...upsert.headers, 'X-On-Conflict': columns } })
    expect((await send('POST', '/api/customers', customer, on('meta'))).status).toBe(403)
    const misled = await send('POST', '/api/customers', customer, on('name'))
    expect([misled.status, misled.json.error.message]).toEqual([400, expect.stringContaining('expected id')])
  })

  test('limits _schema and contracts to what the caller can use', async () => {
    const { tables } = (await get('/api/_schema')).json
    expect(Object.keys(tables).sort()).toEqual(['__proto__', 'codes', 'customers', 'journal', 'orders', 'users'])
    const columns = (table: string) => tables[table].columns.map(({ name }: { name: string }) => name)
    expect(columns('users')).toEqual(['id', 'name'])
    // Readable or writable columns.
    expect(columns('customers')).toEqual(['id', 'tenant_id', 'name', 'mail', 'zip', 'tags', 'born', 'vip'])
    expect(JSON.stringify(tables)).not.toMatch(/boss_id|order_items/)
    expect(Object.keys((await get('/api/_schema', manager)).json.tables)).toContain('products')
    const { functions } = (await get('/api/_rpc/contracts')).json
    expect(functions.map(({ name }: { name: string }) => name)).toContain('all_users')
  })

  test('is read again on reload, and an invalid file leaves the old policy in force', async () => {
    const file = await fileWith('reload.json', '{"default_decision": "allow"}')
    const open = await testGateway(database.url, { toml: `[access]\nenabled = true\npath = ${JSON.stringify(file)}` })
    try {
      expect((await open.get('/api/users')).status).toBe(200)
      await writeFile(file, '{"default_decision": "deny", "tables": {"usrs": {"operations": ["read"]}}}')
      await open.gateway.reload()
      expect((await open.get('/api/users')).status).toBe(200)
      await writeFile(file, '{"default_decision": "deny"}')
      await open.gateway.reload()
      expect((await open.get('/api/users')).status).toBe(403)
    } finally {
      await open.close()
    }
  })
})

describe('the legacy route policy', () => {
  const LEGACY = `
policies:
  - name: clerks read what is not secret
    table: customers
    role: clerk
    operations: [read]
    filter: tenant_id = $tenant_id and vip is not true
    allowed_columns: [id, name]
  - name: clerks have no orders
    table: orders
    role: clerk
    operations: []
  - name: and then they have
    table: orders
    role: clerk
    operations: [read, create, update, delete]
    filter: status = 'draft'
  - name: their own
    table: orders
    role: clerk
    operations: [read]
    filter: "created_by::text = $user_id or note = $claims.iss"
  - name: the one that they were given
    table: orders
    role: courier
    operations: [read]
    filter: id = $claims.app.round.order
  - name: names
    table: users
    role: "*"
    operations: [read]
  - name: lines
    table: order_items
    role: clerk
    operations: [read]
    filter: quantity > 1
  - name: products
    table: products
    role: clerk
    operations: [read]
`

  const own = databaseFixture(shopDatabase)
  const gateway = gatewayFixture(own, async () => ({
    toml: `policy = ${JSON.stringify(await fileWith('legacy.yaml', LEGACY))}`,
  }))

  const clerk = { tenantId: 't1', role: 'clerk', userId: '2' }
  const get = (path: string, as: AskOptions['as'] = clerk): Promise<Reply> => gateway.get(path, { as })
  const send = (method: string, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
    gateway.get(path, {
      as: clerk,
      method,
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...headers },
    })
  const query = (text: string): Promise<Reply> =>
    gateway.get('/api/_query', { as: clerk, method: 'POST', body: text, headers: { 'Content-Type': 'text/plain' } })
  const ids = (reply: Reply): unknown => [...reply.text.matchAll(/"id":(\d+)/g)].map(([, id]) => id)

  test('rejects a request without a matching policy', async () => {
    const reply = await get('/api/labels')
    expect([reply.status, reply.json.error.message]).toEqual([
      403,
      expect.stringContaining('no route policy allows it'),
    ])
    expect((await get('/api/customers', { tenantId: 't1', role: 'other' })).status).toBe(403)
    expect((await get('/api/users', { tenantId: 't1', role: 'other' })).status).toBe(200)
  })

  test('applies the columns and rows of the matching policy', async () => {
    expect((await get('/api/customers')).json.data).toEqual([
      { id: 2, name: 'Bolt' },
      { id: 3, name: 'Cord' },
    ])
    expect((await get('/api/customers/1')).status).toBe(404)
    const one = await get('/api/customers/2')
    expect([one.status, one.json.data, one.headers.get('etag')]).toEqual([
      200,
      { id: 2, name: 'Bolt' },
      expect.stringMatching(/^W\//),
    ])
    expect((await get('/api/customers?vip=true')).status).toBe(403)
    expect((await get('/api/customers/aggregate?fn=count')).json.data).toEqual({ count: 2 })
    expect((await get('/api/customers', { role: 'clerk' })).json.data).toEqual([])
  })

  test('compares nested claims of any type', async () => {
    const courier = (app: unknown) =>
      new SignJWT({ tenant_id: 't1', role: 'courier', app })
        .setProtectedHeader({ alg: 'HS256' })
        .sign(Buffer.from(SECRET))
    const orders = async (app: unknown) =>
      gateway.get('/api/orders', { as: null, headers: { Authorization: `Bearer ${await courier(app)}` } })
    expect(ids(await orders({ round: { order: 2 } }))).toEqual(['2'])
    expect(ids(await orders({ round: { order: '4' } }))).toEqual(['4'])
    for (const none of [undefined, 2, { round: null }, { round: [2] }, { 'round.order': 2 }]) {
      expect((await orders(none)).json).toMatchObject({ data: [] })
    }
  })

  test('combines matching policies, and a later one decides if an earlier one grants nothing', async () => {
    expect(ids(await get('/api/orders'))).toEqual(['2', '4', '9007199254740993'])
    const noted = { ...clerk, userId: '0', issuer: 'first' }
    expect(ids(await get('/api/orders', noted))).toEqual(['1', '4', '9007199254740993'])
  })

  test('filters rows everywhere they are read', async () => {
    const reply = await get('/api/orders?select=id&expand=customers,nested:order_items.product')
    const found = reply.json.data
    expect(found.find(({ id }: { id: number }) => id === 2).customers).toBeNull()
    expect(found.find(({ id }: { id: number }) => id === 4).customers).toEqual({ id: 2, name: 'Bolt' })
    const lines = (await get('/api/orders/2/order_items')).json.data
    expect(lines.map(({ quantity }: { quantity: number }) => quantity)).toEqual([5])
    expect((await get('/api/orders/1/order_items')).status).toBe(404)
    const left = await query(
      'get orders o left join customers c on o.customer_id = c.id fields o.id, c.name order by o.id',
    )
    expect(left.json.data.slice(0, 2)).toEqual([
      { id: 2, name: null },
      { id: 4, name: 'Bolt' },
    ])
    expect((await query('get customers[id > 0] fields id')).json.data).toEqual([{ id: 2 }, { id: 3 }])
    // The condition would reveal how many rows the filter removes.
    expect((await get('/api/customers/_explain?id=1')).status).toBe(403)
    const joined =
      'set orders o inner join customers c on c.id = o.customer_id values note = c.name where o.id = 4 returning o.note'
    expect((await query(joined)).json.data).toEqual([{ note: 'Bolt' }])
    expect((await query(joined.replace('= 4', '= 9007199254740993'))).json.data).toEqual([])
  })

  test('does not reveal filtered rows through an expression that fails', async () => {
    // The expression fails only for customer 1, who is filtered.
    const reply = await query('get customers fields id where 1 / (id - 1) >= 0')
    expect([reply.status, ids(reply)]).toEqual([200, ['2', '3']])
    const failing = '1 / (c.id - 1) >= 0'
    for (const text of [
      `get customers c join orders o on o.customer_id = c.id and ${failing} fields c.id`,
      `get orders nest customers as c on c.id = orders.customer_id and ${failing} fields orders.id`,
      `get orders nest customers as c on c.id = orders.customer_id { where ${failing} } fields orders.id`,
      `get orders where exists (get customers c where ${failing})`,
    ]) {
      expect([text, (await query(text)).status]).toEqual([text, 200])
    }
    // Order 1 cannot be changed by this caller.
    for (const text of [
      "set orders values note = 'n' where 1 / (id - 1) >= 0",
      "set orders o inner join users u on 1 / (o.id - 1) >= 0 values note = 'n' where o.id = 4 and u.id = 1",
      'del orders where 1 / (id - 1) > 5',
    ]) {
      expect([text, (await query(text)).status]).toEqual([text, 200])
    }
  })

  test('limits writes to its rows, before and after the change', async () => {
    expect((await send('PATCH', '/api/orders/1', { note: 'x' })).status).toBe(404)
    expect((await send('PATCH', '/api/orders/4', { note: 'x' })).status).toBe(200)
    const out = await send('PATCH', '/api/orders/4', { status: 'paid' })
    expect([out.status, out.json.error.message]).toEqual([
      403,
      expect.stringContaining('does not allow writing this row'),
    ])
    const row = {
      id: 50,
      tenant_id: 't1',
      customer_id: 2,
      created_by: 3,
      total: '1',
      placed_at: '2026-01-01T00:00:00Z',
    }
    expect((await send('POST', '/api/orders', { ...row, status: 'paid' })).status).toBe(403)
    expect(
      (
        await send('POST', '/api/orders', [
          { ...row, status: 'draft' },
          { ...row, id: 51, status: 'paid' },
        ])
      ).status,
    ).toBe(403)
    expect((await send('POST', '/api/orders', { ...row, status: 'draft' }, { Prefer: 'return=minimal' })).status).toBe(
      201,
    )
    const upsert = { 'X-Upsert': 'true' }
    expect((await send('POST', '/api/orders', { ...row, id: 1, status: 'draft' }, upsert)).status).toBe(403)
    expect((await send('POST', '/api/orders', { ...row, status: 'draft', note: 'up' }, upsert)).status).toBe(200)
    expect((await send('PATCH', '/api/orders?total=gte.0', { note: 'all' })).json.count).toBe(3)
    expect((await query("set orders values status = 'paid' where id = 50")).status).toBe(403)
    expect((await query("set orders values note = 'q' where id = 50 returning note")).json.data).toEqual([
      { note: 'q' },
    ])
    expect((await gateway.get('/api/orders/1', { as: clerk, method: 'DELETE' })).status).toBe(404)
    expect((await gateway.get('/api/orders/50', { as: clerk, method: 'DELETE' })).status).toBe(204)
  })
})

describe('rows that a route policy hides', () => {
  const HIDING = `
policies:
  - {name: own, table: users, role: clerk, operations: [read], filter: users.name <> 'Bob'}
  - {name: any, table: users, role: clerk, operations: [create, update]}
`

  const own = databaseFixture(
    shopDatabase,
    `create function all_users() returns setof users stable language sql as 'select * from users order by id'`,
  )
  const gateway = gatewayFixture(own, async () => ({
    toml: `policy = ${JSON.stringify(await fileWith('hiding.yaml', HIDING))}`,
  }))
  const as = { tenantId: 't1', role: 'clerk' }

  test('are hidden behind functions as well, and a condition can mention its own table', async () => {
    for (const path of ['/api/users', '/api/rpc/all_users']) {
      const { data } = (await gateway.get(path, { as })).json
      expect([path, data.map(({ name }: { name: string }) => name)]).toEqual([path, ['Ann', 'Cyd']])
    }
  })

  test('are not changed by an upsert', async () => {
    const headers = { 'Content-Type': 'application/json', 'X-Upsert': 'true' }
    const upsert = (id: number) =>
      gateway.get('/api/users', {
        as,
        method: 'POST',
        headers,
        body: JSON.stringify({ id, tenant_id: 't1', name: 'N' }),
      })
    expect((await upsert(2)).status).toBe(403)
    expect((await upsert(3)).status).toBe(200)
  })

  test('are not revealed by a pattern that fails', async () => {
    const reply = await gateway.get('/api/users?name=like.Bob%5C', { as })
    expect([reply.status, reply.json.error.message]).toEqual([
      400,
      expect.stringContaining('ends with an incomplete escape'),
    ])
    expect((await gateway.get('/api/users?name=like.Bob%5C%5C', { as })).status).toBe(200)
    // The response is the same whether a hidden row has the id or not.
    const answers = await Promise.all([2, 77].map(id => gateway.get(`/api/users?id=${id}&name=match.(`, { as })))
    expect(answers[0]?.status).toBe(answers[1]?.status)
  })
})

describe('a schema change under a policy', () => {
  test('denies access to what the policy no longer covers', async () => {
    const own = await shopDatabase()
    const file = await fileWith(
      'outdated.yaml',
      'policies: [{name: a, table: orders, role: clerk, operations: [read], filter: note is null}]',
    )
    const gateway = await testGateway(own.url, { toml: `policy = ${JSON.stringify(file)}` })
    try {
      const ask = () => gateway.get('/api/orders', { as: { tenantId: 't1', role: 'clerk' } })
      expect((await ask()).status).toBe(200)
      await execute(own.adminUrl, 'alter table orders rename note to remark')
      await gateway.gateway.reload()
      const reply = await ask()
      expect([reply.status, reply.json.error.code]).toEqual([500, 'INTERNAL'])
      expect(reply.text).not.toContain('note')
    } finally {
      await gateway.close()
      await own.drop()
    }
  })
})

describe('both policies', () => {
  test('must both allow a request, and the native policy is applied first', async () => {
    const native = await fileWith(
      'both.json',
      JSON.stringify({
        default_decision: 'allow',
        tables: { users: { operations: ['read'], read_columns: { only: ['id', 'name'] } }, labels: { operations: [] } },
      }),
    )
    const legacy = await fileWith(
      'both.yaml',
      'policies: [{name: a, table: "*", role: clerk, operations: [read], allowed_columns: [id, tenant_id]}]',
    )
    const gateway = await testGateway(database.url, {
      toml: `policy_path = ${JSON.stringify(legacy)}\n[access]\nenabled = true\npath = ${JSON.stringify(native)}`,
    })
    try {
      const as = { tenantId: 't1', role: 'clerk' }
      expect((await gateway.get('/api/users/1', { as })).json.data).toEqual({ id: 1 })
      expect((await gateway.get('/api/labels', { as })).json.error.message).toContain(
        'the access policy does not allow',
      )
      expect((await gateway.get('/api/users', { as: { tenantId: 't1' } })).json.error.message).toContain(
        'no route policy',
      )
    } finally {
      await gateway.close()
    }
  })
})

describe('an invalid policy', () => {
  const start = (toml: string): Promise<TestGateway> => testGateway(database.url, { toml })

  test('has all its problems reported at once, with file, line and the nearest name', async () => {
    const native = await fileWith(
      'wrong.toml',
      `default_decision = "deny"
[tables.usrs]
operations = ["read"]
[tables.users]
operations = ["read"]
read_columns = { only = ["id", "nam"] }
[tables.orders]
read_columns = "any"
`,
    )
    const legacy = await fileWith(
      'wrong.yaml',
      `policies:
  - name: a
    table: orders
    role: clerk
    operations: [read]
    filter: tenant = $tenant_id
    allowed_columns: [idd]
  - name: b
    table: nowhere
    role: clerk
    operations: [read]
`,
    )
    const error = await start(
      `policy = ${JSON.stringify(legacy)}\n[access]\nenabled = true\npath = ${JSON.stringify(native)}`,
    ).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ name: 'PolicyError' })
    const lines = (error as Error).message.replaceAll(`${folder}/`, '').split('\n')
    expect(lines).toEqual([
      'wrong.toml:2: tables.usrs: there is no such table; did you mean users?',
      'wrong.toml:6: tables.users.read_columns.only.1: table "users" has no column "nam"; did you mean name?',
      expect.stringMatching(/^wrong\.toml:7: tables\.orders: allows nothing/),
      'wrong.yaml:7: policies.0.allowed_columns.0: table "orders" has no column "idd"; did you mean id?',
      expect.stringMatching(/^wrong\.yaml:6: policies\.0\.filter: does not match table "orders": .*"tenant"/),
      'wrong.yaml:9: policies.1.table: there is no table "nowhere"',
    ])
  })

  test.each([
    ['key.toml', '[tables.users]\noperatons = ["read"]', 'unknown key; did you mean operations?'],
    ['operation.toml', '[tables.users]\noperations = ["reed"]', '"reed" is not an operation'],
    ['rule.toml', '[tables.users]\nread_columns = "some"', 'expected "any", "none", { only'],
    ['two.toml', '[tables.users]\nread_columns = { only = ["id"], except = ["id"] }', 'expected "any", "none", { only'],
    [
      'twice.toml',
      '[tables.users]\noperations = ["read"]\n[tables."public.users"]\noperations = []',
      'twice.toml:3: tables.public.users: is the same table as the entry "users"; merge them',
    ],
    ['decision.toml', 'default_decision = "maybe"', 'expected "allow" or "deny"'],
    ['syntax.toml', '[tables', 'cannot be read'],
    ['syntax.json', '{"tables": {"users": {}, "users": {}}}', 'cannot be read'],
    ['list.json', '[]', 'expected a table of keys and values'],
  ])('is rejected with the reason: %s', async (name, text, message) => {
    const file = await fileWith(name, text)
    await expect(start(`[access]\nenabled = true\npath = ${JSON.stringify(file)}`)).rejects.toThrow(message)
  })

  test.each([
    ['no-list.yaml', 'polices: []', 'unknown key; did you mean policies?'],
    ['syntax.yaml', 'policies: [', 'cannot be read'],
    [
      'filter.yaml',
      'policies: [{name: a, table: users, role: r, operations: [read], filter: "id ="}]',
      'is not a condition',
    ],
    [
      'caller.yaml',
      'policies: [{name: a, table: users, role: r, operations: [read], filter: "id = $tenant"}]',
      '"$tenant" is not a property of the caller',
    ],
    ['missing.yaml', 'policies: [{name: a, table: users}]', 'expected a text for role'],
  ])('is rejected at the line: %s', async (name, text, message) => {
    const file = await fileWith(name, text)
    await expect(start(`policy = ${JSON.stringify(file)}`)).rejects.toThrow(message)
  })
})
