/**
 * Malicious clients of `/ws`, and databases in a bad state: well-behaved clients are still served, and memory
 * is bounded.
 */
import { describe, expect, test, vi } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { type Message, openSocket, type TestSocket } from '../support/socket.ts'

const database = databaseFixture(`
  create table notes (id int primary key, tenant text not null, body text);
  create table guarded (id int primary key, open text, secret text);
  create table slow (id int primary key, n int);
  alter table notes enable row level security; alter table notes force row level security;
  create policy own on notes using (tenant = current_setting('app.current_tenant_id', true));
  create function dawdle(n int) returns bool language plpgsql volatile as $$ begin if n > 0 then
    perform pg_sleep(5); end if; return true; end $$;
  alter table slow enable row level security; alter table slow force row level security;
  create policy read on slow for select using (dawdle(n)); create policy write on slow for insert with check (true);
  grant select, insert, update, delete on notes, slow to app;
  grant select (id, open), insert, update (open), delete on guarded to app;
`)
const gateway = gatewayFixture(database, { toml: 'statement_timeout_ms = 1000' })

async function open(tenantId = 't1'): Promise<TestSocket> {
  return openSocket(gateway.url, { token: await gateway.token({ tenantId }) })
}

function write(method: string, path: string, body: unknown, headers: Record<string, string> = {}) {
  return gateway.get(path, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

async function assertServed(): Promise<void> {
  const socket = await open()
  socket.say({ type: 'ping', id: 'well' })
  expect(await socket.next()).toEqual({ type: 'pong', id: 'well' })
  await socket.close()
}

describe('floods', () => {
  test('a million messages in network buffers do not delay other clients', { timeout: 120_000 }, async () => {
    const socket = await open()
    let pongs = 0
    socket.onMessage = () => pongs++
    const before = process.memoryUsage().rss
    for (let n = 0; n < 500_000; n++) socket.socket.send('{"type":"ping"}')
    for (let n = 0; n < 500_000; n++) socket.socket.ping()
    await assertServed()
    await vi.waitFor(() => expect(pongs).toBeGreaterThan(400), 30_000)
    expect(pongs).toBeLessThan(20_000)
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024)
    socket.socket.terminate()
    await assertServed()
  })

  test('ten thousand subscriptions opened and closed at once do not delay other clients', {
    timeout: 120_000,
  }, async () => {
    const socket = await open()
    let answered = 0
    socket.onMessage = () => answered++
    for (let n = 0; n < 10_000; n++) {
      socket.say({ type: 'subscribe', channel: 'svc_table_notes', id: `s${n}` })
      socket.say({ type: 'unsubscribe', id: `s${n}` })
    }
    await assertServed()
    await vi.waitFor(() => expect(answered).toBeGreaterThan(100), 30_000)
    await assertServed()
    socket.socket.terminate()
    await assertServed()
  })

  test('subscriptions that are opened and closed are answered in order', async () => {
    const socket = await open()
    const times = 150
    for (let n = 0; n < times; n++) {
      socket.say({ type: 'subscribe', channel: 'svc_table_notes', id: `s${n}` })
      socket.say({ type: 'unsubscribe', id: `s${n}` })
    }
    await assertServed()
    for (let n = 0; n < times; n++) {
      expect(await socket.next()).toMatchObject({ type: 'subscribed', id: `s${n}` })
      expect(await socket.next()).toMatchObject({ type: 'unsubscribed', id: `s${n}` })
    }
    await socket.close()
  })

  test('a client that stops reading gets fewer events, and a resync when it reads again', async () => {
    const socket = await open()
    const said: Message[] = []
    socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
    await socket.nextOf('subscribed')
    socket.onMessage = message => said.push(message)
    socket.socket.pause()
    const body = 'x'.repeat(100_000)
    const create = (from: number) =>
      write(
        'POST',
        '/api/notes',
        Array.from({ length: 15 }, (_, n) => ({ id: from + n, tenant: 't1', body })),
        { Prefer: 'return=minimal' },
      )
    // Far more than fits into the buffers of two sockets and the queue.
    for (let n = 0; n < 12; n++) {
      expect((await create(n * 15)).status).toBe(201)
      await assertServed()
    }
    socket.socket.resume()
    await vi.waitFor(
      () => expect(said.some(({ type, reason }) => type === 'resync' && reason === 'slow reader')).toBe(true),
      {
        timeout: 15_000,
      },
    )
    expect(said.length).toBeLessThan(180)
    await write('PATCH', '/api/notes/1', { body: 'back' })
    await vi.waitFor(() => expect(said.at(-1)).toMatchObject({ operation: 'UPDATE', new: { body: 'back' } }))
    await socket.close()
  })
})

describe('rights', () => {
  test('a column that the database hides is rejected wherever it is mentioned', async () => {
    const socket = await open()
    for (const request of [{}, { select: 'secret' }, { select: 'id', filter: 'secret=x' }, { select: '*' }]) {
      socket.say({ type: 'subscribe', channel: 'svc_table_guarded', id: 'g', ...request })
      expect(await socket.next()).toMatchObject({ type: 'error', id: 'g', code: 'FORBIDDEN' })
    }
    socket.say({ type: 'subscribe', channel: 'svc_table_guarded', select: 'id,open', id: 'g' })
    expect(await socket.next()).toMatchObject({ type: 'subscribed' })
    await write('POST', '/api/guarded', { id: 1, open: 'o', secret: 's' }, { Prefer: 'return=minimal' })
    expect(await socket.next()).toMatchObject({ operation: 'INSERT', new: { id: 1, open: 'o' } })
    // The old row must not be revealed, not even whether it was visible.
    expect((await gateway.get('/api/guarded/1', { method: 'DELETE' })).status).toBe(204)
    expect(await socket.next()).toMatchObject({ type: 'resync', reason: 'unknown before' })
    await socket.close()
  })

  test("a write by a role that cannot read the row's key succeeds, and subscribers get a resync", async () => {
    await execute(
      database.adminUrl,
      'create table blind (id int primary key, tenant text, word text); grant insert, select (word) on blind to app',
    )
    await gateway.gateway.reload()
    const written = await write('POST', '/api/blind', { id: 1, tenant: 't1', word: 'w' }, { Prefer: 'return=minimal' })
    expect([written.status, written.headers.get('x-svc-txid')]).toEqual([201, expect.stringMatching(/^\d+$/)])
  })
})

describe('databases in a bad state', () => {
  test('a policy that takes too long causes a resync for its own subscribers and does not affect others', async () => {
    const [dawdling, other] = [await open(), await open()]
    dawdling.say({ type: 'subscribe', channel: 'svc_table_slow' })
    other.say({ type: 'subscribe', channel: 'svc_table_notes' })
    await Promise.all([dawdling, other].map(socket => socket.nextOf('subscribed')))
    await execute(database.adminUrl, 'insert into slow values (1, 1)')
    await execute(database.adminUrl, "notify svc_table_slow, ''")
    expect(await dawdling.next()).toMatchObject({ type: 'resync', reason: 'bulk' })
    const payload =
      '{"txid":"1","origin":"x","before":false,"set":null,"at":"2026-01-01T00:00:00Z","rows":[["I",{"id": 1}]]}'
    await execute(database.adminUrl, `notify svc_table_slow, '${payload}'`)
    await write('POST', '/api/notes', { id: 9_000, tenant: 't1', body: 'quick' })
    expect(await other.next()).toMatchObject({ operation: 'INSERT', key: { id: 9_000 } })
    expect(await dawdling.next()).toMatchObject({ type: 'resync', reason: 'unavailable' })
    await Promise.all([dawdling.close(), other.close()])
  })

  test('a forged notification reveals no rows of others', async () => {
    const [mine, theirs] = [await open('t1'), await open('t2')]
    for (const socket of [mine, theirs]) {
      socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
      await socket.nextOf('subscribed')
    }
    await write('POST', '/api/notes', { id: 9_100, tenant: 't1', body: 'mine' })
    await mine.nextOf('notification')
    const payload = (key: string) =>
      `{"txid":"1","origin":"x","before":false,"set":null,"at":"2026-01-01T00:00:00Z","rows":[["U",${key}]]}`
    await execute(database.adminUrl, `notify svc_table_notes, '${payload('{"id": 9100}')}'`)
    expect(await theirs.next()).toMatchObject({ type: 'resync', reason: 'unknown before' })
    await execute(database.adminUrl, `notify svc_table_notes, '${payload('{"id": "no number"}')}'`)
    expect(await theirs.next()).toMatchObject({ type: 'resync' })
    await Promise.all([mine.close(), theirs.close()])
  })
})

test('a database restart causes only a resync for every subscriber', async () => {
  const server = await privateServer({})
  await execute(
    server.adminUrl,
    'create table notes (id int primary key, body text); ' +
      'grant usage on schema public to app; ' +
      'grant select, insert, update, delete on notes to app',
  )
  const own = await testGateway(server.url)
  try {
    const socket = await openSocket(own.url, { token: await own.token({ tenantId: 't1' }) })
    socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
    socket.say({ type: 'live_query', id: 'live', svc: 'get notes order by id', table: 'notes', interval_ms: 100 })
    await socket.nextOf('subscribed')
    const said: Message[] = []
    socket.onMessage = message => said.push(message)
    await server.restart()
    await vi.waitFor(
      () => expect(said.some(({ type, reason }) => type === 'resync' && reason === 'connection lost')).toBe(true),
      {
        timeout: 15_000,
      },
    )
    const created = await own.get('/api/notes', {
      ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({ id: 1, body: 'after' }),
    })
    expect(created.status).toBe(201)
    await vi.waitFor(
      () => {
        expect(said.some(({ operation, key }) => operation === 'INSERT' && key.id === 1)).toBe(true)
        expect(said.some(({ id, rows }) => id === 'live' && rows?.length === 1)).toBe(true)
      },
      { timeout: 15_000 },
    )
    await socket.close()
  } finally {
    await own.close()
    await server.close()
  }
}, 60_000)
