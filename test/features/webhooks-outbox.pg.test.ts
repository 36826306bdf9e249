/**
 * docs/guides/webhooks.md#delivery-guarantees, after `svc install`: deliveries wait in the database, and
 * writes of every client are delivered.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { clientFixture, databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type GatewayOptions, type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { FEED_ROLE, installed } from '../support/install.ts'
import { type Received, type Receiver, receiver } from '../support/receiver.ts'

const ADMIN = 'an-admin-token'

const database = databaseFixture(`
  create table notes (id int primary key, body text, tenant_id text);
  create table replies (id int primary key, note int references notes on delete cascade);
  create table keyless (n int);
  create table apart (id int primary key);
  create table late (id int primary key);
  create view note_bodies with (security_invoker = true) as select id, body from notes;
  grant select, insert, update, delete on all tables in schema public to app
`)
const folder = folderFixture()
const admin = clientFixture(() => database.adminUrl)

beforeAll(async () => {
  await installed(
    database,
    ['notes', 'replies', 'keyless'].map(table => ({ schema: 'public', table })),
  )
})

let hook: Receiver
let gateways: TestGateway[] = []
let events: Event[] = []
beforeEach(async () => {
  hook = await receiver()
  await admin.query(
    'truncate notes, replies, keyless, apart, late, svc.webhook, svc.webhook_dead, ' +
      'svc.webhook_attempt, svc.webhook_trigger',
  )
})
afterEach(async () => {
  for (const gateway of gateways) await gateway.close()
  gateways = []
  events = []
  await hook.close()
})

interface Definition {
  readonly [key: string]: unknown
}

const ALL = ['create', 'update', 'delete']

function trigger(of: Definition = {}): Definition {
  return { name: 'hook', table: 'notes', operations: ALL, webhook_url: hook.url, ...of }
}

async function write(definitions: readonly Definition[]): Promise<string> {
  const file = join(folder, 'triggers.yaml')
  await writeFile(file, JSON.stringify(definitions))
  return file
}

async function open(definitions: readonly Definition[], options: GatewayOptions = {}): Promise<TestGateway> {
  const file = await write(definitions)
  const gateway = await testGateway(database.url, {
    toml: `webhook_allow = ["127.0.0.0/8"]\nevents_path = ${JSON.stringify(file)}\n${options.toml ?? ''}`,
    environment: { SVC_ADMIN_TOKEN: ADMIN },
    emit: event => events.push(event),
  })
  gateways.push(gateway)
  return gateway
}

function send(gateway: TestGateway, method: string, path: string, body?: unknown): Promise<Reply> {
  const headers = { 'Content-Type': 'application/json' }
  return gateway.get(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
}

async function ask(gateway: TestGateway, path: string, method = 'GET'): Promise<Reply> {
  return gateway.get(path, { as: null, method, headers: { Authorization: `Bearer ${ADMIN}` } })
}

async function count(table: string): Promise<number> {
  const { rows } = await admin.query(`select count(*)::int as n from svc.${table}`)
  return rows[0].n
}

/** Waits for what the gateway records after the receiver has responded. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 10))
}

const told = ({ json }: Received) => [json.operation, json.data.old?.id ?? null, json.data.new?.id ?? null]

describe('a delivery from the outbox', () => {
  test('has the same body as from memory, and leaves only its attempt behind', async () => {
    const gateway = await open([trigger({ columns: ['id', 'body'] })])
    expect((await send(gateway, 'POST', '/api/notes', { id: 1, body: 'one' })).status).toBe(201)
    const [first] = await hook.until(1)
    expect(first?.headers['webhook-id']).toMatch(/^msg_\w+$/)
    expect(first?.json).toEqual({
      ...{ trigger: 'hook', table: 'notes', operation: 'INSERT', data: { new: { id: 1, body: 'one' }, old: null } },
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
    await until(async () => (await count('webhook')) === 0)
    const { rows } = await admin.query('select webhook, trigger, try, outcome, status, answer from svc.webhook_attempt')
    expect(rows).toEqual([
      {
        webhook: first?.headers['webhook-id'],
        trigger: 'hook',
        try: 1,
        outcome: 'delivered',
        status: 200,
        answer: null,
      },
    ])
  })

  test('is also made for changes caused by a write, and by another statement within `with`', async () => {
    await admin.query(`insert into notes values (1), (2); insert into replies values (10, 1)`)
    const gateway = await open([trigger(), trigger({ name: 'replies', table: 'replies' })])
    await send(gateway, 'DELETE', '/api/notes/1')
    await hook.until(2)
    expect(hook.received.map(told).sort()).toEqual([
      ['DELETE', 1, null],
      ['DELETE', 10, null],
    ])
    const query = 'with gone as (del notes where id = 2 returning id) get gone'
    const reply = await send(gateway, 'POST', '/api/_query', { query })
    expect(reply.status).toBe(200)
    expect(told((await hook.until(3))[2] as Received)).toEqual(['DELETE', 2, null])
  })

  test('is made for writes of other clients only if the trigger wants them', async () => {
    await open([trigger({ source: 'database' }), trigger({ name: 'gateway only' })])
    await admin.query(`insert into notes values (1, 'by psql')`)
    const [{ json } = never()] = await hook.until(1)
    expect(json).toMatchObject({ trigger: 'hook', data: { new: { body: 'by psql' } } })
    expect((await admin.query('select name, source from svc.webhook_trigger order by name')).rows).toEqual([
      { name: 'gateway only', source: 'gateway' },
      { name: 'hook', source: 'database' },
    ])
    await until(async () => (await count('webhook')) === 0)
    expect(hook.received).toHaveLength(1)
  })

  test('is not made for changes that were rolled back or rejected', async () => {
    const gateway = await open([trigger()])
    expect((await send(gateway, 'POST', '/api/notes', [{ id: 1 }, { id: 1 }])).status).toBe(400)
    await send(gateway, 'POST', '/api/notes', { id: 2 })
    await hook.until(1)
    expect(hook.received.map(told)).toEqual([['INSERT', null, 2]])
  })
})

describe('the outbox', () => {
  test('does not hold deliveries of uncaptured tables and of views, of which a warning is given', async () => {
    const gateway = await open([
      trigger(),
      trigger({ name: 'apart', table: 'apart' }),
      trigger({ name: 'view', table: 'note_bodies' }),
    ])
    const { webhooks, warnings } = (await ask(gateway, '/health/internal')).json
    expect(webhooks).toMatchObject({
      storage: 'mixed',
      trigger_storage: { hook: 'outbox', apart: 'memory', view: 'memory' },
    })
    expect(warnings).toContainEqual({
      message: 'Webhooks of "apart", "view" are kept in memory: those not delivered when the process ends are lost.',
      fix: expect.stringContaining('svc install'),
    })
    await send(gateway, 'POST', '/api/apart', { id: 1 })
    await send(gateway, 'POST', '/api/notes', { id: 1 })
    await send(gateway, 'PATCH', '/api/note_bodies?id=1', { body: 'x' })
    // One delivery for the view, and one for its table.
    await hook.until(4)
    expect(hook.received.map(({ json }) => json.trigger).sort()).toEqual(['apart', 'hook', 'hook', 'view'])
    await until(async () => (await count('webhook_attempt')) === 2)
  })

  test('is required by some triggers, which are rejected without it, with advice', async () => {
    await expect(
      open([
        trigger({ name: 'a', table: 'apart', source: 'database' }),
        trigger({ name: 'b', table: 'apart', order: 'key' }),
        trigger({ name: 'c', table: 'keyless', order: 'key' }),
      ]),
    ).rejects.toThrow(
      new RegExp(
        [
          'source: "database" requires the database to capture changes of public\\.apart: ' +
            'svc install does not capture table "apart"',
          '"key" requires the database to capture changes of public\\.apart: ' +
            'svc install does not capture table "apart"',
          '"key" needs a primary key, and table "keyless" has none',
        ].join('[\\s\\S]*'),
      ),
    )
  })

  test('registers triggers again after a reload; an invalid file changes nothing', async () => {
    const gateway = await open([trigger(), trigger({ name: 'other' })])
    const names = async () =>
      (await admin.query('select name from svc.webhook_trigger order by name')).rows.map(row => row.name)
    expect(await names()).toEqual(['hook', 'other'])
    await write([trigger({ operations: ['destroy'] })])
    await gateway.gateway.reload()
    expect(await names()).toEqual(['hook', 'other'])
    await write([trigger({ name: 'new' }), trigger({ enabled: false })])
    await gateway.gateway.reload()
    expect(await names()).toEqual(['new'])
  })

  test('is used by gateways with different files: the last one read decides what is recorded', async () => {
    const one = await open([trigger({ name: 'of one' })])
    await open([trigger({ name: 'of other' })])
    expect((await admin.query('select name from svc.webhook_trigger')).rows).toEqual([{ name: 'of other' }])
    expect(events).toContainEqual({
      kind: 'webhooks',
      event: 'triggers unregistered',
      detail: { triggers: ['of one'] },
    })
    await send(one, 'POST', '/api/notes', { id: 1 })
    expect((await hook.until(1))[0]?.json.trigger).toBe('of other')
  })

  test('is used after a reload if it was installed while the gateway runs', async () => {
    const gateway = await open([trigger({ table: 'late' })])
    const storage = async () => (await ask(gateway, '/health/internal')).json.webhooks.storage
    await send(gateway, 'POST', '/api/late', { id: 1 })
    await hook.until(1)
    await installed(
      database,
      ['notes', 'replies', 'keyless', 'late'].map(table => ({ schema: 'public', table })),
    )
    await gateway.gateway.reload()
    expect(await storage()).toBe('outbox')
    await send(gateway, 'POST', '/api/late', { id: 2 })
    await hook.until(2)
    await until(async () => (await count('webhook_attempt')) === 1)
    expect(hook.received).toHaveLength(2)
  })

  test('is not used on a read-only database, which does not prevent the start', async () => {
    for (const role of ['app', FEED_ROLE])
      await admin.query(`alter role ${role} in database ${database.database} set default_transaction_read_only = on`)
    const gateway = await open([trigger()])
    expect((await ask(gateway, '/health/internal')).json.webhooks.storage).toBe('memory')
    for (const role of ['app', FEED_ROLE])
      await admin.query(`alter role ${role} in database ${database.database} reset default_transaction_read_only`)
  })
})

const RETRIES = { retry_count: 1, timeout_ms: 300 }

describe('a delivery that fails', () => {
  test('is repeated with the same id, then becomes a dead letter, which any gateway can manage', async () => {
    const [one, other] = [await open([trigger(RETRIES)]), await open([trigger(RETRIES)])]
    hook.respond((response, _, count) => response.writeHead(count === 1 ? 500 : 503).end(`no ${count}`))
    await send(one, 'POST', '/api/notes', [
      { id: 1, body: 'one' },
      { id: 2, body: 'two' },
    ])
    await until(async () => (await count('webhook_dead')) === 2)
    const { dead_letters: letters } = (await ask(other, '/internal/webhooks')).json
    expect(letters).toMatchObject([
      {
        trigger: 'hook',
        table: 'notes',
        operation: 'INSERT',
        tries: 2,
        storage: 'outbox',
        reason: 'failed 2 times: answered 503',
      },
      { reason: 'failed 2 times: answered 503' },
    ])
    const { id } = letters[0]
    const shown = (await ask(other, `/internal/webhooks/dead-letter?id=${id}`)).json
    expect(shown).toMatchObject({
      last_answer: { status: 503, body: expect.stringMatching(/^no \d$/) },
      attempts: [
        { try: 2, outcome: 'refused', status: 503 },
        { try: 1, outcome: 'refused' },
      ],
    })
    const sent = hook.received.filter(({ headers }) => headers['webhook-id'] === id)
    expect(sent.map(({ text }) => text)).toEqual([shown.payload, shown.payload])

    hook.respond(response => response.writeHead(204).end())
    expect((await ask(other, `/internal/webhooks/redeliver?id=${id}`, 'POST')).json).toEqual({ redelivered: 1 })
    await until(async () => (await count('webhook')) === 0)
    expect(hook.received.at(-1)?.headers['webhook-id']).toBe(id)
    expect((await ask(one, `/internal/webhooks/dead-letter?id=${id}`)).json.attempts).toHaveLength(3)
    expect((await ask(other, '/internal/webhooks/purge?all=true', 'POST')).json).toEqual({ purged: 1 })
    expect(await count('webhook_dead')).toBe(0)
  })

  test('with 410 disables the trigger, and the database records no further deliveries', async () => {
    const gateway = await open([trigger()])
    hook.respond(response => response.writeHead(410).end())
    await send(gateway, 'POST', '/api/notes', { id: 1 })
    await until(async () => (await count('webhook_dead')) === 1 && (await count('webhook_trigger')) === 0)
    expect((await ask(gateway, '/internal/webhooks')).json.triggers).toMatchObject([{ state: 'disabled by 410' }])
    await send(gateway, 'POST', '/api/notes', { id: 2 })
    expect(await count('webhook')).toBe(0)
    await gateway.gateway.reload()
    expect(await count('webhook_trigger')).toBe(1)
  })

  test('because it is too large is not sent, and can be redelivered once the trigger selects columns', async () => {
    const gateway = await open([trigger()])
    await send(gateway, 'POST', '/api/notes', { id: 1, body: 'x'.repeat(1_100_000) })
    await until(async () => (await count('webhook_dead')) === 1)
    const { dead_letters: letters } = (await ask(gateway, '/internal/webhooks')).json
    expect(letters).toMatchObject([{ tries: 0, reason: expect.stringContaining('the limit is 1048576') }])
    expect(hook.received).toHaveLength(0)
    await write([trigger({ columns: ['id'] })])
    await gateway.gateway.reload()
    await ask(gateway, '/internal/webhooks/redeliver?all=true', 'POST')
    expect((await hook.until(1))[0]?.json.data).toEqual({ new: { id: 1 }, old: null })
  })

  test('does not delay another tenant or another endpoint', async () => {
    const slow = await receiver(() => {})
    const gateway = await open([trigger({ name: 'slow', webhook_url: slow.url }), trigger({ name: 'fast' })], {
      toml: 'drain_timeout_ms = 100',
    })
    const rows = Array.from({ length: 100 }, (_, n) => ({ id: n, tenant_id: 'many' }))
    await send(gateway, 'POST', '/api/notes', rows)
    await send(gateway, 'POST', '/api/notes', { id: 1_000, tenant_id: 'one' })
    await hook.waitUntil(() => hook.received.some(({ json }) => json.data.new.id === 1_000))
    await hook.until(101)
    await slow.until(8)
    const { webhooks } = (await ask(gateway, '/health/internal')).json
    expect(webhooks.storage).toBe('outbox')
    const { text } = await ask(gateway, '/metrics')
    expect(text).toMatch(/^svc_webhooks_queue\{storage="outbox",state="in_flight"\} \d+$/m)
    await gateway.close()
    gateways = []
    // Interrupted and waiting deliveries can be claimed by others at once.
    const { rows: left } = await admin.query(
      'select count(*)::int as n, count(leased_by)::int as leased from svc.webhook',
    )
    expect(left).toEqual([{ n: 101, leased: 0 }])
    await slow.close()
  })
})

function never(): never {
  throw new Error('nothing came')
}
