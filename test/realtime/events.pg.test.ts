/**
 * `events` of a subscription, and docs/reference/realtime.md#where-a-subscription-begins: a change committed
 * before `subscribe` was sent is never delivered, and a change committed after `subscribed` has arrived
 * always is, under any load.
 */
import pg from 'pg'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { installed } from '../support/install.ts'
import { type Message, openSocket } from '../support/socket.ts'

const ROUNDS = 12
const WRITERS = 4

describe.each(['gateway', 'trigger'] as const)('%s capture', capture => {
  const database = databaseFixture(`
    create table items (id int primary key, tenant text not null, name text);
    alter table items enable row level security; alter table items force row level security;
    create policy own on items using (tenant = current_setting('app.current_tenant_id', true));
    grant select, insert, update, delete on items to app
  `)

  beforeAll(async () => {
    if (capture === 'trigger') await installed(database)
  })
  const gateway = gatewayFixture(database, { toml: 'rate_limit_rate = 0\ntenant_max_concurrent = 0' })

  async function write(method: string, path: string, body?: unknown): Promise<void> {
    const { status } = await gateway.get(path, {
      ...{ method, as: { tenantId: 't1' }, headers: { 'Content-Type': 'application/json' } },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (status >= 300) throw new Error(`${method} ${path}: ${status}`)
  }

  const create = (id: number) => write('POST', '/api/items', { id, tenant: 't1', name: 'new' })

  /** Subscribes and collects all messages after `subscribed`. */
  async function subscribed(more: object = {}) {
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
    const told: Message[] = []
    const token = await new Promise<string>((resolve, reject) => {
      socket.onMessage = message => {
        if (message.type === 'subscribed') resolve(message.token)
        else if (message.type === 'notification') told.push(message)
        else reject(new Error(JSON.stringify(message)))
      }
      socket.say({ type: 'subscribe', channel: 'svc_table_items', ...more })
    })
    return { token, told, close: () => socket.close() }
  }

  const idsOf = (told: readonly Message[]) => told.map(({ key }) => key.id)

  test('an update right after the insert reaches subscribers to updates every time', async () => {
    const [updates, inserts] = [await subscribed({ events: ['update'] }), await subscribed({ events: ['insert'] })]
    const ids = Array.from({ length: 20 }, (_, index) => 100 + index)
    for (const id of ids) {
      await create(id)
      await write('PATCH', `/api/items/${id}`, { name: 'changed' })
    }
    await vi.waitFor(
      () => {
        expect(new Set(idsOf(updates.told))).toEqual(new Set(ids))
        expect(idsOf(inserts.told)).toEqual(ids)
      },
      { timeout: 15_000 },
    )
    for (const message of updates.told) {
      expect(message).toMatchObject({ operation: 'UPDATE', new: { name: 'changed' }, old: { id: message.key.id } })
    }
    for (const message of inserts.told) expect(message).toMatchObject({ operation: 'INSERT', old: null })
    await Promise.all([updates.close(), inserts.close()])
  })

  test('a row that is deleted immediately reaches subscribers to deletes', async () => {
    const { told, close } = await subscribed({ events: ['delete'] })
    const ids = Array.from({ length: 10 }, (_, index) => 200 + index)
    for (const id of ids) {
      await create(id)
      await write('PATCH', `/api/items/${id}`, { name: 'changed' })
      await write('DELETE', `/api/items/${id}`)
    }
    // A visibility query that runs ahead of the change would deliver it twice.
    await vi.waitFor(() => expect([...new Set(idsOf(told))]).toEqual(ids), { timeout: 15_000 })
    for (const message of told) expect(message).toMatchObject({ operation: 'DELETE', new: null })
    await close()
  })

  test('a change committed before the subscription is not delivered as a later event', async () => {
    // The gateway is already listening, so pending notifications arrive.
    const first = await subscribed()
    for (let round = 0; round < 20; round++) {
      const id = 300 + 2 * round
      await create(id)
      const { told, close } = await subscribed()
      await create(id + 1)
      await vi.waitFor(() => expect(idsOf(told)).toContain(id + 1), { timeout: 15_000 })
      expect(idsOf(told)).toEqual([id + 1])
      await close()
    }
    await first.close()
  })

  test('the start of a subscription is exact under load', { timeout: 120_000 }, async () => {
    const first = await subscribed()
    const [started, acknowledged] = [new Set<number>(), new Set<number>()]
    let next = 10_000
    let stopping = false
    const writer = async () => {
      while (!stopping) {
        const id = next++
        started.add(id)
        await create(id)
        acknowledged.add(id)
      }
    }
    const writers = Array.from({ length: WRITERS }, writer)
    const subscriptions: { told: Message[]; close(): Promise<void>; before: Set<number>; maybe: Set<number> }[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = new Set(acknowledged)
      const { told, close } = await subscribed()
      const maybe = new Set(started)
      // Changes committed by then and not delivered are in the rows.
      const read = await gateway.get('/api/items?id=gte.10000&limit=100000', { as: { tenantId: 't1' } })
      const rows = new Set<number>(read.json.data.map((row: { id: number }) => row.id))
      subscriptions.push({ told, close, before, maybe })
      const counted = acknowledged.size
      await vi.waitFor(() => expect(acknowledged.size).toBeGreaterThan(counted + 20), { timeout: 30_000 })
      await vi.waitFor(
        () => {
          const known = new Set([...rows, ...idsOf(told)])
          expect([...maybe].filter(id => acknowledged.has(id) && !known.has(id))).toEqual([])
        },
        { timeout: 30_000 },
      )
    }
    stopping = true
    await Promise.all(writers)
    for (const { told, before, maybe } of subscriptions) {
      const due = [...started].filter(id => !maybe.has(id))
      await vi.waitFor(() => expect(due.filter(id => !idsOf(told).includes(id))).toEqual([]), { timeout: 30_000 })
      expect(idsOf(told).filter(id => before.has(id))).toEqual([])
      expect(new Set(idsOf(told)).size).toBe(told.length)
    }
    await Promise.all([first, ...subscriptions].map(({ close }) => close()))
  })

  if (capture === 'trigger') {
    test('a transaction that is open at the start is delivered, and so are all later changes', async () => {
      const admin = new pg.Client({ connectionString: database.adminUrl })
      await admin.connect()
      await admin.query(`begin; insert into items values (1, 't1', 'open')`)
      await create(2)
      const first = await subscribed()
      await admin.query('commit')
      await create(3)
      await vi.waitFor(() => expect(idsOf(first.told)).toEqual([1, 3]), { timeout: 15_000 })
      const again = await subscribed({ since: first.token })
      await create(4)
      await vi.waitFor(() => expect(idsOf(again.told)).toEqual([1, 3, 4]), { timeout: 15_000 })
      await admin.end()
      await Promise.all([first.close(), again.close()])
    })
  }
})
