/**
 * docs/reference/realtime.md#connecting and docs/reference/realtime.md#close-codes: how a connection to `/ws`
 * is opened and authenticated, how long it lasts, and how it ends.
 */
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { shopDatabase } from '../features/shop.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { SECRET, testGateway } from '../support/gateway.ts'
import { openRaw } from '../support/raw-http.ts'
import { openSocket } from '../support/socket.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database, {
  toml: 'cors_allowed_origins = ["https://shop.example"]\nws_query_token = true',
})

const SUBSCRIBE = { type: 'subscribe', channel: 'svc_table_labels', id: 's' }

describe('the token of a connection', () => {
  test('can be in a header, the subprotocol, the query string, or the first message', async () => {
    const token = await gateway.token({ tenantId: 't1' })
    const ways = [
      { token },
      { protocols: ['svc', `svc.bearer.${token}`] },
      { protocols: [`svc.bearer.${token}`] },
      { path: `/ws?access_token=${token}` },
    ]
    for (const way of ways) {
      const socket = await openSocket(gateway.url, way)
      expect(socket.socket.protocol).toBe(way.protocols?.[0] ?? '')
      socket.say(SUBSCRIBE)
      expect(await socket.next()).toMatchObject({ type: 'subscribed' })
      await socket.close()
    }
    const socket = await openSocket(gateway.url)
    socket.say({ type: 'auth', token, id: 'a' })
    expect(await socket.next()).toMatchObject({
      type: 'authenticated',
      id: 'a',
      expires_at: expect.stringMatching(/Z$/),
    })
    socket.say(SUBSCRIBE)
    expect(await socket.next()).toMatchObject({ type: 'subscribed' })
    await socket.close()
  })

  test('is rejected before the upgrade if it is invalid', async () => {
    await expect(openSocket(gateway.url, { token: 'nonsense' })).rejects.toThrow('401')
    await expect(openSocket(gateway.url, { protocols: ['svc.bearer.nonsense'] })).rejects.toThrow('401')
    const expired = await gateway.token({ tenantId: 't1', expiresInSeconds: -600 })
    await expect(openSocket(gateway.url, { token: expired })).rejects.toThrow('401')
  })

  test('that arrives in an invalid first message, or is invalid, ends the connection', async () => {
    for (const first of [SUBSCRIBE, { type: 'auth', token: 'nonsense', id: 's' }]) {
      const socket = await openSocket(gateway.url)
      socket.say(first)
      expect(await socket.next()).toMatchObject({ type: 'error', id: 's', code: 'UNAUTHORIZED' })
      expect(await socket.closed).toEqual([4401, 'unauthorized'])
    }
  })

  test('must arrive within five seconds', async () => {
    const socket = await openSocket(gateway.url)
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' })
    expect((await socket.closed)[0]).toBe(4401)
  })

  test('causes a warning before it expires, and can be renewed by another token of the same caller only', async () => {
    const soon = Math.ceil(Date.now() / 1_000) + 2
    const token = await mintToken(SECRET, { tenantId: 't1', expiresInSeconds: 2 }, Date.now())
    const [kept, lost] = [await openSocket(gateway.url, { token }), await openSocket(gateway.url, { token })]
    for (const socket of [kept, lost]) {
      expect(await socket.next()).toMatchObject({
        type: 'error',
        code: 'UNAUTHORIZED',
        message: expect.stringContaining('expires soon'),
      })
      socket.say(SUBSCRIBE)
      await socket.nextOf('subscribed')
    }
    lost.say({ type: 'auth', token: await gateway.token({ tenantId: 't2' }), id: 'other' })
    expect(await lost.next()).toMatchObject({ type: 'error', id: 'other', code: 'FORBIDDEN' })
    kept.say({ type: 'auth', token: await gateway.token({ tenantId: 't1' }) })
    await kept.nextOf('authenticated')
    expect((await lost.closed)[0]).toBe(4401)
    expect(Date.now() / 1_000).toBeGreaterThan(soon - 2)
    await gateway.get('/api/labels', {
      ...{ method: 'POST', headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({ id: 5_000, tenant_id: 't1', name: 'kept' }),
    })
    expect(await kept.next()).toMatchObject({ type: 'notification', key: { id: 5_000 } })
    await kept.close()
  })

  test('is not accepted from a page of another origin', async () => {
    const token = await gateway.token({ tenantId: 't1' })
    await expect(openSocket(gateway.url, { token, headers: { Origin: 'https://evil.example' } })).rejects.toThrow('403')
    const socket = await openSocket(gateway.url, { token, headers: { Origin: 'https://shop.example' } })
    await socket.close()
  })

  test('is optional without authentication, and can be sent later', async () => {
    const open = await testGateway(database.url, { toml: 'require_auth = false' })
    try {
      const socket = await openSocket(open.url)
      socket.say({ type: 'ping', id: 'p' })
      expect(await socket.next()).toEqual({ type: 'pong', id: 'p' })
      socket.say({ type: 'auth', token: await open.token({ tenantId: 't1' }) })
      await socket.nextOf('authenticated')
      await expect(openSocket(open.url, { path: `/ws?access_token=${await open.token({})}x` })).resolves.toBeDefined()
    } finally {
      await open.close()
    }
  })
})

describe('an invalid message', () => {
  test.each([
    [
      'larger than 64 KiB',
      (send: (data: Buffer, text?: boolean) => void) => send(Buffer.alloc(64 * 1024 + 1, ' '), true),
      1009,
    ],
    ['no UTF-8', (send: (data: Buffer, text?: boolean) => void) => send(Buffer.from([0x7b, 0xff, 0x7d]), true), 1007],
  ])('is answered with an error: %s', async (_, act, code) => {
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
    act((data, text = false) => socket.socket.send(data, { binary: !text }))
    expect((await socket.closed)[0]).toBe(code)
  })

  test('can be a binary frame, whose id is in the error', async () => {
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
    socket.socket.send(JSON.stringify({ type: 'ping', id: 'b' }), { binary: true })
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'b', code: 'PARSE_ERROR' })
    await socket.close()
  })

  test('is one above 64 KiB; exactly 64 KiB are read', async () => {
    const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
    const message = JSON.stringify({ type: 'ping', id: 'x' })
    socket.socket.send(message + ' '.repeat(64 * 1024 - message.length))
    expect(await socket.next()).toEqual({ type: 'pong', id: 'x' })
    await socket.close()
  })
})

