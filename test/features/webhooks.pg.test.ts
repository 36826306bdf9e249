// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the configuration expands these placeholders
/**
 * docs/guides/webhooks.md: writes are delivered to the triggers of the table, and no request waits for a
 * delivery.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type AskOptions, type GatewayOptions, type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { OK, type Received, type Receiver, receiver } from '../support/receiver.ts'
import { openSocket } from '../support/socket.ts'
import { shopDatabase } from './shop.ts'

const ADMIN = 'an-admin-token'
const SECRET_1 = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const SECRET_2 = `whsec_${Buffer.alloc(32, 2).toString('base64')}`

const database = databaseFixture(shopDatabase)
const folder = folderFixture()
beforeAll(() =>
  execute(
    database.adminUrl,
    `create table notes (id bigint primary key, body text, amount numeric, "odd ""name" text,
      at timestamptz default '2026-01-01T00:00:00Z');
     create table log (what text);
     create table old (id int primary key, old text);
     create table sealed (id int primary key, tenant_id text not null);
     alter table sealed enable row level security;
     alter table sealed force row level security;
     create policy writes on sealed for insert with check (true);
     create policy reads on sealed for select using (false);
     create view note_bodies with (security_invoker = true) as select id, body from notes;
     grant select, insert, update, delete on all tables in schema public to app`,
  ),
)

let hook: Receiver
let gateway: TestGateway | null = null
beforeEach(async () => {
  hook = await receiver()
  await execute(database.adminUrl, 'truncate notes, log, old, sealed')
})
afterEach(async () => {
  await gateway?.close()
  gateway = null
  await hook.close()
})

interface Definition {
  readonly [key: string]: unknown
}

/** JSON is valid YAML. */
async function triggersFile(definitions: readonly Definition[]): Promise<string> {
  const file = join(folder, 'triggers.yaml')
  await writeFile(file, JSON.stringify(definitions))
  return file
}

const ALL = ['create', 'update', 'delete']

function trigger(of: Definition = {}): Definition {
  return { name: 'hook', table: 'notes', operations: ALL, webhook_url: hook.url, ...of }
}

async function open(definitions: readonly Definition[], options: GatewayOptions = {}): Promise<TestGateway> {
  const file = await triggersFile(definitions)
  const toml = ['webhook_allow = ["127.0.0.0/8"]', `events_path = ${JSON.stringify(file)}`, options.toml ?? ''].join(
    '\n',
  )
  gateway = await testGateway(database.url, {
    ...options,
    toml,
    environment: { SVC_ADMIN_TOKEN: ADMIN, ...options.environment },
  })
  return gateway
}

function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
  const options: AskOptions = {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  }
  return (gateway as TestGateway).get(path, options)
}

const query = (text: string): Promise<Reply> => send('POST', '/api/_query', { query: text })

async function ask(path: string, method = 'GET'): Promise<Reply> {
  return (gateway as TestGateway).get(path, { as: null, method, headers: { Authorization: `Bearer ${ADMIN}` } })
}

const told = ({ json }: Received) => [json.operation, json.data.old?.id ?? null, json.data.new?.id ?? null]

