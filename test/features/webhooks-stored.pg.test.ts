/**
 * docs/guides/webhooks.md#delivery-guarantees, after `svc install`: the capture of a table stores deliveries.
 * A write is the same statement, and has the same response, as without webhooks and subscribers.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { clientFixture, databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { installed, logged } from '../support/install.ts'
import { execute, type TestDatabase } from '../support/postgres.ts'
import { type Received, type Receiver, receiver } from '../support/receiver.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

const SCHEMA = `
  create table notes (id int primary key, body text, tenant_id text, note int references notes
    deferrable initially deferred);
  create table pairs ("a'b" int, "C" text, n int, primary key ("a'b", "C"));
  create table blind (id int primary key, body text);
  grant select, insert, update, delete on notes, pairs to app;
  grant insert on blind to app;
  create table received (n serial, text text);
  create function receive() returns trigger language plpgsql security definer as $$ begin
    insert into received (text) values (current_query());
    return null;
  end $$;
  create trigger receive before insert or update or delete on notes for each statement execute function receive()
`
const database = databaseFixture(SCHEMA)
const without = databaseFixture(SCHEMA)
const folder = folderFixture()
const admin = clientFixture(() => database.adminUrl)

beforeAll(() => installed(database))

let hook: Receiver
let gateways: TestGateway[] = []
let events: Event[] = []
beforeEach(async () => {
  hook = await receiver()
  await admin.query('truncate notes, pairs, blind, svc.webhook, svc.webhook_dead, svc.webhook_attempt')
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

async function open(definitions: readonly Definition[], { url } = database): Promise<TestGateway> {
  const file = join(folder, 'triggers.yaml')
  await writeFile(file, JSON.stringify(definitions))
  const gateway = await testGateway(url, {
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

/** The responses to all writes. */
async function writeAll(gateway: TestGateway): Promise<readonly unknown[]> {
  const replies: unknown[] = []
  for (const [method, path, body, headers] of WRITES) {
    const { text, ...reply } = await send(gateway, method, path, body, headers)
    replies.push([method, path, { ...reply, text: text.replace(/"request_id":"[^"]*"/, '') }])
  }
  return replies
}

async function subscribed(gateway: TestGateway): Promise<TestSocket> {
  const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
  socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
  await socket.nextOf('subscribed')
  return socket
}

/** The statements on `notes` that PostgreSQL receives during `work`. */
async function received({ adminUrl }: TestDatabase, work: () => Promise<unknown>): Promise<readonly string[]> {
  await execute(adminUrl, 'truncate received')
  await work()
  return (await execute(adminUrl, 'select text from received order by n')).map(({ text }) => String(text))
}

test('a write to a captured table is the same statement as without webhooks and subscribers', async () => {
  const plain = await open([])
  const expected = await received(database, () => writeAll(plain))
  await admin.query('truncate notes')
  const gateway = await open([trigger(), trigger({ name: 'in order', order: 'key' })])
  const socket = await subscribed(gateway)
  const seen = await received(database, () => writeAll(gateway))
  await socket.close()
  expect(seen).toEqual(expected)
  expect(seen.length).toBeGreaterThan(WRITES.length - 2)
  expect(seen.filter(text => /svc|notify|row_to_json\(notes/i.test(text))).toEqual([])
})

test('without an installation, the statement notifies subscribers and returns the rows for webhooks', async () => {
  const gateway = await open([trigger()], without)
  const socket = await subscribed(gateway)
  const [insert = ''] = await received(without, () => send(gateway, 'POST', '/api/notes', { id: 1 }))
  expect(insert).toContain('pg_notify')
  expect(insert).toContain('row_to_json(notes.*)')
  await socket.close()
})

test('every kind of write is delivered exactly, and has the same response as without webhooks', async () => {
  const plain = await open([])
  const expected = await writeAll(plain)
  await admin.query('truncate notes')
  await logged(database)
  const gateway = await open([trigger({ columns: ['id', 'body'] })])
  expect(await writeAll(gateway)).toEqual(expected)
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

test('a delivery has the tenant of its row, and its ordering key', async () => {
  hook.respond(() => {})
  const gateway = await open([
    trigger({ name: "it's", order: 'key' }),
    trigger({ name: 'deletions', operations: ['delete'] }),
    trigger({ name: 'of pairs', table: 'pairs', order: 'key' }),
  ])
  await send(gateway, 'POST', '/api/notes', { id: 1, tenant_id: 't1' })
  await logged(database)
  expect(await rowsOf(`select trigger, "table", operation, key, tenant, new, old from svc.webhook`)).toEqual([
    {
      ...{ trigger: "it's", table: 'notes', operation: 'INSERT', key: '{"id": 1}', tenant: 't1', old: null },
      new: { id: 1, body: null, tenant_id: 't1', note: null },
    },
  ])
  await send(gateway, 'DELETE', '/api/notes/1')
  await send(gateway, 'POST', '/api/pairs', { "a'b": 1, C: 'x' })
  await logged(database)
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
  await logged(database)
  await one.close()
  gateways = []
  expect(await rowsOf('select from svc.webhook')).toHaveLength(1)
  hook.respond(response => response.writeHead(204).end())
  await open([trigger({ timeout_ms: 1_000 })])
  await until(async () => (await rowsOf('select from svc.webhook')).length === 0)
})

test('subscribers receive the same writes', async () => {
  const gateway = await open([trigger()])
  const socket = await subscribed(gateway)
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

test('rows that the gateway can write and not read are written, and counted as undelivered', async () => {
  const gateway = await open([trigger({ table: 'blind' })])
  const { status } = await send(gateway, 'POST', '/api/blind', { id: 1 }, { Prefer: 'return=minimal' })
  expect([status, await rowsOf('select id from blind')]).toEqual([201, [{ id: 1 }]])
  expect(events).toContainEqual(expect.objectContaining({ kind: 'webhooks', event: 'changes not delivered' }))
})
