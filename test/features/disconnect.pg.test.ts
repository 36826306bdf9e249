/**
 * A client that disconnects cancels its own query in the database (docs/reference/reading.md#headers), and no
 * other.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { watchActivity } from '../support/activity.ts'
import { clientFixture, databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'
import { openRaw } from '../support/raw-http.ts'

/**
 * A cancel request is sent within milliseconds; a busy machine may need longer. Without it the statements run
 * for a minute.
 */
const AT_ONCE_MS = 10_000

const database = databaseFixture()
let token: string

const heard: string[] = []

beforeAll(() =>
  execute(
    database.adminUrl,
    `create table notes (id int primary key, body text not null);
     insert into notes select n, 'note ' || n from generate_series(1, 100) n;
     create table pages (id int primary key, note_id int not null references notes);
     insert into pages values (1, 1);
     -- As slow as can be, whichever way it is read.
     create table swamps (id int primary key, note_id int references notes);
     insert into swamps values (1, 1);
     alter table swamps enable row level security;
     create policy slow on swamps using (pg_sleep(60)::text = '');
     create view naps with (security_invoker) as select id, pg_sleep(0.05)::text as slept from notes;
     -- A listener is notified that the view has been evaluated.
     create view traces with (security_invoker) as select id, pg_notify('traces', 'run')::text as mark from notes;
     grant select on all tables in schema public to app`,
  ),
)
const listener = clientFixture(() => database.adminUrl)

beforeAll(async () => {
  listener.on('notification', ({ payload = '' }) => heard.push(payload))
  await listener.query('listen traces')
})
const activity = fixture(() => watchActivity(database.adminUrl))
const gateway = gatewayFixture(database, { toml: 'statement_timeout_ms = 60000' })
/** A gateway with one connection to the database. */
const single = gatewayFixture(database, { toml: 'max_connections = 1\nacquire_timeout_ms = 20000' })

beforeAll(async () => {
  token = await gateway.token({ tenantId: 't1' })
})

/** Notifications of the view `traces` since the last call. */
async function traces(): Promise<readonly string[]> {
  // Notifications arrive in commit order, so after this one all earlier ones have arrived.
  await listener.query("notify traces, 'now'")
  while (heard.at(-1) !== 'now') await listener.query('select 1')
  return heard.splice(0).slice(0, -1)
}

describe('a client that disconnects ends its query at once', () => {
  test.each([
    ['a list', '/api/swamps'],
    ['a list that embeds', '/api/notes?expand=nested:swamps&limit=1'],
    ['one row', '/api/swamps/1'],
    ['children', '/api/notes/1/swamps'],
    ['a stream before its first row', '/api/swamps?stream=true'],
  ])('%s', async (_, path) => {
    const connection = await openRaw(gateway.url)
    connection.send(path, token)
    await activity.started(/\bswamps\b/)
    connection.socket.destroy()
    expect(await activity.gone(/\bswamps\b/)).toBeLessThan(AT_ONCE_MS)
  })

  test('also if it closes the connection properly', async () => {
    const connection = await openRaw(gateway.url)
    connection.send('/api/swamps', token)
    await activity.started(/\bswamps\b/)
    connection.socket.end()
    expect(await activity.gone(/\bswamps\b/)).toBeLessThan(AT_ONCE_MS)
  })

  test('and the queries of all requests that it had pipelined', async () => {
    const connection = await openRaw(gateway.url)
    for (let i = 0; i < 12; i++) connection.send(`/api/swamps?limit=${i + 1}`, token)
    await activity.started(/\bswamps\b/)
    connection.socket.destroy()
    expect(await activity.gone(/\bswamps\b/)).toBeLessThan(AT_ONCE_MS)
    expect((await gateway.get('/api/notes/1')).status).toBe(200)
    // A cancel request can arrive too early, so it is repeated.
    expect(await activity.gone(/\bswamps\b/)).toBeLessThan(AT_ONCE_MS)
  })

  test('and does not start a query that is waiting for a connection', async () => {
    const slow = await openRaw(single.url)
    slow.send('/api/swamps', token)
    await activity.started(/\bswamps\b/)
    const waiting = await openRaw(single.url)
    waiting.send('/api/notes/1', token)
    waiting.send('/api/traces?limit=1', token)
    waiting.socket.end()
    await waiting.closed
    slow.socket.destroy()
    await activity.gone(/\bswamps\b/)
    expect((await single.get('/api/notes/1')).status).toBe(200)
    expect(await traces()).toEqual([])
    // A query that runs leaves a trace, so this check can fail.
    expect((await single.get('/api/traces?limit=1')).status).toBe(200)
    expect(await traces()).toEqual(['run'])
  })
})

describe('other clients', () => {
  test('that wait for the same connection are served as soon as it is free', async () => {
    const slow = await openRaw(single.url)
    slow.send('/api/swamps', token)
    await activity.started(/\bswamps\b/)
    const answers = [7, 8, 9].map(id => single.get(`/api/notes/${id}`))
    slow.socket.destroy()
    const began = performance.now()
    expect((await Promise.all(answers)).map(({ json }) => json.data)).toEqual([
      { id: 7, body: 'note 7' },
      { id: 8, body: 'note 8' },
      { id: 9, body: 'note 9' },
    ])
    expect(performance.now() - began).toBeLessThan(AT_ONCE_MS)
  })

  test('on the same connection get their own responses, whichever client disconnects around them', async () => {
    let abandoned = 0
    async function abandon(): Promise<void> {
      const connection = await openRaw(single.url)
      connection.send('/api/naps?limit=1', token)
      await activity.started(/\bnaps\b/)
      connection.socket.destroy()
      abandoned++
    }
    async function read(worker: number): Promise<void> {
      for (let i = 0; abandoned < 20; i++) {
        const id = 1 + ((worker * 31 + i) % 100)
        const { status, json } = await single.get(`/api/notes/${id}`)
        expect([status, json]).toEqual([200, { data: { id, body: `note ${id}` } }])
      }
    }
    async function abandonAll(): Promise<void> {
      while (abandoned < 20) await abandon()
    }
    await Promise.all([abandonAll(), ...Array.from({ length: 8 }, (_, worker) => read(worker))])
  })

  test('are not affected by a client that disconnects after its response', async () => {
    const slow = single.get('/api/naps?limit=10')
    for (let i = 0; i < 5; i++) {
      const connection = await openRaw(gateway.url)
      connection.send('/api/notes/1', token)
      await connection.until(/"note 1"/)
      connection.socket.destroy()
    }
    expect((await slow).status).toBe(200)
  })
})