describe('upgrades', () => {
  test('to another path are answered with 404, and unknown subprotocols are ignored', async () => {
    await expect(openSocket(gateway.url, { path: '/other' })).rejects.toThrow('404')
    const { hostname, port } = new URL(gateway.url)
    const headers = {
      Connection: 'Upgrade, HTTP2-Settings',
      Upgrade: 'h2c',
      'HTTP2-Settings': 'AAMAAABkAAQAoAAAAAIAAAAA',
      Authorization: `Bearer ${await gateway.token({ tenantId: 't1' })}`,
    }
    const asking = request({ hostname, port, path: '/api/labels?limit=1', headers })
    asking.end()
    const [response] = (await once(asking, 'response')) as [import('node:http').IncomingMessage]
    expect(response.statusCode).toBe(200)
    let body = ''
    for await (const chunk of response) body += chunk
    expect(JSON.parse(body)).toMatchObject({ count: 1 })
  })

  /** The head and body of the response to a handshake with these additional lines. */
  async function handshake(url: string, ...lines: readonly string[]): Promise<readonly [string, string]> {
    const raw = await openRaw(url)
    const all = ['GET /ws HTTP/1.1', 'Host: localhost', 'Connection: Upgrade', 'Upgrade: websocket', ...lines]
    raw.socket.write(`${all.join('\r\n')}\r\n\r\n`)
    await raw.until(/\r\n\r\n/)
    if (!raw.received().includes(' 101 ')) await raw.closed
    raw.socket.destroy()
    const [head = '', body = ''] = raw.received().split('\r\n\r\n')
    return [head, body]
  }
  const VERSION = 'Sec-WebSocket-Version: 13'
  const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='

  test('have the headers of every response, whether they succeed or not', async () => {
    const dev = await testGateway(database.url, { environment: { SVC_DEV_MODE: 'true' } })
    const token = await gateway.token({ tenantId: 't1' })
    try {
      for (const [bearer, status] of [
        [token, '101'],
        ['nonsense', '401'],
      ] as const) {
        const [head] = await handshake(dev.url, VERSION, KEY, 'X-Request-Id: mine', `Authorization: Bearer ${bearer}`)
        expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
        expect(head).toContain('\r\nX-Request-Id: mine\r\n')
        expect(head).toContain('\r\nX-Content-Type-Options: nosniff\r\n')
        expect(head).toMatch(/\r\nX-Response-Time: \d+ms\r\n/)
        expect(head).toMatch(/\r\nServer-Timing: total;dur=[\d.]+/)
      }
      expect((await handshake(gateway.url, VERSION, KEY, `Authorization: Bearer ${token}`))[0]).not.toContain('Timing')
    } finally {
      await dev.close()
    }
  })

  test.each([
    ['another version', ['Sec-WebSocket-Version: 12', KEY], 'Sec-WebSocket-Version'],
    ['no key', [VERSION], 'Sec-WebSocket-Key'],
    ['invalid subprotocols', [VERSION, KEY, 'Sec-WebSocket-Protocol: a,,b'], 'Sec-WebSocket-Protocol'],
  ])('a handshake with %s is rejected like any other request', async (_, lines, about) => {
    const events: unknown[] = []
    const open = await testGateway(database.url, { toml: 'require_auth = false', emit: event => events.push(event) })
    try {
      const [head, body] = await handshake(open.url, ...lines)
      expect(head).toMatch(/^HTTP\/1\.1 400 /)
      expect(head).toContain('\r\nSec-WebSocket-Version: 13\r\n')
      const requestId = /\r\nX-Request-Id: (\S+)/.exec(head)?.[1]
      expect(JSON.parse(body)).toEqual({
        error: { code: 'PARSE_ERROR', message: expect.stringContaining(about), status: 400, request_id: requestId },
      })
      expect(events).toContainEqual(expect.objectContaining({ kind: 'request', route: '/ws', status: 400, requestId }))
    } finally {
      await open.close()
    }
  })

  test('with frames that violate the protocol end only their own connection', async () => {
    const raw = await openRaw(gateway.url)
    const token = await gateway.token({ tenantId: 't1' })
    raw.socket.write(
      [
        'GET /ws HTTP/1.1',
        'Host: x',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        `Authorization: Bearer ${token}`,
        '',
        '',
      ].join('\r\n'),
    )
    await raw.until(/101 Switching Protocols/)
    raw.socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]))
    await raw.closed
    expect((await gateway.get('/health', { as: null })).status).toBe(200)
  })
})

test('are closed when the gateway stops, with a hint when to reconnect', async () => {
  const stopping = await testGateway(database.url)
  const sockets = await Promise.all(
    [1, 2, 3].map(async () => openSocket(stopping.url, { token: await stopping.token({ tenantId: 't1' }) })),
  )
  for (const socket of sockets) {
    socket.say(SUBSCRIBE)
    await socket.nextOf('subscribed')
  }
  await stopping.close()
  for (const socket of sockets) {
    const [code, reason] = await socket.closed
    expect(code).toBe(1001)
    expect(JSON.parse(reason).retry_after_ms).toBeGreaterThanOrEqual(0)
  }
})
