/**
 * Behaviour that clients rely on while they follow a shape (docs/reference/shapes.md): keys of unusual names,
 * transactions, truncation, subsets that are read again, and streams that are interrupted. The client is the
 * unmodified one of npm.
 */
import { isChangeMessage, isControlMessage, type Message, Shape, ShapeStream } from '@electric-sql/client'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { clientFixture, databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { installed, logged } from '../support/install.ts'

const PATIENT = { timeout: 20_000 }
const T1 = { tenantId: 't1' }

const database = databaseFixture(`
  create table issues (id int primary key, title text not null, priority int default 10, tags text[], due date,
    blob bytea);
  create schema "Sales ""EU""";
  create table "Sales ""EU"""."Big.Orders" ("Order/Id" text, "Größe" int, note text,
    primary key ("Größe", "Order/Id"));
  create table cleared (id int primary key, title text);
  grant usage on schema "Sales ""EU""" to app;
  grant select on all tables in schema public, "Sales ""EU""" to app
`)
const admin = clientFixture(() => database.adminUrl)
const other = clientFixture(() => database.adminUrl)
const BIG = '"Sales ""EU"""."Big.Orders"'

beforeAll(() =>
  installed(database, [
    { schema: 'public', table: 'issues' },
    { schema: 'public', table: 'cleared' },
    { schema: 'Sales "EU"', table: 'Big.Orders' },
  ]),
)

const gateway = gatewayFixture(database, {
  toml: `schemas = ["public", "Sales \\"EU\\""]
    cors_allowed_origins = ["https://app.example"]
    unrouted_resync_interval_ms = 0
    [shapes]
    enabled = true
    long_poll_ms = 1500
    allow_deletion = true`,
})

const aborters: AbortController[] = []

// The log reader can read a TRUNCATE late, which concerns every shape of the table.
beforeEach(() => admin.query(`delete from issues; delete from ${BIG}`))
afterEach(() => {
  vi.unstubAllGlobals()
  for (const aborter of aborters.splice(0)) aborter.abort()
})

// biome-ignore lint/suspicious/noExplicitAny: the rows of these tables
type Any = any

async function stream(more: Record<string, unknown> = {}, params: Record<string, unknown> = {}) {
  const aborter = new AbortController()
  aborters.push(aborter)
  return new ShapeStream<Any>({
    url: `${gateway.url}/v1/shape`,
    headers: { Authorization: `Bearer ${await gateway.token(T1)}` },
    params: { table: 'issues', ...params },
    signal: aborter.signal,
    ...more,
  } as never)
}

/** A stream, and the messages that it has received. */
async function collected(more: Record<string, unknown> = {}, params: Record<string, unknown> = {}) {
  const all: Message<Any>[] = []
  const opened = await stream(more, params)
  opened.subscribe(messages => void all.push(...messages))
  return { all, opened }
}

const changes = (all: readonly Message<Any>[]) => all.filter(isChangeMessage)
const controls = (all: readonly Message<Any>[]) => all.filter(isControlMessage).map(({ headers }) => headers.control)
const upToDate = (all: readonly Message<Any>[]) =>
  vi.waitFor(() => expect(controls(all)).toContain('up-to-date'), PATIENT)
const seen = (all: readonly Message<Any>[]) =>
  changes(all).map(({ headers, value }) => [headers.operation, value.id, value.title])

const request = (query: string, options: object = { as: T1 }) => gateway.get(`/v1/shape?${query}`, options)

/** The handle and offset of a client that is up to date. */
async function begun(query: string) {
  const first = await request(`${query}&offset=-1`)
  expect(first.status).toBe(200)
  const handle = first.headers.get('electric-handle') ?? ''
  const second = await request(`${query}&offset=${first.headers.get('electric-offset')}&handle=${handle}`)
  return { handle, offset: second.headers.get('electric-offset') ?? '' }
}

describe('Names', () => {
  test('with capitals, dots, quotes and slashes are quoted in keys, and doubled', async () => {
    await admin.query(`insert into ${BIG} values ('a/b', 7, 'x')`)
    const params = { table: BIG, columns: ['Order/Id', 'Größe', 'note'] }
    const { all } = await collected({}, params)
    await upToDate(all)
    await admin.query(`update ${BIG} set note = 'y'`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(2), PATIENT)
    await admin.query(`delete from ${BIG}`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(3), PATIENT)
    const relation = ['Sales "EU"', 'Big.Orders']
    const key = '"Sales ""EU"""."Big.Orders"/"7"/"a//b"'
    const keyed = { 'Order/Id': 'a/b', Größe: 7 }
    expect(changes(all)).toMatchObject([
      { key, value: { ...keyed, note: 'x' }, headers: { operation: 'insert', relation } },
      { key, value: { ...keyed, note: 'y' }, headers: { operation: 'update', relation } },
      { key, value: keyed, headers: { operation: 'delete', relation } },
    ])
  })

  test('in the header with the schema are ASCII, with the place of each column in the key', async () => {
    const { headers } = await request(`table=${encodeURIComponent(BIG)}&offset=-1`)
    const schema = headers.get('electric-schema') ?? ''
    expect(schema).toMatch(/^[\x20-\x7e]+$/)
    expect(JSON.parse(schema)).toMatchObject({ 'Order/Id': { pk_index: 1 }, Größe: { pk_index: 0 } })
  })
})

describe.each([{ liveSse: false }, { liveSse: true }])('The client (liveSse: $liveSse)', ({ liveSse }) => {
  test('sees a changed key as a delete and an insert', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const { all } = await collected({ liveSse })
    await upToDate(all)
    await admin.query(`update issues set id = 2, title = 'two' where id = 1`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(3), PATIENT)
    expect(seen(all).slice(1).toSorted()).toEqual([
      ['delete', 1, undefined],
      ['insert', 2, 'two'],
    ])
    expect(new Set(changes(all).map(({ key }) => key)).size).toBe(2)
  })

  test('sees the outcome of a transaction, with its number', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one'), (2, 'two')`)
    const { all } = await collected({ liveSse })
    await upToDate(all)
    all.length = 0
    await admin.query('begin')
    const { rows } = await admin.query('select pg_current_xact_id()::xid::text as xid')
    await admin.query(`insert into issues (id, title) values (3, 'never seen'), (4, 'draft');
      update issues set title = 'final' where id = 4; delete from issues where id = 3;
      update issues set title = 'ONE' where id = 1; update issues set title = 'One' where id = 1;
      delete from issues where id = 2; insert into issues (id, title) values (2, 'again'); commit`)
    await vi.waitFor(() => expect(changes(all).length).toBeGreaterThanOrEqual(3), PATIENT)
    const copy = new Map<number, string>([
      [1, 'one'],
      [2, 'two'],
    ])
    for (const { headers, value } of changes(all)) {
      if (headers.operation === 'delete') copy.delete(value.id)
      else if (value.title !== undefined) copy.set(value.id, value.title)
      expect(headers.txids).toEqual([Number(rows[0].xid)])
    }
    expect([...copy].toSorted()).toEqual([
      [1, 'One'],
      [2, 'again'],
      [4, 'final'],
    ])
  })

  test('starts again when its table is truncated, and follows it from then on', async () => {
    await admin.query(`delete from cleared; insert into cleared values (1, 'one')`)
    const statuses: number[] = []
    const fetchClient: typeof fetch = async (...given) => {
      const response = await fetch(...given)
      statuses.push(response.status)
      return response
    }
    const shape = new Shape<Any>((await stream({ liveSse, fetchClient }, { table: 'cleared' })) as never)
    expect(await shape.rows).toEqual([{ id: 1, title: 'one' }])
    await admin.query('truncate cleared')
    await vi.waitFor(() => expect(shape.currentRows).toEqual([]), PATIENT)
    await admin.query(`insert into cleared values (2, 'two')`)
    await vi.waitFor(() => expect(shape.currentRows).toEqual([{ id: 2, title: 'two' }]), PATIENT)
    expect(statuses).toContain(409)
  })

  test('receives each row once when a refresh interrupts its request', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const { all, opened } = await collected({ liveSse })
    await upToDate(all)
    for (let id = 2; id <= 6; id++) {
      await admin.query(`insert into issues (id, title) values ($1, 'later')`, [id])
      await opened.forceDisconnectAndRefresh()
    }
    await vi.waitFor(() => expect(changes(all).length).toBeGreaterThanOrEqual(6), PATIENT)
    expect(seen(all).map(([, id]) => id)).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('pauses while its page is hidden, and then receives what it missed', async () => {
    const page = Object.assign(new EventTarget(), { hidden: false })
    vi.stubGlobal('document', page)
    const show = (isShown: boolean) => {
      page.hidden = !isShown
      page.dispatchEvent(new Event('visibilitychange'))
    }
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const { all, opened } = await collected({ liveSse })
    await upToDate(all)
    show(false)
    await vi.waitFor(() => expect(opened.isConnected()).toBe(false), PATIENT)
    await admin.query(`update issues set title = 'hidden' where id = 1`)
    await logged(database)
    expect(seen(all)).toEqual([['insert', 1, 'one']])
    show(true)
    await vi.waitFor(() => expect(seen(all).at(-1)).toEqual(['update', 1, 'hidden']), PATIENT)
    expect(controls(all)).not.toContain('must-refetch')
  })

  test('with offset "now" has what is written from then on', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'before')`)
    const shape = new Shape<Any>((await stream({ liveSse, offset: 'now' })) as never)
    expect(await shape.rows).toEqual([])
    await admin.query(`insert into issues (id, title) values (2, 'after')`)
    await vi.waitFor(() => expect(shape.currentRows).toMatchObject([{ id: 2, title: 'after' }]), PATIENT)
  })
})

describe.each([
  ['GET', false],
  ['GET', true],
  ['POST', false],
  ['POST', true],
] as const)('Changes only, with subsets by %s (liveSse: %s)', (subsetMethod, liveSse) => {
  const more = { log: 'changes_only', liveSse, subsetMethod }

  test('rows that were never read are ignored until they are inserted', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'before')`)
    const opened = await stream(more)
    const all: Message<Any>[] = []
    opened.subscribe(messages => void all.push(...messages))
    const shape = new Shape<Any>(opened as never)
    expect([await shape.rows, shape.mode]).toEqual([[], 'changes_only'])
    await admin.query(`update issues set title = 'changed'`)
    await vi.waitFor(() => expect(seen(all)).toEqual([['update', 1, 'changed']]), PATIENT)
    await admin.query(`delete from issues`)
    await vi.waitFor(() => expect(seen(all).at(-1)).toEqual(['delete', 1, undefined]), PATIENT)
    expect(shape.currentRows).toEqual([])
    await admin.query(`insert into issues (id, title) values (1, 'new')`)
    await vi.waitFor(() => expect(shape.currentRows).toMatchObject([{ id: 1, title: 'new' }]), PATIENT)
  })

  test('an update that commits after a subset was read is received', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'base')`)
    const shape = new Shape<Any>((await stream(more)) as never)
    await vi.waitFor(() => expect(shape.isUpToDate).toBe(true), PATIENT)
    await admin.query(`begin; update issues set title = 'in a transaction'`)
    try {
      await shape.requestSnapshot({ where: 'id = any($1)', params: { 1: '{1,2}' }, orderBy: 'id', limit: 9 })
      await vi.waitFor(() => expect(shape.currentRows).toMatchObject([{ title: 'base' }]), PATIENT)
    } finally {
      await admin.query('commit')
    }
    await vi.waitFor(() => expect(shape.currentRows).toMatchObject([{ title: 'in a transaction' }]), PATIENT)
  })

  test('subsets are read again when the client starts again', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one'), (2, 'two')`)
    const opened = await stream(more)
    const shape = new Shape<Any>(opened as never)
    await shape.requestSnapshot({ orderBy: 'title asc', limit: 100 })
    const titles = () => shape.currentRows.map(({ title }) => title).toSorted()
    await vi.waitFor(() => expect(titles()).toEqual(['one', 'two']), PATIENT)
    await admin.query(`delete from issues where id = 2; insert into issues (id, title) values (3, 'three')`)
    await request(`table=issues&handle=${opened.shapeHandle}`, { as: T1, method: 'DELETE' })
    await vi.waitFor(() => expect(titles()).toEqual(['one', 'three']), PATIENT)
  })
})

