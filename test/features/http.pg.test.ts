/**
 * docs/reference/rest-api.md: headers, error envelope, CORS, body limit, request ids, /health, /api/_schema.
 */
import { describe, expect, test } from 'vitest'
import type { Event } from '../../src/events.ts'
import { BODY_BYTES_MAX, FORGOTTEN_BYTES_MAX } from '../../src/http/request-body.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { exchange, openRaw } from '../support/raw-http.ts'
import { shopDatabase } from './shop.ts'

const events: Event[] = []
const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database, {
  toml: 'cors_allowed_origins = ["https://app.example"]',
  emit: event => void events.push(event),
})

const raw = (bytes: string | Buffer) => exchange(gateway.url, bytes)

describe('headers', () => {
  test.each(['/api/users', '/api/users/1', '/api/users?stream=true'])(
    'every response has the headers: %s',
    async path => {
      const { headers } = await gateway.get(path)
      expect(headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
      expect(headers.get('x-response-time')).toMatch(/^\d+(\.\d+)?ms$/)
      expect(headers.get('x-cache')).toBe('MISS')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-frame-options')).toBe('DENY')
    },
  )
  test.each(['/api/nope', '/nowhere', '/health', '/api/_schema', '/api/users/%zz'])(
    '%s has them as well',
    async path => {
      const { headers } = await gateway.get(path)
      expect(headers.get('x-request-id')).toBeTruthy()
      expect(headers.get('x-response-time')).toMatch(/ms$/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-frame-options')).toBe('DENY')
    },
  )
  test('request ids are unique', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => gateway.get('/health')))
    expect(new Set(replies.map(reply => reply.headers.get('x-request-id'))).size).toBe(20)
  })
  test.each(['abc', 'A.b_c-9', 'x'.repeat(128)])('the valid request id "%s" is kept', async id => {
    const reply = await gateway.get('/api/nope', { headers: { 'X-Request-Id': id } })
    expect(reply.headers.get('x-request-id')).toBe(id)
    expect(reply.json.error.request_id).toBe(id)
  })
  test.each(['', 'a b', 'x'.repeat(129), 'ü', '<script>'])('the invalid request id "%s" is replaced', async id => {
    expect(
      (await gateway.get('/health', { headers: { 'X-Request-Id': encodeURI(id) } })).headers.get('x-request-id'),
    ).not.toBe(id)
  })
})

describe('errors', () => {
  test('the envelope has code, message, status and request_id', async () => {
    const reply = await gateway.get('/api/nope')
    expect(reply.json).toEqual({
      error: {
        code: 'NOT_FOUND',
        message: expect.any(String),
        status: 404,
        request_id: reply.headers.get('x-request-id'),
      },
    })
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })
  test('a database error carries sqlstate, table, column and constraint', async () => {
    const reply = await gateway.get('/api/customers?meta=gt.%7B%7D&name=match.%5B')
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({
      code: 'QUERY_ERROR',
      details: { sqlstate: '2201B', table: null, column: null, constraint: null },
    })
  })
  test.each(['PUT', 'POST', 'DELETE', 'PATCH'])('%s on a reading route → 405 with Allow', async method => {
    for (const path of ['/health', '/api/_schema']) {
      const reply = await gateway.get(path, { method })
      expect(reply.status).toBe(405)
      expect(reply.headers.get('allow')).toBe('GET, HEAD')
      expect(reply.json.error.code).toBe('METHOD_NOT_ALLOWED')
    }
  })
  test.each(['/', '/api', '/api/', '/apix/users', '/API/users', '//api/users', '/api/users/1/orders/2/x'])(
    '%s → 404',
    async path => {
      expect((await gateway.get(path)).status).toBe(404)
    },
  )
  test('HEAD has the headers of GET', async () => {
    const get = await gateway.get('/api/users')
    const head = await gateway.get('/api/users', { method: 'HEAD' })
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', String(get.text.length)])
  })
})

