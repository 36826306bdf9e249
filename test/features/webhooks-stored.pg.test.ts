/**
 * docs/guides/webhooks.md#delivery-guarantees, after `svc install` and with tables that it does not capture:
 * the statement of a write stores its deliveries in its own transaction, and has the same response as without
 * webhooks.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { clientFixture, databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { POSTGRES_MAJOR } from '../support/postgres-version.ts'
import { type Received, type Receiver, receiver } from '../support/receiver.ts'
import { openSocket } from '../support/socket.ts'

const database = databaseFixture(`
  create table notes (id int primary key, body text, tenant_id text, note int references notes
    deferrable initially deferred);
  create table pairs ("a'b" int, "C" text, n int, primary key ("a'b", "C"));
  create table blind (id int primary key, body text);
  create view note_bodies with (security_invoker = true) as select id, body from notes;
  grant select, insert, update, delete on notes, pairs, note_bodies to app;
  grant insert on blind to app
`)
const folder = folderFixture()
const admin = clientFixture(() => database.adminUrl)

let hook: Receiver
let gateways: TestGateway[] = []
let events: Event[] = []
beforeEach(async () => {
  hook = await receiver()
  await admin.query('truncate notes, pairs, blind; drop schema if exists svc cascade')
  await installed(database, [])
})
afterEach(async () => {
  for (const gateway of gateways) await gateway.close()
  gateways = []
  events = []
  await hook.close()
})

type Definition = Readonly<Record<string, unknown>>

const trigger = (of: Definition = {}): Definition => ({
  ...{ name: 'hook', table: 'notes', operations: ['create', 'update', 'delete'], webhook_url: hook.url, ...of },
})

async function open(definitions: readonly Definition[]): Promise<TestGateway> {
  const file = join(folder, 'triggers.yaml')
  await writeFile(file, JSON.stringify(definitions))
  const gateway = await testGateway(database.url, {
    toml: `webhook_allow = ["127.0.0.0/8"]\ndrain_timeout_ms = 300\nevents_path = ${JSON.stringify(file)}`,
    emit: event => events.push(event),
  })
  gateways.push(gateway)
  return gateway
}

type Headers = Readonly<Record<string, string>>

async function send(gateway: TestGateway, method: string, path: string, body?: unknown, headers: Headers = {}) {
  const reply = await gateway.get(path, {
    ...{ method, headers: { 'Content-Type': 'application/json', ...headers } },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: reply.status, text: reply.text, location: reply.headers.get('location') }
}

const rowsOf = async (query: string) => (await admin.query(query)).rows

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 10))
}

const told = ({ json }: Received) => [json.operation, json.data.old, json.data.new]

/** Every kind of write on `notes`. */
const WRITES: readonly (readonly [string, string, unknown?, Headers?])[] = [
  ['POST', '/api/notes', { id: 1, body: 'one' }],
  ['POST', '/api/notes?returning=body', { id: 2 }],
  ['POST', '/api/notes', { id: 3 }, { Prefer: 'return=minimal' }],
  ['POST', '/api/notes', [{ id: 4 }, { id: 5, body: 'five' }]],
  ['POST', '/api/notes', { id: 5, body: 'there' }, { 'X-Upsert': 'true' }],
  ['POST', '/api/notes', [{ id: 5, body: 'again' }, { id: 6 }], { 'X-Upsert': 'true' }],
  ['PATCH', '/api/notes/1', { body: 'changed' }],
  ['PATCH', '/api/notes/1', { body: 'minimal' }, { Prefer: 'return=minimal' }],
  ['PATCH', '/api/notes/999', { body: 'nobody' }],
  ['PATCH', '/api/notes?id=in.(1,2)', { body: 'both' }, { 'X-Max-Affected': '2' }],
  ['PATCH', '/api/notes?id=in.(1,2)', { body: 'too many' }, { 'X-Max-Affected': '1' }],
  ['DELETE', '/api/notes/2'],
  ['DELETE', '/api/notes?id=in.(3,4)', undefined, { Prefer: 'return=representation' }],
  ['POST', '/api/_query', { query: "add notes fields id, body values 7, 'seven' returning id" }],
  ['POST', '/api/_query', { query: "set notes values body = '7' where id = 7 returning body" }],
  ['POST', '/api/_query', { query: 'del notes where id = 7' }],
  ['POST', '/api/notes', [{ id: 8 }, { id: 8 }]],
  ['POST', '/api/notes', { id: 9, note: 404 }],
]

