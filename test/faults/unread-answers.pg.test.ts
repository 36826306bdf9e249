/**
 * Clients that send requests and do not read the responses: unsent responses stay within the budgets of a
 * connection, a tenant and the process.
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { bufferBytes } from '../support/buffer-bytes.ts'
import { databaseFixture } from '../support/fixtures.ts'
import { type AskOptions, type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { connectTo } from '../support/raw-http.ts'

const MB = 1_000_000

/** More than fits into the buffers of both kernels. */
const LARGE = 8 * MB

const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes values (8, repeat('x', ${LARGE})), (1, 'small');
  grant select, insert on notes to app
`)

const sockets: Socket[] = []
let gateway: TestGateway
const events: Event[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  events.length = 0
  await gateway.close()
})

async function start(toml: string): Promise<void> {
  gateway = await testGateway(database.url, { toml, emit: event => void events.push(event) })
}

/** A connection that sends all `paths` at once, and reads nothing until the caller iterates over it. */
async function ask(tenantId: string, ...paths: readonly string[]): Promise<Socket> {
  const { host } = new URL(gateway.url)
  const socket = connectTo(gateway.url)
  sockets.push(socket)
  const headers = `Host: ${host}\r\nAuthorization: Bearer ${await gateway.token({ tenantId })}\r\n`
  socket.write(paths.map(path => `GET ${path} HTTP/1.1\r\n${headers}\r\n`).join(''))
  return socket
}

/** The response has its first bytes, and the rest waits to be sent. */
async function unread(tenantId: string): Promise<Socket> {
  const socket = await ask(tenantId, '/api/notes?id=8')
  await once(socket, 'readable')
  return socket
}

const POLL = { timeout: 10_000 }

const answeredLists = () => events.filter(event => event.kind === 'request' && event.route === '/api/{table}').length

const small = (tenantId: string, options: AskOptions = {}): Promise<Reply> =>
  gateway.get('/api/notes/1', { as: { tenantId }, ...options })

async function metric(line: RegExp): Promise<number> {
  const { text } = await gateway.get('/metrics')
  return Number(line.exec(text)?.[1] ?? Number.NaN)
}

describe('pipelined requests of one connection', () => {
  test('wait while earlier responses are not read, and are all answered once they are', async () => {
    await start('')
    const before = bufferBytes()
    const socket = await ask('a', ...Array.from({ length: 20 }, () => '/api/notes?id=8'))
    while (answeredLists() === 0) await once(socket, 'readable')
    // Any other request would have started by now.
    for (let i = 0; i < 50; i++) expect((await small('b')).status).toBe(200)
    expect(answeredLists()).toBeLessThanOrEqual(4)
    await expect.poll(() => bufferBytes() - before, POLL).toBeLessThan(5 * LARGE)
    let bytes = 0
    let heads = 0
    for await (const chunk of socket) {
      bytes += chunk.length
      heads += chunk.toString('latin1').split('HTTP/1.1 200 OK').length - 1
      if (bytes > 20 * LARGE && chunk.at(-1) === '}'.charCodeAt(0) && answeredLists() === 20) break
    }
    expect(heads).toBe(20)
  })

  test('wait according to connection_max_unsent_bytes', async () => {
    await start(`connection_max_unsent_bytes = ${16 * LARGE}`)
    await ask('a', ...Array.from({ length: 8 }, () => '/api/notes?id=8'))
    while (answeredLists() < 8) expect((await small('b')).status).toBe(200)
  })
})

describe('limits on the work in progress of one connection', () => {
  test.each([
    ['connection_max_concurrent = 1', 19],
    ['connection_max_concurrent = 0', 0],
  ])('%s makes %i of 20 pipelined requests wait', async (toml, waits) => {
    await start(toml)
    const socket = await ask('a', ...Array.from({ length: 20 }, () => '/api/notes/1'))
    let heads = 0
    for await (const chunk of socket) {
      heads += chunk.toString('latin1').split('HTTP/1.1 200 OK').length - 1
      if (heads === 20) break
    }
    expect(await metric(/^svc_http_pipelined_waits_total (\d+)$/m)).toBe(waits)
  })

  test.each([
    ['connection_max_pipelined = 8', 8],
    ['connection_max_pipelined = 16', 16],
  ])('with %s, nothing is read after %i requests and one more', async (toml, most) => {
    await start(`${toml}\nconnection_max_concurrent = 1`)
    const holder = new pg.Client({ connectionString: database.adminUrl })
    await holder.connect()
    try {
      await holder.query('begin; lock table notes')
      const socket = await ask('a')
      const { host } = new URL(gateway.url)
      const head = `Host: ${host}\r\nAuthorization: Bearer ${await gateway.token({ tenantId: 'a' })}\r\n`
      for (let n = 0; n < 30; n++) {
        socket.write(`GET /api/notes/1 HTTP/1.1\r\n${head}\r\n`)
        // Bytes that have been read cannot be unread.
        expect((await gateway.get('/health')).status).toBe(200)
      }
      const waits = await metric(/^svc_http_pipelined_waits_total (\d+)$/m)
      expect(waits).toBeGreaterThanOrEqual(most)
      expect(waits).toBeLessThanOrEqual(most + 4)
    } finally {
      await holder.end()
    }
  })

  test.each([
    ['large_body_bytes = 1000', 1],
    ['large_body_bytes = 0', 0],
    ['', 0],
  ])('with "%s", %i of two bodies of 10 and 2 000 bytes counts as large', async (toml, large) => {
    await start(toml)
    const send = (id: number, bytes: number) =>
      gateway.get('/api/notes', {
        ...{ as: { tenantId: 'a' }, method: 'POST', headers: { 'Content-Type': 'application/json' } },
        body: JSON.stringify({ id, body: 'x'.repeat(bytes) }),
      })
    try {
      expect([(await send(100, 10)).status, (await send(101, 2_000)).status]).toEqual([201, 201])
      expect(await metric(/^svc_http_large_bodies_total (\d+)$/m)).toBe(large)
    } finally {
      await execute(database.adminUrl, 'delete from notes where id >= 100')
    }
  })
})

describe('the permits of a tenant', () => {
  test('are held until the response has been handed to the kernel', async () => {
    await start('tenant_max_concurrent = 2')
    const [first] = [await unread('a'), await unread('a')]
    const refused = await small('a')
    expect([refused.status, refused.json.error.code]).toEqual([429, 'CONCURRENCY_LIMIT'])
    expect((await small('b')).status).toBe(200)
    // After the response has been read, its permit is returned.
    let bytes = 0
    for await (const chunk of first ?? []) {
      bytes += chunk.length
      if (bytes > LARGE) break
    }
    while ((await small('a')).status !== 200);
    // A closed connection also returns its permit.
    for (const socket of sockets) socket.destroy()
    const both = () => Promise.all([small('a'), small('a')])
    while ((await both()).some(({ status }) => status !== 200));
  })
})

describe('the budget of a tenant', () => {
  test("rejects the tenant's next requests, and only those", async () => {
    await start(`tenant_max_unsent_bytes = ${1.5 * LARGE}`)
    await unread('a')
    expect((await small('a')).status).toBe(200)
    await unread('a')
    const refused = await small('a')
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.json.error).toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('tenant_max_unsent_bytes'),
      request_id: refused.headers.get('x-request-id'),
    })
    expect((await small('b')).status).toBe(200)
    expect(await metric(/^svc_http_unsent_bytes (\d+)$/m)).toBeGreaterThan(LARGE)
    expect(await metric(/^svc_http_limit_refusals_total\{limit="tenant_max_unsent_bytes"\} (\d+)$/m)).toBe(1)
    for (const socket of sockets) socket.destroy()
    while ((await small('a')).status !== 200);
    expect(await metric(/^svc_http_unsent_bytes (\d+)$/m)).toBe(0)
  })

  test('applies to a user without a tenant', async () => {
    await start(`tenant_max_unsent_bytes = ${LARGE}\nrequire_auth = false`)
    const socket = await ask('', '/api/notes?id=8')
    await once(socket, 'readable')
    expect((await small('', { as: {} })).status).toBe(503)
    expect((await small('', { as: { userId: 'ann' } })).status).toBe(200)
  })
})

describe('the budget of the process', () => {
  test('rejects changes and large responses, and still sends small responses', async () => {
    await start(`max_unsent_bytes = ${2 * LARGE}`)
    await unread('a')
    expect((await gateway.get('/api/notes?id=8', { as: { tenantId: 'c' } })).status).toBe(200)
    await unread('b')
    const large = await gateway.get('/api/notes?id=8', { as: { tenantId: 'c' } })
    const change = await gateway.get('/api/notes', {
      as: { tenantId: 'c' },
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"id": 2, "body": "two"}',
    })
    for (const refused of [large, change]) {
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
      expect(refused.json.error).toMatchObject({
        code: 'UNAVAILABLE',
        message: expect.stringContaining('max_unsent_bytes'),
      })
    }
    expect((await small('c')).status).toBe(200)
    expect((await gateway.get('/api/notes/2')).status).toBe(404)
    expect(await metric(/^svc_http_limit_refusals_total\{limit="max_unsent_bytes"\} (\d+)$/m)).toBe(2)
    for (const socket of sockets) socket.destroy()
    while ((await gateway.get('/api/notes?id=8', { as: { tenantId: 'c' } })).status !== 200);
  })
})
