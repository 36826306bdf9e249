/**
 * docs/reference/rest-api.md#entity-tags: PostgreSQL does not send rows that the client has. A relay between
 * the gateway and PostgreSQL counts bytes and round trips.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { COMPARED_BYTES_MAX } from '../../src/compile/unless-known.ts'
import { executeOn } from '../support/execute.ts'
import { clientFixture, databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { relayTo } from '../support/relay.ts'

/** The size of a note; everything else that PostgreSQL sends for a request is smaller. */
const NOTE_BYTES = 100_000

const database = databaseFixture(`
  create table items (id int primary key, name text, note text, ok boolean, code char(4), at timestamptz, part int);
  create table lines (item_id int references items, n int, note text, primary key (item_id, n));
  create table parts (id int primary key, note text) partition by list (id);
  create table parts_1 partition of parts for values in (1);
  create table granted (id int primary key, note text, secret text);
  grant select, insert, update, delete on all tables in schema public to app;
  revoke all on granted from app;
  grant select (id, note) on granted to app;
`)
const admin = clientFixture(() => database.adminUrl)
const sql = (text: string) => executeOn(admin, text)
const relay = fixture(() => relayTo(database.port))
const throughRelay = {
  get url() {
    return Object.assign(new URL(database.url), { host: `127.0.0.1:${relay.port}` }).href
  },
}
const gateway = gatewayFixture(throughRelay, { toml: 'max_connections = 1\ndefault_limit = 2' })
const versioned = gatewayFixture(throughRelay, {
  toml: 'max_connections = 1\n[gateway.tables.items]\nversion_column = "at"',
})
const cached = gatewayFixture(throughRelay, { toml: 'max_connections = 1\n[gateway.cache]\nenabled = true' })

beforeEach(async () => {
  await sql(`
    truncate items, lines, parts, granted;
    insert into items select n, 'item ' || n, repeat(chr(228) || '"', ${NOTE_BYTES / 2}), n > 2, 'c' || n, now(), null
      from generate_series(1, 4) n;
    insert into lines select 1, n, repeat('x', ${NOTE_BYTES}) from generate_series(1, 2) n;
    insert into parts values (1, repeat('x', ${NOTE_BYTES}));
    insert into granted values (1, repeat('x', ${NOTE_BYTES}), 's');
  `)
})

type Headers = Readonly<Record<string, string>>

interface Measured {
  readonly reply: Reply
  /** The bytes that PostgreSQL sent for it, and the number of round trips. */
  readonly bytes: number
  readonly turns: number
}

async function measure(path: string, headers: Headers, through = gateway): Promise<Measured> {
  const { answeredBytes, turns } = relay
  const reply = await through.get(path, { headers: { 'Accept-Encoding': 'identity', ...headers } })
  return { reply, bytes: relay.answeredBytes - answeredBytes, turns: relay.turns - turns }
}

/** The fewest round trips of several attempts: other statements of a gateway pass through the relay too. */
async function fewestTurns(path: string, headers: Headers, through = gateway): Promise<number> {
  const turns: number[] = []
  for (let attempt = 0; attempt < 5; attempt++) turns.push((await measure(path, headers, through)).turns)
  return Math.min(...turns)
}

const tagOf = (reply: Reply): string => reply.headers.get('etag') ?? ''

/**
 * The first response, and that to the same request with its tag, once the cost guard knows the estimate of
 * its statement.
 */
async function twice(path: string, headers: Headers = {}, through = gateway) {
  const first = await measure(path, headers, through)
  const known = { ...headers, 'If-None-Match': tagOf(first.reply) }
  await measure(path, known, through)
  const again = await measure(path, known, through)
  return { first, again, tag: tagOf(first.reply) }
}

