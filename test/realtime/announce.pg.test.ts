/**
 * Tables without triggers (decision 0019): a write sends a notification in its own transaction if a client is
 * subscribed, and otherwise not.
 */
import pg from 'pg'
import { beforeAll, expect, test, vi } from 'vitest'
import { introspect } from '../../src/catalog/introspect.ts'
import { queryThrough } from '../../src/catalog/query.ts'
import { ANONYMOUS } from '../../src/identity/authenticate.ts'
import { createPool } from '../../src/postgres/pool.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { createNotifyingWrites, type OldImages } from '../../src/run/notifying-writes.ts'
import { createRunner } from '../../src/run/run.ts'
import { createSessionReset } from '../../src/run/session-reset.ts'
import { createSettings } from '../../src/run/settings.ts'
import { LISTEN_LOCKS } from '../../src/run/write-notifications.ts'
import { Usage } from '../../src/usage.ts'
import { shopDatabase } from '../features/shop.ts'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { everything, testPipeline } from '../support/pipeline.ts'
import { openSocket } from '../support/socket.ts'

const heard: string[] = []
const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)
const watcher = clientFixture(() => database.adminUrl)

beforeAll(async () => {
  watcher.on('notification', ({ payload = '' }) => heard.push(payload))
  await watcher.query('listen svc_table_labels')
})

function create(id: number) {
  return gateway.get('/api/labels', {
    ...{ method: 'POST', as: { tenantId: 't1' }, headers: { 'Content-Type': 'application/json' } },
    body: JSON.stringify({ id, tenant_id: 't1', name: 'x' }),
  })
}

const ANSWER = "select pg_notify('svc_table_labels', 'end')"

test('writes notify only while a client is subscribed; a plain LISTEN has no effect', async () => {
  expect((await create(1_000)).status).toBe(201)
  await watcher.query(ANSWER)
  await vi.waitFor(() => expect(heard).toEqual(['end']))

  const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
  socket.say({ type: 'subscribe', channel: 'svc_table_labels' })
  await socket.nextOf('subscribed')
  const written = await create(1_001)
  await vi.waitFor(() => expect(heard).toHaveLength(2))
  // The key, and the tenant of the row as a hash; no other values of the row.
  expect(JSON.parse(heard[1] ?? '')).toEqual({
    ...{
      txid: written.headers.get('x-svc-txid'),
      origin: expect.any(String),
      before: false,
      ...{ set: null, by: 'tenant_id', at: expect.any(String) },
    },
    rows: [['I', { id: 1_001 }, expect.any(Number)]],
  })
  await socket.close()
})

test('a new subscription waits for writes that did not notify', async () => {
  const other = await testGateway(database.url)
  const writer = new pg.Client({ connectionString: database.adminUrl })
  await writer.connect()
  try {
    // The steps of every write, followed by a slow statement. No gateway listens: the one above may still be
    // closing.
    await gateway.close()
    const take = `select bool_and(pg_try_advisory_xact_lock(${0x73766372}, slot)) as free from generate_series(0,
      63) as slot`
    // Its database sessions end shortly after it.
    await vi.waitFor(async () => expect((await writer.query(take)).rows).toEqual([{ free: true }]), { timeout: 10_000 })
    await writer.query('begin')
    expect((await writer.query(take)).rows).toEqual([{ free: true }])
    const socket = await openSocket(other.url, { token: await other.token({ tenantId: 't1' }) })
    const said: unknown[] = []
    socket.onMessage = message => said.push(message.type)
    socket.say({ type: 'subscribe', channel: 'svc_table_labels' })
    await watcher.query('select pg_sleep(0.3)')
    expect(said).toEqual([])
    await writer.query('commit')
    await vi.waitFor(() => expect(said).toEqual(['subscribed']))
    await socket.close()
  } finally {
    await writer.end()
    await other.close()
  }
})

test('before PostgreSQL 18, writes report the same operations and old rows', async () => {
  const pool = createPool({ target: parseUrl(database.url) })
  const listener = new pg.Client({ connectionString: database.url })
  await listener.connect()
  try {
    const read = await introspect(queryThrough(pool), { schemas: ['public'], exposedViews: [] })
    const catalog = { ...read, serverVersion: 170_000 }
    const before: string[] = []
    const wanted: OldImages = {
      wants: () => true,
      store: (_txid, _table, rows) => before.push(...[...rows.values()].map(row => JSON.parse(row).name)),
    }
    const runner = createRunner({
      ...{ database: pool, settings: createSettings({ statementTimeoutMs: 30_000 }), onStaleSchema() {} },
      reset: createSessionReset(() => catalog),
      announcements: createNotifyingWrites({
        origin: 'me',
        rowsBefore: wanted,
        isLogged: () => false,
        routeBy: () => null,
      }),
    })
    const identity = { ...ANONYMOUS, tenantId: 't1' }
    const write = testPipeline({ view: everything(catalog), runner, identity })
    const told: string[] = []
    listener.on('notification', ({ payload = '' }) => told.push(JSON.stringify(JSON.parse(payload).rows)))
    await listener.query('listen svc_table_labels')
    await listener.query(LISTEN_LOCKS.text)
    const send = async (
      method: 'POST' | 'PATCH' | 'DELETE',
      id: string | null,
      body: unknown,
      headers: Record<string, string> = {},
    ) => {
      const incoming = {
        ...{
          method,
          path: `/api/labels${id === null ? '' : `/${id}`}`,
          query: '',
          requestId: '',
          connection: {},
          trace: null,
          usage: new Usage(),
          isLarge: false,
          onAbort() {},
        },
        ...{
          headers: { 'content-type': 'application/json', ...headers },
          body: Buffer.from(body === null ? '' : JSON.stringify(body)),
        },
      }
      return (await write(incoming)).status
    }
    const row = (id: number) => ({ id, tenant_id: 't1', name: 'x' })
    const upsert = { 'x-upsert': 'true' }
    const statuses = [
      await send('POST', null, [row(2), row(3)], upsert),
      await send('POST', null, [row(3), row(4)], upsert),
      await send('POST', null, row(4), upsert),
      await send('PATCH', '4', { name: 'y' }),
      await send('PATCH', '4', { name: 'z' }),
      await send('DELETE', '4', null),
    ]
    expect(statuses).toEqual([201, 201, 200, 200, 200, 204])
    await vi.waitFor(() => expect(told).toHaveLength(6))
    expect(told).toEqual([
      '[["U",{"id":2}],["I",{"id":3}]]',
      '[["U",{"id":3}],["I",{"id":4}]]',
      '[["U",{"id":4}]]',
      '[["U",{"id":4}]]',
      '[["U",{"id":4}]]',
      '[["D",{"id":4}]]',
    ])
    expect(before).toEqual(['x', 'y', 'z'])
  } finally {
    await listener.end()
    await pool.close({ deadlineMs: 1_000 })
  }
})
