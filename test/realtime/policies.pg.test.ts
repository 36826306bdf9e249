/**
 * Access policies (docs/guides/access-policies.md) apply to subscriptions and live queries: columns, rows,
 * and the right to subscribe.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

const NATIVE = `
default_decision = "deny"

[tables.docs]
operations = ["read", "create", "update", "delete"]
read_columns = { except = ["secret"] }
`

// Without row-level security, so only the filter separates tenants.
const LEGACY = `
policies:
  - name: own
    table: docs
    role: clerk
    operations: [read, create, update, delete]
    filter: owner = $tenant_id and not hidden
    allowed_columns: [id, owner, title, secret, hidden]
  - name: all
    table: docs
    role: boss
    operations: [read, create, update, delete]
    allowed_columns: [id, owner, title, secret, hidden]
`

const database = databaseFixture(`
  create table docs (id int primary key, owner text, title text, secret text, hidden bool not null default false);
  create table others (id int primary key);
  grant select, insert, update, delete on docs, others to app
`)
const folder = folderFixture()
const [native, legacy] = [join(folder, 'access.toml'), join(folder, 'legacy.yaml')]
beforeAll(() => Promise.all([writeFile(native, NATIVE), writeFile(legacy, LEGACY)]))
const gateway = gatewayFixture(database, {
  toml: `policy_path = ${JSON.stringify(legacy)}\n[access]\nenabled = true\npath = ${JSON.stringify(native)}`,
})

async function socketOf(tenantId: string, role = 'clerk'): Promise<TestSocket> {
  return openSocket(gateway.url, { token: await gateway.token({ tenantId, role }) })
}

function send(method: string, path: string, body: unknown) {
  return gateway.get(path, {
    ...{ method, as: { tenantId: 'any', role: 'boss' }, headers: { 'Content-Type': 'application/json' } },
    body: JSON.stringify(body),
  })
}

describe('a subscription', () => {
  test.each([
    [{ channel: 'svc_table_others' }, 'NOT_FOUND'],
    [{ channel: 'svc_table_docs', select: 'id,secret' }, 'FORBIDDEN'],
    [{ channel: 'svc_table_docs', filter: 'secret=x' }, 'FORBIDDEN'],
  ])('%o is rejected', async (message, code) => {
    const socket = await socketOf('a')
    socket.say({ type: 'subscribe', ...message })
    expect((await socket.next()).code).toMatch(code === 'NOT_FOUND' ? /NOT_FOUND|FORBIDDEN/ : code)
    await socket.close()
  })

  test('delivers to each caller the rows that the filter allows, when they appear, change and disappear', async () => {
    const [a, b, boss] = [await socketOf('a'), await socketOf('b'), await socketOf('a', 'boss')]
    for (const socket of [a, b, boss]) {
      socket.say({ type: 'subscribe', channel: 'svc_table_docs' })
      await socket.nextOf('subscribed')
    }
    const created = [
      { id: 1, owner: 'a', title: 't', secret: 's' },
      { id: 3, owner: 'b', title: 'b', secret: 's' },
    ]
    expect((await send('POST', '/api/docs', created)).status).toBe(201)
    const row = { id: 1, owner: 'a', title: 't', hidden: false }
    for (const socket of [a, boss]) expect(await socket.next()).toMatchObject({ operation: 'INSERT', new: row })
    // Each subscriber has received the first row before it changes, because a later visibility query would
    // return the changed row.
    for (const socket of [b, boss]) expect(await socket.next()).toMatchObject({ operation: 'INSERT', key: { id: 3 } })
    await send('PATCH', '/api/docs/1', { owner: 'b' })
    expect(await a.next()).toMatchObject({ operation: 'DELETE', key: { id: 1 }, new: null })
    const moved = await b.next()
    expect(moved).toMatchObject({ operation: 'INSERT' })
    expect(moved.new).toEqual({ ...row, owner: 'b' })
    expect(await boss.next()).toMatchObject({ operation: 'UPDATE', new: { owner: 'b' } })
    await send('PATCH', '/api/docs/1', { hidden: true })
    expect(await b.next()).toMatchObject({ operation: 'DELETE' })
    expect(await boss.next()).toMatchObject({ operation: 'UPDATE' })
    // The others receive nothing about rows they never saw, not even deletions.
    expect((await gateway.get('/api/docs/1', { method: 'DELETE', as: { tenantId: 'any', role: 'boss' } })).status).toBe(
      204,
    )
    expect(await boss.next()).toMatchObject({ operation: 'DELETE' })
    await send('POST', '/api/docs', { id: 2, owner: 'a', title: 'a' })
    await send('PATCH', '/api/docs/3', { title: 'c' })
    expect(await a.next()).toMatchObject({ operation: 'INSERT', key: { id: 2 } })
    expect(await b.next()).toMatchObject({ operation: 'UPDATE', key: { id: 3 } })
    await Promise.all([a, b, boss].map(socket => socket.close()))
  })
})

test('a live query returns only rows that its caller can see', async () => {
  const [a, b] = [await socketOf('a'), await socketOf('b')]
  for (const socket of [a, b]) {
    socket.say({ type: 'live_query', id: 'l', svc: 'get docs order by id', table: 'docs', interval_ms: 100 })
    await socket.nextOf('subscribed')
  }
  expect((await a.next()).rows).toEqual([{ id: 2, owner: 'a', title: 'a', hidden: false }])
  expect((await b.next()).rows).toEqual([{ id: 3, owner: 'b', title: 'c', hidden: false }])
  a.say({ type: 'live_query', id: 'm', svc: 'get docs fields secret', table: 'docs' })
  expect(await a.next()).toMatchObject({ type: 'error', id: 'm', code: 'FORBIDDEN', details: { line: 1, column: 17 } })
  await Promise.all([a.close(), b.close()])
})

test('the allow-list applies to subscriptions and live queries, and the connection stays open', async () => {
  const file = join(folder, 'allowed.txt')
  await writeFile(
    file,
    'GET /api/docs?select&owner.eq\nGET /api/docs?title.eq\nget docs fields id where id = ?\nPOST /api/docs\n',
  )
  const listed = await testGateway(database.url, { toml: `allow_list_path = ${JSON.stringify(file)}` })
  try {
    const socket = await openSocket(listed.url, { token: await listed.token({ tenantId: 'a' }) })
    const answer = async (message: Readonly<Record<string, unknown>>) => {
      socket.say(message)
      return socket.next()
    }
    const refused = (shape: string) => ({
      type: 'error',
      code: 'FORBIDDEN',
      message: 'this query is not on the allow-list (allow_list_path)',
      hint: `its shape is: ${shape}`,
    })
    const subscribe = { type: 'subscribe', channel: 'svc_table_docs' }
    const live = { type: 'live_query', table: 'docs' }
    expect(await answer({ ...subscribe, id: 'open', filter: 'title=new' })).toMatchObject({ type: 'subscribed' })
    expect(await answer(subscribe)).toMatchObject(refused('GET /api/docs'))
    expect(await answer({ ...subscribe, filter: 'owner=a' })).toMatchObject(refused('GET /api/docs?owner.eq'))
    expect(await answer({ ...live, svc: 'get docs fields id' })).toMatchObject(refused('get docs fields id'))
    expect(await answer({ ...subscribe, filter: 'owner=a', select: 'id' })).toMatchObject({ type: 'subscribed' })
    expect(await answer({ ...live, svc: 'get docs fields id where id = 7' })).toMatchObject({ type: 'subscribed' })
    // Subscriptions from before the rejections still receive events.
    const created = await listed.get('/api/docs', {
      ...{ as: { tenantId: 'a' }, method: 'POST', headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({ id: 801, owner: 'a', title: 'new', secret: 's' }),
    })
    expect(created.status).toBe(201)
    for (;;) {
      const message = await socket.next()
      if (message.id === 'open') {
        expect(message.new).toMatchObject({ id: 801 })
        break
      }
    }
    await socket.close()
  } finally {
    await listed.close()
    await execute(database.adminUrl, 'delete from docs where id = 801')
  }
})

describe('a changed access policy', () => {
  test('applies at once: a caller who lost access gets an error, and no event of later writes', async () => {
    const file = join(folder, 'changing.json')
    const columns = (read_columns: unknown) => ({ operations: ['read', 'create'], read_columns })
    const policy = (operations: unknown) => JSON.stringify({ default_decision: 'deny', tables: { docs: operations } })
    await writeFile(file, policy(columns('any')))
    const own = await testGateway(database.url, { toml: `[access]\nenabled = true\npath = ${JSON.stringify(file)}` })
    const post = (id: number) =>
      own.get('/api/docs', {
        ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
        body: JSON.stringify({ id, owner: 'a', title: 't', secret: 'kept' }),
      })
    try {
      const socket = await openSocket(own.url, { token: await own.token({ tenantId: 'a' }) })
      socket.say({ type: 'subscribe', channel: 'svc_table_docs', id: 's' })
      await socket.nextOf('subscribed')
      await post(901)
      expect((await socket.next()).new).toMatchObject({ id: 901, secret: 'kept' })
      await writeFile(file, policy(columns({ except: ['secret'] })))
      await own.gateway.reload()
      await post(902)
      const heard: string[] = []
      for (;;) {
        const message = await socket.next()
        heard.push(JSON.stringify(message))
        if (message.type === 'resync' || message.new?.id === 902) break
      }
      expect(heard.join()).not.toContain('kept')
      await writeFile(file, policy({ operations: ['create'] }))
      await own.gateway.reload()
      for (;;) {
        const message = await socket.next()
        expect(JSON.stringify(message)).not.toContain('kept')
        if (message.type !== 'error') continue
        expect(message).toMatchObject({ id: 's', code: 'FORBIDDEN' })
        break
      }
      await socket.close()
    } finally {
      await own.close()
    }
  })

  test('with a filter that would fail for a column is rejected before it is used', async () => {
    const socket = await socketOf('a')
    socket.say({ type: 'subscribe', channel: 'svc_table_docs', filter: 'title=like.t%5C' })
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'PARSE_ERROR' })
    await socket.close()
  })
})
