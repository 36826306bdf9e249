/**
 * Unauthenticated clients: their requests cost the gateway almost nothing, and they cannot use up the
 * connections of others.
 */
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { bufferBytes } from '../support/buffer-bytes.ts'
import { databaseFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { openRaw, type RawConnection } from '../support/raw-http.ts'
import { openSocket } from '../support/socket.ts'

const MB = 1024 * 1024
const SPACES = Buffer.alloc(2 * MB, ' ')
const ORIGIN = 'https://app.example'

const database = databaseFixture(`
  create table notes (id int primary key, body text not null);
  insert into notes values (1, 'small');
  grant select, insert on notes to app
`)

let gateway: TestGateway
let opened: RawConnection[] = []
let events: Event[] = []
afterEach(async () => {
  for (const { socket } of opened) socket.destroy()
  opened = []
  events = []
  await gateway.close()
})

async function start(toml: string): Promise<void> {
  gateway = await testGateway(database.url, { toml, emit: event => void events.push(event) })
}

async function open(): Promise<RawConnection> {
  const connection = await openRaw(gateway.url)
  opened.push(connection)
  return connection
}

/** Opens a connection that announces a body and sends `bytes` of it. */
async function sending(
  bytes: number,
  headers: readonly string[],
  path = '/api/notes',
  type = 'application/json',
): Promise<RawConnection> {
  const connection = await open()
  const head = [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Type: ${type}`, ...headers]
  connection.socket.write(`${head.join('\r\n')}\r\nContent-Length: ${2 * MB}\r\n\r\n`)
  if (bytes > 0) await new Promise(resolve => connection.socket.write(SPACES.subarray(0, bytes), resolve))
  return connection
}

const bearer = async (tenantId: string) => `Authorization: Bearer ${await gateway.token({ tenantId })}`

async function metric(name: string): Promise<number> {
  const { text } = await gateway.get('/metrics')
  const line = text.split('\n').find(found => found.startsWith(`${name} `))
  return Number(line?.slice(name.length))
}

function codeOf(received: string): string {
  return JSON.parse(received.slice(received.indexOf('{'))).error.code
}

const requests = () => events.filter(event => event.kind === 'request')

describe('a request whose token is missing or invalid', () => {
  test.each([
    ['none', []],
    ['malformed', ['Authorization: Bearer x']],
    ['another scheme', ['Authorization: Basic x']],
  ])('is answered with 401 before the body has come: %s', async (_, headers) => {
    await start(`cors_allowed_origins = ["${ORIGIN}"]`)
    const connection = await sending(0, [...headers, `Origin: ${ORIGIN}`, 'X-Request-Id: early'])
    await connection.until(/^HTTP\/1\.1 401 [\s\S]*\}$/)
    expect(codeOf(connection.received())).toBe('UNAUTHORIZED')
    expect(connection.received()).toMatch(/\r\nX-Request-Id: early\r\n/)
    expect(connection.received()).toMatch(/\r\nWWW-Authenticate: Bearer/)
    expect(connection.received()).toMatch(/\r\naccess-control-allow-origin: https:\/\/app\.example\r\n/i)
    expect(requests()).toMatchObject([{ status: 401, code: 'UNAUTHORIZED', requestId: 'early' }])
  })

  test.each([
    ['/api/_query', 'application/json'],
    ['/api/_batch', 'application/json'],
    ['/api/_inspect', 'application/json'],
    ['/api/notes?on_conflict=id', 'application/json'],
    ['/api/notes', 'text/csv'],
    ['/api/notes', 'application/x-ndjson'],
    ['/api/rpc/f', 'application/json'],
    ['/rest/v1/notes', 'application/json'],
    ['/rest/v1/notes', 'text/csv'],
    ['/rest/v1/rpc/f', 'application/json'],
    ['/realtime/v1/api/broadcast', 'application/json'],
  ])('is answered with 401 before the body has come: POST %s with %s', async (path, type) => {
    await start('[postgrest]\nenabled = true\nrealtime = true\nanon_role = "app"')
    const connection = await sending(0, ['Authorization: Bearer a.b.c'], path, type)
    await connection.until(/^HTTP\/1\.1 401 [\s\S]*\}$/)
  })

  test('costs no memory, whatever it sends and to whatever path', async () => {
    await start('')
    const before = bufferBytes()
    const paths = ['/api/notes', '/api/rpc/f', '/health', '/nowhere']
    await Promise.all(Array.from({ length: 100 }, (_, n) => sending(2 * MB - 1, [], paths[n % paths.length])))
    // All bytes have been read: the last client is answered, and its bytes arrived last.
    expect((await gateway.get('/api/notes/1')).status).toBe(200)
    expect(bufferBytes() - before).toBeLessThan(50 * MB)
    expect(await metric('svc_http_inflight_body_bytes')).toBe(0)
  })

  test('keeps the connection: the body is discarded, and the next request is answered', async () => {
    await start('')
    const connection = await sending(0, [])
    await connection.until(/^HTTP\/1\.1 401 /)
    connection.socket.write(SPACES)
    connection.send('/health')
    await connection.until(/HTTP\/1\.1 200 /)
  })

  test('gets no 100 Continue, whereas a valid token does (RFC 9110, 10.1.1)', async () => {
    await start('')
    const refused = await sending(0, ['Expect: 100-continue'])
    await refused.until(/^HTTP\/1\.1 401 /)
    const accepted = await sending(0, ['Expect: 100-continue', await bearer('a')])
    await accepted.until(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
    const body = '{"id": 2, "body": "two"}'
    accepted.socket.write(body.padEnd(2 * MB))
    await accepted.until(/HTTP\/1\.1 201 /)
  })
})

describe('request bodies in transit', () => {
  test('from one address are limited, and answered with 503 above the limit', async () => {
    await start(`address_max_inflight_body_bytes = ${4 * MB}\ncors_allowed_origins = ["${ORIGIN}"]`)
    const token = await bearer('a')
    const all = await Promise.all(Array.from({ length: 8 }, () => sending(2 * MB - 1, [token, `Origin: ${ORIGIN}`])))
    const refusedAll = () => all.filter(({ received }) => received() !== '')
    while (refusedAll().length === 0) await Promise.race(all.map(({ socket }) => once(socket, 'data')))
    const [refused] = refusedAll()
    await refused?.until(/\}$/)
    expect(refused?.received()).toMatch(/^HTTP\/1\.1 503 /)
    expect(refused?.received()).toMatch(/\r\nRetry-After: 1\r\n/)
    expect(refused?.received()).toMatch(/\r\naccess-control-allow-origin: /i)
    expect(refused?.received()).toContain('address_max_inflight_body_bytes')
    expect(codeOf(refused?.received() ?? '')).toBe('UNAVAILABLE')
    expect(await metric('svc_http_inflight_body_bytes')).toBeLessThan(5 * MB)
    expect(await metric('svc_http_limit_refusals_total{limit="address_max_inflight_body_bytes"}')).toBeGreaterThan(0)
    // A small body arrives in one piece and does not wait.
    const small = await gateway.get('/api/notes', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"id": 3, "body": "three"}',
    })
    expect(small.status).toBe(201)
    for (const { socket } of opened) socket.destroy()
    while ((await metric('svc_http_inflight_body_bytes')) > 0);
  })

  test('are counted by client address behind a trusted proxy, and in total', async () => {
    await start(
      `address_max_inflight_body_bytes = ${MB}\nmax_inflight_body_bytes = ${3 * MB}\ntrusted_proxies = ["127.0.0.0/8"]`,
    )
    const token = await bearer('a')
    const from = (address: string) => sending(2 * MB - 1, [token, `X-Forwarded-For: ${address}`])
    const first = await from('192.0.2.1')
    await first.until(/^HTTP\/1\.1 503 [\s\S]*address_max_inflight_body_bytes/)
    const half = (n: number) => sending(MB / 2, [token, `X-Forwarded-For: 198.51.100.${n}`])
    const others = await Promise.all([1, 2, 3, 4, 5, 6].map(half))
    while ((await metric('svc_http_inflight_body_bytes')) < 3 * MB);
    const last = await half(7)
    await last.until(/^HTTP\/1\.1 503 [\s\S]*max_inflight_body_bytes \(3145728\)/)
    expect(others.map(({ received }) => received())).toEqual(['', '', '', '', '', ''])
  })

  test('are counted until the response is sent', async () => {
    await start('')
    const connection = await sending(2 * MB - 1, [await bearer('a')])
    while ((await metric('svc_http_inflight_body_bytes')) < 2 * MB - 1);
    connection.socket.write(' ')
    await connection.until(/^HTTP\/1\.1 400 /)
    while ((await metric('svc_http_inflight_body_bytes')) > 0);
  })
})

describe('connections', () => {
  test('from one address are limited, including idle ones, and one more is answered with 503 and closed', async () => {
    await start('address_max_client_connections = 3')
    const [first] = [await open(), await open(), await open()]
    const refused = await open()
    await refused.closed
    expect(refused.received()).toMatch(/^HTTP\/1\.1 503 /)
    expect(refused.received()).toMatch(/\r\nX-Request-Id: \S+\r\n[\s\S]*\r\nRetry-After: 1\r\n[\s\S]*Connection: close/)
    expect(refused.received()).toContain('address_max_client_connections (3)')
    expect(codeOf(refused.received())).toBe('UNAVAILABLE')
    expect(requests()).toMatchObject([{ status: 503, code: 'UNAVAILABLE' }])
    first?.send('/metrics')
    await first?.until(/\nsvc_http_connections 3\n[\s\S]*limit="address_max_client_connections"\} 1\n/)
    opened[1]?.socket.destroy()
    for (;;) {
      const next = await open()
      next.send('/health')
      if ((await Promise.race([next.until(/^HTTP\/1\.1 (\d+)/), next.closed]))?.[1] === '200') break
    }
  })

  test('include WebSockets', async () => {
    await start('address_max_client_connections = 2')
    const token = await gateway.token({ tenantId: 'a' })
    const sockets = [await openSocket(gateway.url, { token }), await openSocket(gateway.url, { token })]
    await expect(openSocket(gateway.url, { token })).rejects.toThrow('503')
    await sockets[0]?.close()
    await sockets[1]?.close()
  })

  test('are limited in total, including those through a trusted proxy, which have no share', async () => {
    await start('address_max_client_connections = 1\nmax_client_connections = 3\ntrusted_proxies = ["127.0.0.1"]')
    const [first] = [await open(), await open(), await open()]
    const refused = await open()
    await refused.closed
    expect(refused.received()).toContain('too many connections: the gateway has reached max_client_connections (3)')
    first?.send('/health')
    await first?.until(/^HTTP\/1\.1 200 /)
  })

  test('that are rejected after they have sent a request still receive the reason', async () => {
    await start('address_max_client_connections = 1')
    await open()
    for (let i = 0; i < 20; i++) {
      const { socket, received, closed } = await openRaw(gateway.url)
      socket.write(`POST /api/notes HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n${' '.repeat(100_000)}`)
      await closed
      expect(received()).toMatch(/^HTTP\/1\.1 503 /)
    }
  })
})

describe('headers that must be unique', () => {
  test.each([
    ['Host', ['Host: x', 'Host: x']],
    ['Host', ['Host: x', 'hOsT: y']],
    ['Authorization', ['Host: x', 'Authorization: Bearer a', 'authorization: Bearer a']],
  ])('sent twice are answered with 400: %s', async (name, headers) => {
    await start('')
    const connection = await open()
    connection.socket.write(`GET /health HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
    await connection.until(/^HTTP\/1\.1 400 [\s\S]*\}$/)
    expect(codeOf(connection.received())).toBe('PARSE_ERROR')
    expect(connection.received()).toContain(`the header ${name} is given more than once`)
    expect(connection.received()).toMatch(/\r\nX-Request-Id: /)
  })

  test('are also checked for HTTP/1.0, for a WebSocket, and with a body', async () => {
    await start('')
    const heads = [
      ['GET /health HTTP/1.0', 'Host: x', 'Host: x'],
      ['GET /ws HTTP/1.1', 'Host: x', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket'],
      ['POST /api/notes HTTP/1.1', 'Host: x', await bearer('a'), await bearer('b'), 'Content-Length: 100'],
    ]
    for (const head of heads) {
      const connection = await open()
      connection.socket.write(`${head.join('\r\n')}\r\n\r\n`)
      await connection.until(/^HTTP\/1\.1 400 [\s\S]*given more than once/)
    }
  })
})