describe('a delivery', () => {
  test('of a creation has trigger, table, operation, data and timestamp, and nothing else', async () => {
    await open([trigger()])
    const before = Date.now()
    await send('POST', '/api/notes', '{"id": 9007199254740993, "amount": 1.10, "odd \\"name": "ü"}')
    const [{ json, text, headers, method, path } = never()] = await hook.until(1)
    expect({ method, path }).toEqual({ method: 'POST', path: '/hook' })
    expect(Object.keys(json)).toEqual(['trigger', 'table', 'operation', 'data', 'timestamp'])
    expect(json).toMatchObject({ trigger: 'hook', table: 'notes', operation: 'INSERT' })
    expect(Object.keys(json.data)).toEqual(['new', 'old'])
    expect(json.data.old).toBeNull()
    expect(text).toContain('"new":{"id":9007199254740993,"body":null,"amount":1.10,"odd \\"name":"ü","at":"2026-01-01T')
    expect(json.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(Date.parse(json.timestamp)).toBeGreaterThanOrEqual(before)
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': expect.stringMatching(/^msg_/) })
    expect(headers['webhook-signature']).toBeUndefined()
  })

  test('of an update has both complete rows, whatever the response contained', async () => {
    await open([trigger()])
    await execute(database.adminUrl, `insert into notes values (1, 'one', 5)`)
    const reply = await send('PATCH', '/api/notes/1?returning=id', { body: 'two' })
    expect(reply.text).toBe('{"data":{"id":1}}')
    const [{ json } = never()] = await hook.until(1)
    expect(json).toMatchObject({
      operation: 'UPDATE',
      data: { old: { id: 1, body: 'one', amount: 5 }, new: { id: 1, body: 'two', amount: 5 } },
    })
  })

  test('of a deletion has the old row, and the response is as without a trigger', async () => {
    await open([trigger()])
    await execute(database.adminUrl, `insert into notes values (1, 'one'), (2, 'two')`)
    expect(await send('DELETE', '/api/notes/1')).toMatchObject({ status: 204, text: '' })
    expect((await send('DELETE', '/api/notes/2?returning=body')).text).toBe('{"data":{"body":"two"}}')
    const [one = never(), two = never()] = await hook.until(2)
    expect([one, two].map(told)).toEqual([
      ['DELETE', 1, null],
      ['DELETE', 2, null],
    ])
    expect(one.json.data).toMatchObject({ new: null, old: { body: 'one' } })
  })

  test('is made once for each row of a batch in any form', async () => {
    await open([trigger()])
    const reply = await send('POST', '/api/notes', [{ id: 1 }, { id: 2, body: 'x' }, { id: 3 }], {
      Prefer: 'return=minimal',
    })
    expect(reply).toMatchObject({ status: 201, text: '' })
    const received = await hook.until(3)
    expect(received.map(told).sort()).toEqual([1, 2, 3].map(id => ['INSERT', null, id]))
    expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
  })

  test('of an upsert reports the actual operation for each row, and none for ignored rows', async () => {
    await open([trigger()])
    await execute(database.adminUrl, `insert into notes values (1, 'one')`)
    const upsert = { 'X-Upsert': 'true' }
    await send('POST', '/api/notes', { id: 1, body: 'uno' }, upsert)
    await send('POST', '/api/notes', { id: 2, body: 'due' }, upsert)
    await send(
      'POST',
      '/api/notes',
      [
        { id: 2, body: 'two' },
        { id: 3, body: 'tre' },
      ],
      upsert,
    )
    await send(
      'POST',
      '/api/notes',
      [
        { id: 3, body: 'no' },
        { id: 4, body: 'four' },
      ],
      { 'X-Upsert': 'ignore' },
    )
    const received = await hook.until(5)
    const byBody = new Map(received.map(({ json }) => [json.data.new.body, json]))
    expect(byBody.get('uno')).toMatchObject({ operation: 'UPDATE', data: { old: { id: 1, body: 'one' } } })
    expect(byBody.get('due')).toMatchObject({ operation: 'INSERT', data: { old: null } })
    expect(byBody.get('two')).toMatchObject({ operation: 'UPDATE', data: { old: { body: 'due' } } })
    expect(byBody.get('tre')).toMatchObject({ operation: 'INSERT', data: { old: null } })
    expect(byBody.get('four')).toMatchObject({ operation: 'INSERT', data: { old: null } })
  })

  test('is made for each row of a filtered change', async () => {
    await open([trigger()])
    await execute(database.adminUrl, `insert into notes values (1, 'a'), (2, 'a'), (3, 'b')`)
    const reply = await send('PATCH', '/api/notes?body=a&returning=id', { body: 'c' })
    expect(reply.json.count).toBe(2)
    expect((await send('PATCH', '/api/notes?id.gt=0', { body: 'x' }, { 'X-Max-Affected': '2' })).status).toBe(400)
    await send('DELETE', '/api/notes?body=c')
    const received = await hook.until(4)
    expect(received.map(told).sort()).toEqual([
      ['DELETE', 1, null],
      ['DELETE', 2, null],
      ['UPDATE', 1, 1],
      ['UPDATE', 2, 2],
    ])
  })

  test('is made for writes of the query language', async () => {
    await open([trigger()])
    await query(`add notes fields id, body values (1, 'x'), (2, 'y')`)
    await query(`add notes fields id, body values 2, 'z' conflict (id) update body = 'again'`)
    await query(`set notes values body = 'w' where id = 1 returning id`)
    await query(`del notes where id = 2`)
    const received = await hook.until(5)
    expect(received.map(({ json }) => [json.operation, json.data.old?.body, json.data.new?.body]).sort()).toEqual([
      ['DELETE', 'again', undefined],
      ['INSERT', undefined, 'x'],
      ['INSERT', undefined, 'y'],
      ['UPDATE', 'x', 'w'],
      ['UPDATE', 'y', 'again'],
    ])
  })

  test('of a write inside "with" is not possible, so the write is rejected if a trigger would fire', async () => {
    await open([trigger({ operations: ['delete'] })])
    const refused = await query(`with gone as (del notes where id = 1 returning id) get gone`)
    expect(refused).toMatchObject({ status: 403, json: { error: { message: expect.stringContaining('"notes"') } } })
    const added = await query(`with new as (add notes fields id values 7 returning id) get new`)
    expect(added.json.data).toEqual([{ id: 7 }])
  })

  test('is not made for a write that fails or is rolled back', async () => {
    await open([trigger()])
    expect((await send('POST', '/api/notes', [{ id: 1 }, { id: 1 }])).status).toBe(400)
    expect((await send('PATCH', '/api/notes/5', { body: 'x' })).status).toBe(404)
    await send('POST', '/api/notes', { id: 2 })
    expect((await hook.until(1)).map(told)).toEqual([['INSERT', null, 2]])
  })

  test('is made for tables without a key, writable views, and a table called old', async () => {
    await open([
      trigger({ name: 'log', table: 'log' }),
      trigger({ name: 'view', table: 'note_bodies' }),
      trigger({ name: 'old', table: 'public.old' }),
    ])
    await send('POST', '/api/log', { what: 'x' })
    await send('POST', '/api/note_bodies', { id: 5, body: 'seen' })
    await send('POST', '/api/old', { id: 1, old: 'a' })
    await send('PATCH', '/api/old/1', { old: 'b' })
    const received = await hook.until(4)
    expect(received.map(({ json }) => json.data)).toEqual([
      { new: { what: 'x' }, old: null },
      { new: { id: 5, body: 'seen' }, old: null },
      { new: { id: 1, old: 'a' }, old: null },
      { new: { id: 1, old: 'b' }, old: { id: 1, old: 'a' } },
    ])
  })

  test('and the event of a subscriber do not affect each other', async () => {
    const { url, token } = await open([trigger()])
    const socket = await openSocket(url, { token: await token({ tenantId: 't1' }) })
    socket.say({ type: 'subscribe', channel: 'svc_table_notes', id: 'mine' })
    expect(await socket.next()).toMatchObject({ type: 'subscribed' })
    await send('POST', '/api/notes', [{ id: 1, body: 'one' }])
    expect(await socket.next()).toMatchObject({ operation: 'INSERT', key: { id: 1 } })
    const changed = await send('PATCH', '/api/notes/1?returning=body', { body: 'two' })
    expect(changed.text).toBe('{"data":{"body":"two"}}')
    expect(await socket.next()).toMatchObject({ operation: 'UPDATE', new: { id: 1, body: 'two' } })
    expect(await send('DELETE', '/api/notes?id=1')).toMatchObject({ status: 204, text: '' })
    expect(await socket.next()).toMatchObject({ operation: 'DELETE', key: { id: 1 } })
    await socket.close()
    expect((await hook.until(3)).map(({ json }) => [json.operation, json.data.old?.body, json.data.new?.body])).toEqual(
      [
        ['INSERT', undefined, 'one'],
        ['UPDATE', 'one', 'two'],
        ['DELETE', 'two', undefined],
      ],
    )
  })

  test('is not possible for rows that the role can write and not read, which are counted as undelivered', async () => {
    await open([trigger({ table: 'sealed' })])
    const reply = await send('POST', '/api/sealed', { id: 1, tenant_id: 't1' }, { Prefer: 'return=minimal' })
    expect(reply.status).toBe(201)
    expect((await ask('/health/internal')).json.webhooks.undelivered_changes).toBe(1)
    expect(hook.received).toEqual([])
  })
})

describe('a trigger', () => {
  test('fires for the operations of its table, with its columns and headers, unless disabled', async () => {
    await open(
      [
        trigger({ name: 'created', operations: ['create'], columns: ['id', 'odd "name'] }),
        trigger({ name: 'changed', operations: ['update', 'delete'], headers: { 'X-Key': '${KEY}', n: '${N:-7}' } }),
        trigger({ name: 'never', enabled: false }),
      ],
      { environment: { KEY: 'k-1' } },
    )
    await send('POST', '/api/notes', { id: 1, body: '{"},', amount: 3 })
    await hook.until(1)
    await send('PATCH', '/api/notes/1', { body: 'x' })
    const [created = never(), changed = never()] = await hook.until(2)
    expect(created.json).toMatchObject({ trigger: 'created', data: { new: { id: 1, 'odd "name': null }, old: null } })
    expect(Object.keys(created.json.data.new)).toEqual(['id', 'odd "name'])
    expect(changed.json.trigger).toBe('changed')
    expect(changed.headers).toMatchObject({ 'x-key': 'k-1', n: '7' })
    expect(hook.received).toHaveLength(2)
  })

  test('signs with each of its secrets', async () => {
    await open([trigger({ secret: [SECRET_1, '${NEXT}'] })], { environment: { NEXT: SECRET_2 } })
    await send('POST', '/api/notes', { id: 1 })
    const [{ text, headers } = never()] = await hook.until(1)
    for (const secret of [SECRET_1, SECRET_2]) {
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toMatchObject({ trigger: 'hook' })
    }
    const foreign = new Webhook(`whsec_${Buffer.alloc(32, 3).toString('base64')}`)
    expect(() => foreign.verify(text, headers as Record<string, string>)).toThrow()
  })

  test('is read again on reload; an invalid file changes nothing and logs the reason', async () => {
    const events: Event[] = []
    await open([trigger({ name: 'before' })], { emit: event => events.push(event) })
    await triggersFile([trigger({ tabel: 'x' })])
    await gateway?.gateway.reload()
    await send('POST', '/api/notes', { id: 1 })
    expect((await hook.until(1))[0]?.json.trigger).toBe('before')
    expect(events).toContainEqual({
      kind: 'warning',
      message: expect.stringContaining(
        '0.tabel: unknown key; did you mean table?; the triggers read before stay in effect',
      ),
      fix: expect.any(String),
    })
    await triggersFile([trigger({ name: 'after' })])
    await gateway?.gateway.reload()
    await send('POST', '/api/notes', { id: 2 })
    expect((await hook.until(2))[1]?.json.trigger).toBe('after')
  })
})

describe('the result of an attempt', () => {
  test('is a retry with the same id after a failure, and the caller does not wait', async () => {
    await open([trigger()])
    let release = (): void => {}
    hook.respond((response, _, count) => {
      if (count > 1) return void OK(response, _, count)
      release = () => response.writeHead(503, { 'Retry-After': '1' }).end('later')
    })
    expect((await send('POST', '/api/notes', { id: 1 })).status).toBe(201)
    await hook.until(1)
    release()
    const [first, second] = await hook.until(2)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(second?.text).toBe(first?.text)
  })

  test('410 disables the trigger until the file is read again', async () => {
    await open([trigger()])
    hook.respond(response => response.writeHead(410).end())
    await send('POST', '/api/notes', { id: 1 })
    const { triggers, dead_letters } = await overview(({ disabled_triggers }) => disabled_triggers === 1)
    expect(triggers).toMatchObject([{ name: 'hook', state: 'disabled by 410' }])
    expect(dead_letters).toMatchObject([{ trigger: 'hook', tries: 1, reason: 'the endpoint answered 410 Gone' }])
    hook.respond(OK)
    await send('POST', '/api/notes', { id: 2 })
    await gateway?.gateway.reload()
    await send('POST', '/api/notes', { id: 3 })
    expect((await hook.until(2)).map(told)).toEqual([
      ['INSERT', null, 1],
      ['INSERT', null, 3],
    ])
  })

  test('is a failure after a redirect, which is not followed, and a dead letter after the last attempt', async () => {
    const elsewhere = await receiver()
    await open([trigger({ retry_count: 0 })])
    hook.respond(response => response.writeHead(302, { Location: elsewhere.url }).end('over there'))
    await send('POST', '/api/notes', { id: 1 })
    const { dead_letters } = await overview(({ dead_letter_count }) => dead_letter_count === 1)
    const [{ id, reason } = never()] = dead_letters
    expect(reason).toBe('failed 1 times: answered 302')
    const shown = (await ask(`/internal/webhooks/dead-letter?id=${id}`)).json
    expect(shown.last_answer).toEqual({ status: 302, body: 'over there' })
    expect(JSON.parse(shown.payload).data.new.id).toBe(1)
    expect(elsewhere.received).toEqual([])
    await elsewhere.close()

    hook.respond(OK)
    expect((await ask(`/internal/webhooks/redeliver?id=${id}`, 'POST')).json).toEqual({ redelivered: 1 })
    const [first, again] = await hook.until(2)
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect((await ask('/internal/webhooks')).json.dead_letter_count).toBe(0)
  })

  test('is a failure if the receiver hangs or disconnects, but not after a complete 200', async () => {
    const dead = (of: string) =>
      trigger({ name: of, retry_count: 0, timeout_ms: 300, webhook_url: `${hook.url}/${of}` })
    await open(['hangs', 'closes', 'breaks', 'accepts'].map(dead))
    hook.respond((response, { path }) => {
      if (path.endsWith('closes')) response.socket?.destroy()
      if (path.endsWith('breaks')) response.socket?.end('HTTP/1.1 20')
      if (path.endsWith('accepts'))
        response.writeHead(200, { 'Content-Length': '100' }).write('half', () => response.destroy())
    })
    await send('POST', '/api/notes', { id: 1 })
    const { dead_letters } = await overview(({ dead_letter_count }) => dead_letter_count === 3)
    const reasons = Object.fromEntries(
      dead_letters.map(({ trigger: name, reason }: { trigger: string; reason: string }) => [name, reason]),
    )
    expect(reasons).toEqual({
      hangs: 'failed 1 times: timeout: no complete response within 300 ms',
      closes: expect.stringMatching(/^failed 1 times: connection: /),
      breaks: expect.stringMatching(/^failed 1 times: connection: /),
    })
    const { text } = await ask('/metrics')
    expect(text).toContain('svc_webhooks_attempts_total{outcome="delivered"} 1\n')
    expect(text).toContain('svc_webhooks_attempts_total{outcome="timeout"} 1\n')
    expect(text).toContain('svc_webhooks_attempts_total{outcome="connection"} 2\n')
    expect(text).toContain('svc_webhooks_dead_letters{storage="memory"} 3\n')
  })

  test('of a hanging endpoint does not delay others, and connections are reused', async () => {
    const slow = await receiver(() => {})
    await open([trigger({ name: 'slow', webhook_url: slow.url }), trigger({ name: 'fast' })], {
      toml: 'drain_timeout_ms = 100',
    })
    for (let id = 1; id <= 30; id++) await send('POST', '/api/notes', { id })
    await hook.until(30)
    expect(slow.received.length).toBeLessThanOrEqual(8)
    expect(hook.connections()).toBeLessThanOrEqual(8)
    await gateway?.close()
    gateway = null
    await slow.close()
  })

  test('of thirty timeouts leaves no connection to the receiver open', async () => {
    await open([trigger({ retry_count: 0, timeout_ms: 100 })])
    hook.respond(() => {})
    await send(
      'POST',
      '/api/notes',
      Array.from({ length: 30 }, (_, id) => ({ id })),
    )
    await overview(({ dead_letter_count }) => dead_letter_count === 30)
    await hook.waitUntil(() => hook.open() === 0)
    // Any further connection would have been opened before this delivery.
    hook.respond(OK)
    await send('POST', '/api/notes', { id: 99 })
    await hook.waitUntil(() => hook.received.some(({ json }) => json.data.new.id === 99))
    expect([hook.open(), hook.connections()]).toEqual([1, 31])
  })

  test('at shutdown is awaited for deliveries without an earlier attempt, and lost ones are logged', async () => {
    const events: Event[] = []
    await open([trigger()], { emit: event => events.push(event) })
    hook.respond((response, { json }, count) => {
      if (json.data.new.id === 99) return void response.writeHead(500).end()
      setImmediate(() => OK(response, hook.received[count - 1] ?? never(), count))
    })
    await send('POST', '/api/notes', { id: 99 })
    await overview(({ queue }) => queue.waiting === 1)
    await send(
      'POST',
      '/api/notes',
      Array.from({ length: 50 }, (_, id) => ({ id })),
    )
    await gateway?.close()
    gateway = null
    expect(hook.received).toHaveLength(51)
    expect(events).toContainEqual({
      kind: 'webhooks',
      event: 'lost',
      detail: expect.objectContaining({ deliveries: 1 }),
    })
  })
})

describe('an address that is not allowed', () => {
  const unlisted = async (webhook_url: string, environment: Record<string, string> = {}) => {
    const file = await triggersFile([trigger({ webhook_url, retry_count: 0 })])
    gateway = await testGateway(database.url, {
      toml: `events_path = ${JSON.stringify(file)}`,
      environment: { SVC_ADMIN_TOKEN: ADMIN, ...environment },
    })
    await send('POST', '/api/notes', { id: 1 })
  }

  test.each(['127.0.0.1', 'LOCALHOST'])('is a loopback address, unless listed: %s', async host => {
    await unlisted(hook.url.replace('127.0.0.1', host))
    const { dead_letters } = await overview(({ dead_letter_count }) => dead_letter_count === 1)
    expect(dead_letters[0].reason).toContain('is a loopback address')
    expect(hook.received).toHaveLength(0)
    expect((await ask('/health/internal')).json.warnings).toContainEqual({
      message: expect.stringMatching(/^Webhooks of "hook" cannot be delivered: 127\.0\.0\.1 is a loopback address/),
      fix: expect.stringContaining('webhook_allow'),
    })
  })

  test('is not a loopback address in development mode', async () => {
    await unlisted(hook.url, { SVC_DEV_MODE: 'true' })
    await hook.until(1)
    expect(JSON.stringify((await ask('/health/internal')).json.warnings)).not.toContain('cannot be delivered')
  })
})

describe('the operator', () => {
  test('can test a trigger and purge, with the admin token', async () => {
    await open([trigger({ retry_count: 0 })])
    const tested = (await ask('/internal/webhooks/test?trigger=hook', 'POST')).json
    expect(tested).toMatchObject({ outcome: 'delivered', answer: { status: 200, body: 'thanks' } })
    expect(hook.received[0]?.json).toMatchObject({ operation: 'TEST', data: { new: null, old: null } })
    expect((await ask('/internal/webhooks/test?trigger=nobody', 'POST')).status).toBe(404)
    expect((await ask('/internal/webhooks/test?trigger=hook')).status).toBe(405)
    hook.respond(response => response.writeHead(500).end())
    await send('POST', '/api/notes', [{ id: 1 }, { id: 2 }])
    await overview(({ dead_letter_count }) => dead_letter_count === 2)
    expect((await ask('/internal/webhooks/purge?all=true', 'POST')).json).toEqual({ purged: 2 })
    expect((await ask('/internal/webhooks/purge?id=x', 'POST')).json).toEqual({ purged: 0 })
    expect((await (gateway as TestGateway).get('/internal/webhooks', { as: null })).status).toBe(401)
  })

  test('sees at start-up and in /health/internal that deliveries are in memory', async () => {
    await open([trigger()])
    const { webhooks, warnings } = (await ask('/health/internal')).json
    expect(webhooks).toMatchObject({ enabled: true, storage: 'memory', queue: { ready: 0, waiting: 0, in_flight: 0 } })
    expect(warnings).toContainEqual({
      message: expect.stringContaining('are kept in memory'),
      fix: expect.stringContaining('svc install'),
    })
  })

  test('can use none of this without triggers', async () => {
    gateway = await testGateway(database.url, { environment: { SVC_ADMIN_TOKEN: ADMIN } })
    expect((await ask('/health/internal')).json.webhooks).toEqual({ enabled: false })
    expect((await ask('/internal/webhooks')).status).toBe(404)
  })
})

/** Repeats the request until the condition holds. */
// biome-ignore lint/suspicious/noExplicitAny: as the answer's JSON
async function overview(isSo: (answer: any) => boolean): Promise<any> {
  for (;;) {
    const { json } = await ask('/internal/webhooks')
    if (isSo(json)) return json
  }
}

function never(): never {
  throw new Error('it is not there')
}
