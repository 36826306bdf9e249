/**
 * The client function of the guide (src/client/follow.js) in case of errors. test/features/board.pg.test.ts
 * covers restarts and Chromium.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { shopDatabase } from '../features/shop.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { testGateway } from '../support/gateway.ts'
import { ROOT } from '../tidy/tree.ts'

const PATIENT = { timeout: 30_000 }

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)
const sockets: WebSocket[] = []
const told: string[] = []
const states: string[] = []
const errors: { message: string; code?: string | null }[] = []
let rows: ReadonlyMap<string, { id: number; name: string }> = new Map()
let stop = () => {}

beforeEach(() => {
  for (const list of [sockets, told, states, errors]) list.length = 0
  rows = new Map()
})

afterEach(() => {
  stop()
  vi.unstubAllGlobals()
})

class Watched extends WebSocket {
  constructor(url: string) {
    super(url)
    sockets.push(this)
    this.on('message', data => told.push(JSON.parse(String(data)).type))
  }
}

/** The WebSocket class is passed in, as on versions of Node without one. */
async function begin(options: object = {}): Promise<void> {
  vi.stubGlobal('WebSocket', undefined)
  const { follow } = await import(/* @vite-ignore */ pathToFileURL(`${ROOT}src/client/follow.js`).href)
  stop = follow({
    ...{ base: `${gateway.url}/`, table: 'labels', select: 'id,name', WebSocket: Watched },
    token: () => gateway.token({ tenantId: 't1' }),
    onChange(now: typeof rows) {
      rows = now
    },
    onState: (state: string) => states.push(state),
    onError: (error: (typeof errors)[number]) => errors.push(error),
    ...options,
  })
}

/** Resolves when it shows the result of a SELECT. */
const isRight = () =>
  vi.waitFor(async () => {
    const { json } = await gateway.get('/api/labels?select=id,name&sort=id&limit=10000')
    expect([...rows.values()].sort((a, b) => a.id - b.id)).toEqual(json.data)
    expect(json.data.length).toBeGreaterThan(0)
  }, PATIENT)

let ids = 50_000
/** A write of more rows than a notification can contain, so every subscriber gets a resync. */
async function writeMany(): Promise<void> {
  const many = Array.from({ length: 501 }, () => ({ id: ++ids, tenant_id: 't1', name: 'many' }))
  const { status } = await gateway.get('/api/labels', {
    ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(many) },
  })
  expect(status).toBe(201)
}

/** Calls `answer` instead of reading; undefined lets the read through. */
function onRead(answer: (count: number) => Promise<Response | undefined>) {
  const { fetch } = globalThis
  const reads = { count: 0 }
  vi.stubGlobal('fetch', async (...given: Parameters<typeof fetch>) => {
    // The client's reads; the test itself sends query texts.
    if (!(given[0] instanceof URL)) return fetch(...given)
    reads.count += 1
    return (await answer(reads.count)) ?? fetch(...given)
  })
  return reads
}

test('overlapping resyncs cause one more read, and no error', { timeout: 60_000 }, async () => {
  const resyncs = () => told.filter(type => type === 'resync').length
  const reads = onRead(async count => {
    // The first read is not answered until two resyncs have arrived.
    if (count === 1) {
      await writeMany()
      await vi.waitFor(() => expect(resyncs()).toBe(1), PATIENT)
      await writeMany()
      await vi.waitFor(() => expect(resyncs()).toBe(2), PATIENT)
    }
    return undefined
  })
  await begin()
  await isRight()
  expect(reads.count).toBeLessThanOrEqual(4)
  expect([errors, sockets.length]).toEqual([[], 1])
  await gateway.get(`/api/labels/${ids}`, { method: 'DELETE' })
  await isRight()
})

test('a failed read is reported and repeated, and the rows on display remain', { timeout: 60_000 }, async () => {
  await begin()
  await isRight()
  const shown = rows.size
  const answers = [
    () => Response.json({ error: { code: 'UNAVAILABLE', message: 'the database is away' } }, { status: 503 }),
    () => new Response('<html>Bad gateway</html>', { status: 502 }),
    () => {
      throw new TypeError('fetch failed')
    },
  ]
  const reads = onRead(async count => answers[count - 1]?.())
  await writeMany()
  await vi.waitFor(() => expect(reads.count).toBeGreaterThanOrEqual(4), PATIENT)
  expect(rows.size).toBeGreaterThanOrEqual(shown)
  await isRight()
  expect(errors.map(({ code, message }) => [code, message])).toEqual([
    ['UNAVAILABLE', 'the database is away'],
    [null, 'The gateway answered 502.'],
    [undefined, 'fetch failed'],
  ])
  expect(states.at(-1)).toBe('live')
})

test('a rejection by the allow-list is reported with its code, and the client can be stopped', {
  timeout: 60_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-follow-'))
  const file = join(folder, 'queries.txt')
  await writeFile(file, 'GET /api/labels?select=id\n')
  const strict = await testGateway(database.url, { toml: `allow_list_path = ${JSON.stringify(file)}` })
  try {
    await begin({ base: `${strict.url}/`, token: () => strict.token({ tenantId: 't1' }) })
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), PATIENT)
    expect(errors[0]).toMatchObject({
      name: 'FollowError',
      code: 'FORBIDDEN',
      message: 'this query is not on the allow-list (allow_list_path)',
    })
    stop()
    const count = errors.length
    expect(states.at(-1)).toBe('waiting')
    // No timer is left that could try again.
    await vi.waitFor(() => expect(sockets.every(socket => socket.readyState === WebSocket.CLOSED)).toBe(true), PATIENT)
    expect(errors).toHaveLength(count)
  } finally {
    await strict.close()
    await rm(folder, { recursive: true })
  }
})

test('an error of the application is reported and has no other effect', { timeout: 60_000 }, async () => {
  await begin({
    onChange(now: typeof rows) {
      rows = now
      throw new Error('cannot draw')
    },
  })
  await isRight()
  expect(errors.map(({ message }) => message)).toContain('cannot draw')
  expect(states.at(-1)).toBe('live')
})

test('a token that a read rejects is requested again', { timeout: 60_000 }, async () => {
  const asked: (string | null)[] = []
  onRead(async count =>
    count === 1 ? Response.json({ error: { code: 'UNAUTHORIZED', message: 'expired' } }, { status: 401 }) : undefined,
  )
  await begin({
    token(why: string | null) {
      asked.push(why)
      return gateway.token({ tenantId: 't1' })
    },
  })
  await isRight()
  expect(asked).toEqual([null, 'refused'])
})