describe('Requests', () => {
  test('that wait are not answered because of a column that the shape does not have', async () => {
    await admin.query(`insert into issues (id, title) values (1, 'one')`)
    const query = 'table=issues&columns=id,title'
    const { handle, offset } = await begun(query)
    const poll = request(`${query}&live=true&handle=${handle}&offset=${offset}`)
    await admin.query(`update issues set priority = 5`)
    await logged(database)
    await admin.query(`update issues set title = 'ONE'`)
    const { json } = await poll
    // The end of the long poll can come first, but never a message without a change.
    const updates = json.filter(({ headers }: Any) => headers.operation === 'update')
    for (const { value } of updates) expect(value).toEqual({ id: '1', title: 'ONE' })
    expect(json.every(({ headers }: Any) => headers.control === 'up-to-date' || headers.operation === 'update')).toBe(
      true,
    )
  })

  test('with HEAD have the headers of GET', async () => {
    const query = 'table=issues&offset=-1'
    // A response without a body is not compressed.
    const named = /^(electric-(handle|schema|cursor|up-to-date)|etag|cache-control|content-type)$/
    const [got, head] = await Promise.all(
      ['GET', 'HEAD'].map(async method => {
        const { headers } = await request(query, { as: T1, method })
        return [...headers].filter(([name]) => named.test(name))
      }),
    )
    expect(head).toEqual(got)
    expect(Object.fromEntries(head ?? [])).toMatchObject({
      'electric-handle': expect.any(String),
      'electric-schema': expect.stringContaining('pk_index'),
      etag: expect.any(String),
    })
  })

  test('of pages of an allowed origin expose the headers of the protocol', async () => {
    const { headers } = await request('table=issues&offset=-1', { as: T1, headers: { Origin: 'https://app.example' } })
    const exposed = headers.get('access-control-expose-headers')?.split(/,\s*/) ?? []
    const names = ['cursor', 'handle', 'offset', 'schema', 'snapshot', 'up-to-date'].map(name => `electric-${name}`)
    expect(exposed).toEqual(expect.arrayContaining(names))
    const preflight = await request('table=issues', {
      as: null,
      method: 'OPTIONS',
      headers: {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'authorization,if-none-match',
      },
    })
    expect([preflight.status, preflight.headers.get('access-control-allow-headers')]).toEqual([
      204,
      'authorization,if-none-match',
    ])
    const elsewhere = await request('table=issues&offset=-1', { as: T1, headers: { Origin: 'https://evil.example' } })
    expect(elsewhere.headers.get('access-control-allow-origin')).not.toBe('https://evil.example')
  })

  test('with parameters that are meant for caches have the same handle', async () => {
    const one = await request('table=issues&offset=-1')
    const other = await request('table=issues&offset=-1&foo=cache-test&cache-buster=1')
    expect([other.status, other.headers.get('electric-handle')]).toEqual([200, one.headers.get('electric-handle')])
  })

  test.each(['live_sse', 'experimental_live_sse'])('with %s=true have events of one message each', async name => {
    const { handle, offset } = await begun('table=issues')
    const ended = new AbortController()
    aborters.push(ended)
    const response = await fetch(
      `${gateway.url}/v1/shape?table=issues&live=true&${name}=true&handle=${handle}&offset=${offset}`,
      { headers: { Authorization: `Bearer ${await gateway.token(T1)}` }, signal: ended.signal },
    )
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(response.headers.get('electric-cursor')).toMatch(/^\d+$/)
    await admin.query(`insert into issues (id, title) values (1, E'line\\nbreak')`)
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      if (/"operation":"insert".*\n\n.*up-to-date.*\n\n/s.test(text)) break
    }
    const events = text.split('\n\n').filter(event => event.startsWith('data: '))
    expect(events.map(event => JSON.parse(event.slice(6)))).toMatchObject([
      { value: { id: '1', title: 'line\nbreak' }, headers: { operation: 'insert' } },
      { headers: { control: 'up-to-date' } },
    ])
    const alone = await request(`table=issues&${name}=true&handle=${handle}&offset=${offset}`)
    expect([alone.status, alone.json.errors]).toEqual([400, { live_sse: [expect.any(String)] }])
  })

  test('of events repeat changes, and lose none, after a transaction that was open before them', async () => {
    const { handle, offset } = await begun('table=issues')
    const ended = new AbortController()
    aborters.push(ended)
    const query = `table=issues&handle=${handle}&live=true`
    // While a transaction of another test is open, the stream also repeats deletions of earlier tests. No
    // other test uses these ids.
    await other.query(`begin; insert into issues (id, title) values (1001, 'open')`)
    await admin.query(`insert into issues (id, title) values (1002, 'early')`)
    const polled = await request(`${query}&offset=${offset}`)
    expect(polled.json).toMatchObject([{ value: { id: '1002' } }, { headers: { control: 'up-to-date' } }])
    const seenLast = polled.json[1].headers.global_last_seen_lsn
    await other.query('commit')
    const response = await fetch(`${gateway.url}/v1/shape?${query}&live_sse=true&offset=${seenLast}_0`, {
      headers: { Authorization: `Bearer ${await gateway.token(T1)}` },
      signal: ended.signal,
    })
    let text = ''
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk
      if (/"early".*"open"|"open".*"early"/s.test(text)) break
    }
    expect([...text.matchAll(/"title":"(\w+)"/g)].map(([, title]) => title).toSorted()).toEqual(['early', 'open'])
  })

  test('for a row of several megabytes have all of it, in the rows and as a change', async () => {
    await admin.query(`insert into issues (id, title, blob) values (1, 'large', decode(repeat('ab', 2000000), 'hex'))`)
    const { all } = await collected()
    await upToDate(all)
    const blob = (at: number) => changes(all).at(at)?.value.blob
    expect(blob(0)).toBe(`\\x${'ab'.repeat(2_000_000)}`)
    await admin.query(`update issues set blob = decode(repeat('cd', 2000000), 'hex')`)
    await vi.waitFor(() => expect(changes(all)).toHaveLength(2), PATIENT)
    expect(blob(1)).toBe(`\\x${'cd'.repeat(2_000_000)}`)
  })
})