const PATHS: readonly (readonly [what: string, path: string, headers: Headers])[] = [
  ['a row', '/api/items/1', {}],
  ['columns of a row', '/api/items/1?select=id,n:note', {}],
  ['a row with related rows', '/api/items/1?expand=nested:lines', {}],
  ['a row of a partitioned table', '/api/parts/1', {}],
  ['a row of which some columns are granted', '/api/granted/1?select=id,note', {}],
  ['a list', '/api/items?sort=id', {}],
  ['the last page of a list', '/api/items?sort=id&limit=10', {}],
  ['a page by offset', '/api/items?sort=id&offset=1', {}],
  [
    'a list sorted by columns that it does not return',
    '/api/items?sort=ok,code,part:desc.nullsfirst,-at&select=note',
    {},
  ],
  ['a list with related rows', '/api/items?sort=id&expand=nested:lines', {}],
  ['children', '/api/items/1/lines?sort=n', {}],
  ['distinct values', '/api/lines?distinct=note', {}],
  ['a list with a total', '/api/items?sort=id', { Prefer: 'count=exact' }],
  ['CSV', '/api/items?sort=id', { Accept: 'text/csv' }],
]

describe('a response that the client has', () => {
  test.each(PATHS)('is 304 without its rows: %s', async (_, path, headers) => {
    const { first, again, tag } = await twice(path, headers)
    expect([first.reply.status, first.bytes > NOTE_BYTES]).toEqual([200, true])
    expect([again.reply.status, again.reply.text, tagOf(again.reply)]).toEqual([304, '', tag])
    expect(again.bytes).toBeLessThan(NOTE_BYTES / 10)
    for (const name of ['x-cache', 'preference-applied']) {
      expect(again.reply.headers.get(name), name).toBe(first.reply.headers.get(name))
    }
    expect(again.reply.headers.get('vary') ?? '').toContain(first.reply.headers.get('vary') ?? '')
  })

  test('is compared by the configured version', async () => {
    const { first, again, tag } = await twice('/api/items/1', {}, versioned)
    expect([first.reply.status, again.reply.status, tagOf(again.reply)]).toEqual([200, 304, tag])
    expect(again.bytes).toBeLessThan(NOTE_BYTES / 10)
    await sql("update items set at = at + '1 second' where id = 1")
    expect((await measure('/api/items/1', { 'If-None-Match': tag }, versioned)).reply.status).toBe(200)
  })

  test('can be that of a compressed body', async () => {
    const { first, again, tag } = await twice('/api/items/1', { 'Accept-Encoding': 'gzip' })
    expect([first.reply.headers.get('content-encoding'), tag]).toEqual(['gzip', expect.stringMatching(/-gzip"$/)])
    expect([again.reply.status, tagOf(again.reply), again.reply.headers.get('vary')]).toEqual([
      ...[304, tag, 'Accept-Encoding'],
    ])
    const plain = await measure('/api/items/1', { 'If-None-Match': tag })
    expect([plain.reply.status, tagOf(plain.reply)]).toEqual([304, tag.replace('-gzip', '')])
    expect(again.bytes + plain.bytes).toBeLessThan(NOTE_BYTES / 10)
  })

  test.each(['/api/items/1', '/api/granted/1?select=id,note', '/api/items?sort=id'])(
    'takes one round trip: %s',
    async path => {
      const { tag } = await twice(path)
      expect(await fewestTurns(path, {})).toBe(1)
      expect(await fewestTurns(path, { 'If-None-Match': tag })).toBe(1)
    },
  )

  test('can be that of an operation of a batch', async () => {
    const { tag } = await twice('/api/items?sort=id')
    const body = JSON.stringify({
      operations: [{ method: 'GET', path: '/api/items?sort=id', headers: { 'If-None-Match': tag } }],
    })
    const headers = { 'Content-Type': 'application/json' }
    const sent = relay.answeredBytes
    const batch = await gateway.get('/api/_batch', { method: 'POST', headers, body })
    expect(batch.json.results.map(({ status, headers }: Operation) => [status, headers.ETag])).toEqual([[304, tag]])
    expect(relay.answeredBytes - sent).toBeLessThan(NOTE_BYTES / 10)
  })

  test('is answered by the cache, if it has the rows, without asking PostgreSQL', async () => {
    for (const path of ['/api/items/1?select=id,name', '/api/items?sort=id&select=name&limit=2']) {
      const { tag } = await twice(path, {}, cached)
      const { reply } = await measure(path, { 'If-None-Match': tag }, cached)
      expect([reply.status, reply.headers.get('x-cache')]).toEqual([304, 'HIT'])
      expect(await fewestTurns(path, { 'If-None-Match': tag }, cached)).toBe(0)
      expect(tag).toBe((await twice(path)).tag)
    }
  })
})

interface Operation {
  readonly status: number
  readonly headers: Headers
}

test('a page of more than 16 MiB is not compared by PostgreSQL', async () => {
  await sql("update items set note = repeat('x', 17 * 1024 * 1024) where id = 1")
  const { again } = await twice('/api/items?id=1')
  expect([again.reply.status, again.bytes > COMPARED_BYTES_MAX]).toEqual([304, true])
})

describe('a response that the client does not have', () => {
  test.each(PATHS)('is 200 with the new rows: %s', async (_, path, headers) => {
    const { tag } = await twice(path, headers)
    await sql("update items set note = 'new'; update lines set note = 'new'; update parts set note = 'new'")
    await sql("update granted set note = 'new'")
    const { reply } = await measure(path, { ...headers, 'If-None-Match': tag })
    expect([reply.status, reply.text.includes('new')]).toEqual([200, true])
    expect(tagOf(reply)).not.toBe(tag)
    expect(tagOf(reply)).toBe((await twice(path, headers)).tag)
  })

  test('has another cursor, total, limit or form', async () => {
    const byName = '/api/items?sort=at&select=name&limit=2'
    const { tag } = await twice(byName)
    await sql("update items set at = at - (3 - id) * interval '1 day' where id < 3")
    const moved = await measure(byName, { 'If-None-Match': tag })
    expect([moved.reply.status, moved.reply.json.data]).toEqual([200, [{ name: 'item 1' }, { name: 'item 2' }]])

    const total = { Prefer: 'count=exact' }
    const counted = await twice('/api/items?sort=id', total)
    await sql('delete from items where id = 4')
    const recounted = await measure('/api/items?sort=id', { ...total, 'If-None-Match': counted.tag })
    expect([recounted.reply.status, recounted.reply.json.total, recounted.reply.json.data.length]).toEqual([200, 3, 2])
    const uncounted = await measure('/api/items?sort=id', { 'If-None-Match': counted.tag })
    expect([uncounted.reply.status, uncounted.reply.json.total]).toEqual([200, undefined])

    const all = await twice('/api/items?sort=id&limit=3')
    for (const path of ['/api/items?sort=id&limit=4', '/api/items?sort=id&limit=3&offset=0&select=*,id']) {
      expect((await measure(path, { 'If-None-Match': all.tag })).reply.status, path).toBe(200)
    }
    const { reply } = await measure('/api/items?sort=id&limit=3', { Accept: 'text/csv', 'If-None-Match': all.tag })
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8'])
  })

  test('does not depend on rows of other pages', async () => {
    const { tag } = await twice('/api/items?sort=id')
    await sql("update items set note = 'new' where id > 2")
    expect((await measure('/api/items?sort=id', { 'If-None-Match': tag })).reply.status).toBe(304)
    await sql('delete from items where id > 2')
    const last = await measure('/api/items?sort=id', { 'If-None-Match': tag })
    expect([last.reply.status, last.reply.json.next_cursor]).toEqual([200, null])
  })

  test('is empty, or gone', async () => {
    const { tag } = await twice('/api/items?id=7')
    expect((await measure('/api/items?id=7', { 'If-None-Match': tag })).reply.status).toBe(304)
    const { tag: strong } = await twice('/api/items/1')
    const { tag: weak } = await twice('/api/items/1?expand=nested:lines')
    const children = await twice('/api/items/1/lines')
    await sql('delete from lines; delete from items')
    for (const [path, known] of [
      ['/api/items/1', strong],
      ['/api/items/1?expand=nested:lines', weak],
      ['/api/items/1/lines', children.tag],
    ] as const) {
      expect((await measure(path, { 'If-None-Match': known })).reply.status, path).toBe(404)
    }
    expect((await measure('/api/items', { 'If-None-Match': children.tag })).reply.json.data).toEqual([])
  })

  test('is not one whose tag only looks similar', async () => {
    const { tag } = await twice('/api/items/1')
    for (const condition of ['"1.abcdefgh1.abcdefgh"', tag.replace(/"$/, 'x"'), `W/"${'a'.repeat(22)}"`, '"%s"']) {
      const { reply } = await measure('/api/items/1', { 'If-None-Match': condition })
      expect([reply.status, reply.json.data.id], condition).toEqual([200, 1])
    }
  })
})