test('every kind of write is delivered exactly, and has the same response as without webhooks', async () => {
  const plain = await open([])
  const run = async (gateway: TestGateway) => {
    const replies: unknown[] = []
    for (const [method, path, body, headers] of WRITES) {
      const { text, ...reply } = await send(gateway, method, path, body, headers)
      replies.push([method, path, { ...reply, text: text.replace(/"request_id":"[^"]*"/, '') }])
    }
    return replies
  }
  const expected = await run(plain)
  await admin.query('truncate notes')
  const gateway = await open([trigger({ columns: ['id', 'body'] })])
  expect(await run(gateway)).toEqual(expected)
  const happened = [
    ...[
      ['INSERT', null, [1, 'one']],
      ['INSERT', null, [2, null]],
      ['INSERT', null, [3, null]],
      ['INSERT', null, [4, null]],
      ['INSERT', null, [5, 'five']],
      ['UPDATE', [5, 'five'], [5, 'there']],
      ['UPDATE', [5, 'there'], [5, 'again']],
      ['INSERT', null, [6, null]],
      ['UPDATE', [1, 'one'], [1, 'changed']],
      ['UPDATE', [1, 'changed'], [1, 'minimal']],
      ['UPDATE', [1, 'minimal'], [1, 'both']],
      ['UPDATE', [2, null], [2, 'both']],
      ['DELETE', [2, 'both'], null],
      ['DELETE', [3, null], null],
      ['DELETE', [4, null], null],
      ['INSERT', null, [7, 'seven']],
      ['UPDATE', [7, 'seven'], [7, '7']],
      ['DELETE', [7, '7'], null],
    ],
  ]
  const received = await hook.until(happened.length)
  const pair = (row: { id: number; body: string | null } | null) => (row === null ? null : [row.id, row.body])
  const seen = received.map(told).map(([word, before, after]) => [word, pair(before), pair(after)])
  expect(seen.map(of => JSON.stringify(of)).sort()).toEqual(happened.map(of => JSON.stringify(of)).sort())
  await until(async () => (await rowsOf('select from svc.webhook')).length === 0)
  expect(hook.received).toHaveLength(happened.length)
})

test('a delivery exists when the write is answered, with its tenant and its ordering key', async () => {
  hook.respond(() => {})
  const gateway = await open([
    trigger({ name: "it's", order: 'key' }),
    trigger({ name: 'deletions', operations: ['delete'] }),
    trigger({ name: 'of pairs', table: 'pairs', order: 'key' }),
  ])
  await send(gateway, 'POST', '/api/notes', { id: 1, tenant_id: 't1' })
  expect(await rowsOf(`select trigger, "table", operation, key, tenant, new, old from svc.webhook`)).toEqual([
    {
      ...{ trigger: "it's", table: 'notes', operation: 'INSERT', key: '{"id": 1}', tenant: 't1', old: null },
      new: { id: 1, body: null, tenant_id: 't1', note: null },
    },
  ])
  await send(gateway, 'DELETE', '/api/notes/1')
  await send(gateway, 'POST', '/api/pairs', { "a'b": 1, C: 'x' })
  expect(
    await rowsOf(
      `select trigger, operation, key, tenant, old is null as created from svc.webhook order by seq offset 1`,
    ),
  ).toEqual([
    { trigger: "it's", operation: 'DELETE', key: '{"id": 1}', tenant: 't1', created: false },
    { trigger: 'deletions', operation: 'DELETE', key: null, tenant: 't1', created: false },
    { trigger: 'of pairs', operation: 'INSERT', key: `{"C": "x", "a'b": 1}`, tenant: null, created: true },
  ])
})

test('the changes of one row are delivered in order', async () => {
  const gateway = await open([trigger({ order: 'key' })])
  hook.respond((response, _, count) => response.writeHead(count === 1 ? 500 : 204).end())
  await send(gateway, 'POST', '/api/notes', { id: 1, body: '0' })
  for (let n = 1; n < 5; n++) await send(gateway, 'PATCH', '/api/notes/1', { body: String(n) })
  const received = await hook.until(6)
  expect(received.map(({ json }) => json.data.new.body)).toEqual(['0', '0', '1', '2', '3', '4'])
})

test('another gateway delivers what a stopped gateway leaves', async () => {
  hook.respond(() => {})
  const one = await open([trigger({ timeout_ms: 1_000 })])
  await send(one, 'POST', '/api/notes', { id: 1 })
  await one.close()
  gateways = []
  expect(await rowsOf('select from svc.webhook')).toHaveLength(1)
  hook.respond(response => response.writeHead(204).end())
  await open([trigger({ timeout_ms: 1_000 })])
  await until(async () => (await rowsOf('select from svc.webhook')).length === 0)
})

test('subscribers receive the same writes', async () => {
  const gateway = await open([trigger()])
  const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
  socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
  await socket.nextOf('subscribed')
  await send(gateway, 'POST', '/api/notes', [{ id: 1 }, { id: 2 }])
  // A change that follows sooner can be merged with the first.
  const heard = [await socket.next(), await socket.next()]
  await send(gateway, 'PATCH', '/api/notes/1', { body: 'x' })
  heard.push(await socket.next())
  expect(heard.map(({ operation, key }) => [operation, key.id])).toEqual([
    ['INSERT', 1],
    ['INSERT', 2],
    ['UPDATE', 1],
  ])
  await hook.until(3)
  await socket.close()
})

test('a view is reported under its own name', async () => {
  await admin.query(`insert into notes values (1, 'one')`)
  const gateway = await open([trigger({ table: 'note_bodies' })])
  await send(gateway, 'PATCH', '/api/note_bodies?id=1', { body: 'x' })
  const [first] = await hook.until(1)
  // A view has no key by which older versions could find the old row.
  const old = POSTGRES_MAJOR < 18 ? null : { id: 1, body: 'one' }
  expect(first?.json).toMatchObject({ table: 'note_bodies', data: { old, new: { body: 'x' } } })
  await until(async () => (await rowsOf('select from svc.webhook_attempt')).length === 1)
})

test('rows that the gateway can write and not read are written, and counted as undelivered', async () => {
  const gateway = await open([trigger({ table: 'blind' })])
  const { status } = await send(gateway, 'POST', '/api/blind', { id: 1 }, { Prefer: 'return=minimal' })
  expect([status, await rowsOf('select id from blind')]).toEqual([201, [{ id: 1 }]])
  expect(events).toContainEqual(expect.objectContaining({ kind: 'webhooks', event: 'changes not delivered' }))
})

test('a write of another statement within `with` is rejected', async () => {
  const gateway = await open([trigger()])
  const query = 'with gone as (del notes where id = 2 returning id) get gone'
  const { status, text } = await send(gateway, 'POST', '/api/_query', { query })
  expect([status, text]).toEqual([403, expect.stringContaining('but changes within \\"with\\" cannot be captured')])
})

test('if the outbox disappears, deliveries are made from memory', async () => {
  const gateway = await open([trigger()])
  await admin.query('drop schema svc cascade')
  expect((await send(gateway, 'POST', '/api/notes', { id: 1 })).status).toBe(201)
  expect((await hook.until(1)).map(told)).toEqual([['INSERT', null, expect.objectContaining({ id: 1 })]])
  expect((await rowsOf('select id from notes')).length).toBe(1)
})