describe('limits on sizes', () => {
  test('a body of 2 MiB is accepted, one byte more is answered with 413', async () => {
    const fits = await gateway.get('/health', { method: 'POST', body: 'x'.repeat(2 * 1024 * 1024) })
    expect(fits.status).toBe(405)
    const tooLarge = await gateway.get('/health', { method: 'POST', body: 'x'.repeat(2 * 1024 * 1024 + 1) })
    expect(tooLarge.status).toBe(413)
    expect(tooLarge.json.error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', status: 413 })
  })
  test('apply to a chunked body', async () => {
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
    const answer = await raw(
      'POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n' +
        `${chunk.repeat(33)}0\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
  })
  test('a body slightly above the limit is read to its end before the response, a much larger one is not', async () => {
    const post = async (announced: number, sent: number) => {
      const connection = await openRaw(gateway.url)
      connection.socket.write(
        `POST /health HTTP/1.1\r\nHost: x\r\nContent-Type: x/y\r\nContent-Length: ${announced}\r\n\r\n`,
      )
      await new Promise(resolve => connection.socket.write(Buffer.alloc(sent, 'x'), resolve))
      return connection
    }
    const large = await post(BODY_BYTES_MAX + 500_000, BODY_BYTES_MAX + 499_999)
    const huge = await post(1e9, FORGOTTEN_BYTES_MAX + 1)
    await huge.until(/^HTTP\/1\.1 413 /)
    expect(large.received()).toBe('')
    large.socket.write('x')
    await large.until(/^HTTP\/1\.1 413 [\s\S]*PAYLOAD_TOO_LARGE/)
    await Promise.all([large.closed, huge.closed])
  })
  test('apply to the body of a GET', async () => {
    const answer = await raw(
      `GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 2097153\r\nConnection: close\r\n\r\n${'x'.repeat(100)}`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
  })
  test('a giant URL is answered, and the process survives', async () => {
    const answer = await raw(`GET /api/users?${'a'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 431 Request Header Fields Too Large\r\n/)
    expect(answer).toMatch(/\r\nX-Request-Id: [\w-]+\r\n/)
    expect(answer).toContain('\r\nX-Frame-Options: DENY\r\n')
    expect(JSON.parse(answer.slice(answer.indexOf('{'))).error).toMatchObject({
      code: 'HEADERS_TOO_LARGE',
      status: 431,
    })
  })
  test.each([
    '\0\0\0\0\r\n\r\n',
    'GET\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n',
  ])('bytes that are not HTTP → 400', async bytes => {
    const answer = await raw(bytes)
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect(JSON.parse(answer.slice(answer.indexOf('{'))).error).toMatchObject({ code: 'PARSE_ERROR', status: 400 })
  })
})

describe('RFC 9112', () => {
  test('3.2: a request of HTTP/1.1 without a host is rejected, and one of HTTP/1.0 is accepted', async () => {
    const without = await raw('GET /health HTTP/1.1\r\nConnection: close\r\n\r\n')
    expect(without).toMatch(/^HTTP\/1.1 400 /)
    expect(without).toMatch(/\r\nX-Request-Id: [\w-]+\r\n/)
    expect(JSON.parse(without.slice(without.indexOf('{'))).error).toMatchObject({
      code: 'PARSE_ERROR',
      message: expect.stringContaining('Host'),
    })
    expect(await raw('GET /health HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /)
  })

  test.each(['http://x/health', 'HTTPS://x:8080/health?a=b'])(
    '3.2.2: the absolute form is accepted, %s',
    async target => {
      expect(await raw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 200 /)
    },
  )

  test.each([
    ['http://x', '/'],
    ['http://x?a=b', '/'],
    ['http://x/nowhere', '/nowhere'],
  ])('%s is %s', async (target, path) => {
    const answer = await raw(`PUT ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(JSON.parse(answer.slice(answer.indexOf('{'))).error.message).toContain(`PUT ${path}`)
  })
})

test('the duration of a response is a number of milliseconds', async () => {
  expect((await gateway.get('/health')).headers.get('x-response-time')).toMatch(/^\d+ms$/)
})

test('a method with a body and no type is rejected and is not a defect', async () => {
  const answer = await raw('QUERY /api/users HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}')
  expect(answer).toMatch(/^HTTP\/1.1 4\d\d /)
})

describe('CORS', () => {
  test('an allowed origin can read the response', async () => {
    const reply = await gateway.get('/api/users', { headers: { Origin: 'https://app.example' } })
    expect(reply.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(reply.headers.get('access-control-expose-headers')).toContain('X-Request-Id')
  })
  test('another origin gets no permission', async () => {
    const reply = await gateway.get('/api/users', { headers: { Origin: 'https://evil.example' } })
    expect(reply.headers.get('access-control-allow-origin')).not.toBe('https://evil.example')
    expect(reply.headers.get('access-control-allow-origin')).not.toBe('*')
  })
  test('the preflight needs no token', async () => {
    const reply = await gateway.get('/api/users', {
      as: null,
      method: 'OPTIONS',
      headers: {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'authorization',
      },
    })
    expect(reply.status).toBe(204)
    expect(reply.headers.get('access-control-allow-methods')).toContain('PATCH')
    expect(reply.headers.get('access-control-allow-headers')).toContain('authorization')
    expect(reply.headers.get('x-request-id')).toBeTruthy()
    expect(reply.headers.get('x-response-time')).toMatch(/^\d+ms$/)
    expect(reply.headers.get('x-frame-options')).toBe('DENY')
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff')
  })
  test('an OPTIONS request that is not a preflight gets the same response', async () => {
    const reply = await gateway.get('/api/users', { as: null, method: 'OPTIONS' })
    expect(reply.status).toBe(204)
    expect(reply.headers.get('access-control-allow-methods')).toContain('PATCH')
  })
  test('a response to an oversized body has every header once', async () => {
    const answer = await raw(
      'POST /health HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2097153\r\n' +
        `Connection: close\r\n\r\n${'x'.repeat(2_097_153)}`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
    expect(answer.match(/\r\nconnection:/gi)).toHaveLength(1)
  })
})

test('every response is logged once, even without valid HTTP or for a preflight', async () => {
  events.length = 0
  await raw('GET / HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n')
  await raw(`GET / HTTP/1.1\r\nHost: x\r\nLong: ${'a'.repeat(70_000)}\r\n\r\n`)
  const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' }
  const preflight = await gateway.get('/api/users', { as: null, method: 'OPTIONS', headers })
  const found = await gateway.get('/health')
  const none = { route: 'none', tenantId: '' }
  expect(events).toEqual([
    expect.objectContaining({ ...none, method: 'unknown', status: 400, code: 'PARSE_ERROR', durationMs: 0 }),
    expect.objectContaining({ ...none, method: 'unknown', status: 431, code: 'HEADERS_TOO_LARGE' }),
    expect.objectContaining({
      ...{ ...none, kind: 'request', method: 'OPTIONS', status: 204, code: null },
      requestId: preflight.headers.get('x-request-id'),
    }),
    expect.objectContaining({ route: '/health', status: 200, requestId: found.headers.get('x-request-id') }),
  ])
})

test('/health needs no token', async () => {
  const reply = await gateway.get('/health', { as: null })
  expect(reply.status).toBe(200)
  expect(reply.json).toEqual({ status: 'ok', version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
})

describe('/api/_schema', () => {
  test('contains tables, columns, keys and relations', async () => {
    const { tables } = (await gateway.get('/api/_schema')).json
    expect(tables.order_items).toMatchObject({
      schema: 'public',
      name: 'order_items',
      kind: 'table',
      primary_key: ['order_id', 'line'],
      columns: expect.arrayContaining([
        {
          name: 'quantity',
          type: 'integer',
          nullable: false,
          default: null,
          generated: null,
          identity: null,
          comment: null,
        },
      ]),
      foreign_keys: expect.arrayContaining([
        { name: 'order_items_order_id_fkey', columns: ['order_id'], references: { table: 'orders', columns: ['id'] } },
      ]),
    })
    expect(tables.orders.columns.find((column: { name: string }) => column.name === 'status').enum).toEqual([
      'draft',
      'paid',
      'shipped',
    ])
  })
  test('contains only views that run with the caller’s rights', async () => {
    const { tables } = (await gateway.get('/api/_schema')).json
    expect(tables).toHaveProperty('safe_view')
    expect(tables).not.toHaveProperty('plain_view')
    expect((await gateway.get('/api/plain_view')).status).toBe(404)
    expect((await gateway.get('/api/safe_view?select=name&sort=name&limit=1')).json.data).toEqual([{ name: 'Ann' }])
  })
  test('needs a token like every route below /api', async () => {
    expect((await gateway.get('/api/_schema', { as: null })).status).toBe(401)
  })
})
