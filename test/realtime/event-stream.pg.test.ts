/** Changes of a table as server-sent events (docs/reference/realtime.md#server-sent-events). */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { installed } from '../support/install.ts'

const database = databaseFixture(`
  create table items (id int primary key, tenant text not null default 't1', name text, live bool default true);
  alter table items enable row level security; alter table items force row level security;
  create policy own on items using (tenant = current_setting('app.current_tenant_id', true));
  grant select, insert, update, delete on all tables in schema public to app
`)
const admin = clientFixture(() => database.adminUrl)
beforeAll(() => installed(database))
const gateway = gatewayFixture(database, { toml: 'tenant_max_sockets = 3' })

const open: Events[] = []
// Not TRUNCATE: a bulk change that the reader of the log finds late asks new subscriptions to resync.
beforeEach(() => admin.query('delete from items'))
afterEach(async () => {
  for (const events of open.splice(0)) await events.close()
})

interface Event {
  readonly id: string | null
  readonly data: Readonly<Record<string, never>>
}

class Events {
  readonly response: Response
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  #text = ''

  constructor(response: Response) {
    this.response = response
    if (response.body === null) throw new Error('the response has no body')
    this.#reader = response.body.getReader()
  }

  /** The next event; comments are skipped. Null at the end. */
  async next(): Promise<Event | null> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end === -1) {
        const { done, value } = await this.#reader.read()
        if (done) return null
        this.#text += this.#decoder.decode(value, { stream: true })
        continue
      }
      const fields = new Map(
        this.#text
          .slice(0, end)
          .split('\n')
          .map(line => line.split(/: (.*)/s, 2) as [string, string]),
      )
      this.#text = this.#text.slice(end + 2)
      const data = fields.get('data')
      if (data !== undefined) return { id: fields.get('id') ?? null, data: JSON.parse(data) }
    }
  }

  async change(): Promise<Event> {
    for (let event = await this.next(); event !== null; event = await this.next())
      if (event.data.type === 'notification') return event
    throw new Error('the stream has ended')
  }

  close(): Promise<void> {
    return this.#reader.cancel()
  }
}

async function events(query = 'live=true', { as = 't1', at = gateway, headers = {} } = {}): Promise<Events> {
  const authorization = `Bearer ${await at.token({ tenantId: as })}`
  const response = await fetch(`${at.url}/api/items?${query}`, {
    headers: { Accept: 'text/event-stream', Authorization: authorization, ...headers },
  })
  const opened = new Events(response)
  open.push(opened)
  return opened
}

describe('A list request for events', () => {
  test('begins with the start of the subscription, and sends each change', async () => {
    const stream = await events()
    expect(stream.response.status).toBe(200)
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream')
    const first = await stream.next()
    expect(first).toMatchObject({ id: first?.data.token, data: { type: 'subscribed', channel: 'svc_table_items' } })
    await admin.query(`insert into items (id, name) values (1, 'one')`)
    const { id, data } = await stream.change()
    expect(data).toMatchObject({ operation: 'INSERT', table: 'items', key: { id: 1 }, new: { id: 1, name: 'one' } })
    expect(id).toBe(data.token)
  })

  test('has the filters and columns of a list', async () => {
    const stream = await events('name=like.a%25&live=true&select=id,name')
    await admin.query(`insert into items (id, name) values (1, 'b'), (2, 'a')`)
    expect((await stream.change()).data).toMatchObject({ operation: 'INSERT', new: { id: 2, name: 'a' } })
    await admin.query(`update items set name = 'x' where id = 2`)
    expect((await stream.change()).data).toMatchObject({ operation: 'DELETE', key: { id: 2 } })
  })

  test('shows a tenant only its rows', async () => {
    const [one, two] = [await events(), await events('live=true', { as: 't2' })]
    await admin.query(`insert into items (id, tenant) values (1, 't1'), (2, 't2')`)
    expect((await one.change()).data).toMatchObject({ key: { id: 1 } })
    expect((await two.change()).data).toMatchObject({ key: { id: 2 } })
  })

  test('continues after Last-Event-ID, and begins with a resync if that is not known', async () => {
    const before = await events()
    await admin.query(`insert into items (id) values (1)`)
    const { id } = await before.change()
    await before.close()
    await admin.query(`insert into items (id) values (2)`)
    const after = await events('live=true', { headers: { 'Last-Event-ID': id ?? '' } })
    expect((await after.change()).data).toMatchObject({ key: { id: 2 } })
    const unknown = await events('live=true', { headers: { 'Last-Event-ID': 'unknown' } })
    await unknown.next()
    let next = await unknown.next()
    // The gateway may still be about to read the insertion of row 2 from the log.
    if (next?.data.type === 'notification') next = await unknown.next()
    expect(next?.data).toMatchObject({ type: 'resync', reason: 'token' })
  })

  test('is refused like any other request', async () => {
    const refused = async (path: string, headers: Record<string, string> = {}) => {
      const { status, json } = await gateway.get(path, { headers: { Accept: 'text/event-stream', ...headers } })
      return [status, json.error.code]
    }
    expect(await refused('/api/nothing?live=true')).toEqual([404, 'NOT_FOUND'])
    expect(await refused('/api/items?live=true&nope=eq.1')).toEqual([400, 'PARSE_ERROR'])
    expect(await refused('/api/items?live=true&order=id')).toEqual([400, 'PARSE_ERROR'])
    expect(await refused('/api/items?live=true', { 'Last-Event-ID': 'x'.repeat(2_000) })).toEqual([400, 'PARSE_ERROR'])
    expect(await refused('/api/items?live=true', { Authorization: 'Bearer x' })).toEqual([401, 'UNAUTHORIZED'])
  })

  test('counts as a socket of its tenant until the client disconnects', async () => {
    const streams = [await events(), await events(), await events()]
    const { status, json } = await gateway.get('/api/items?live=true', { headers: { Accept: 'text/event-stream' } })
    expect([status, json.error.code]).toEqual([429, 'CONCURRENCY_LIMIT'])
    await streams[0]?.close()
    await expect.poll(async () => (await events()).response.status, { timeout: 10_000 }).toBe(200)
  })

  test('does not change a request for JSON, where live can be a column', async () => {
    await admin.query(`insert into items (id, live) values (1, true), (2, false)`)
    expect((await gateway.get('/api/items?live=true')).json.data).toMatchObject([{ id: 1 }])
  })

  test('ends when the gateway stops, with the time to wait before the next request', async () => {
    const stopping = await testGateway(database.url)
    const stream = await events('live=true', { at: stopping })
    await stream.next()
    const closed = stopping.close()
    expect(await stream.next()).toBeNull()
    await closed
  })
})
