/** docs/reference/limits.md: the limits of one address and one tenant on `/ws`. */
import { request } from 'node:http'
import { expect, test, vi } from 'vitest'
import { CLOSE_TOO_MANY } from '../../src/realtime/session.ts'
import { shopDatabase } from '../features/shop.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database, {
  toml: `trusted_proxies = ["127.0.0.1"]
      address_max_sockets = 3
      tenant_max_sockets = 4
      tenant_max_subscriptions = 6
      tenant_max_subscription_groups = 3`,
})

async function open(tenantId: string, address: string, of: TestGateway = gateway): Promise<TestSocket> {
  return openSocket(of.url, {
    ...{ token: await of.token({ tenantId }), headers: { 'X-Forwarded-For': address } },
  })
}

/** The response to a rejected handshake. */
async function refusal(tenantId: string, address: string, of: TestGateway = gateway) {
  const token = await of.token({ tenantId })
  const headers = {
    ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
    ...{
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
      Authorization: `Bearer ${token}`,
      'X-Forwarded-For': address,
    },
  }
  return new Promise<{ status: number | undefined; retryAfter: string | undefined; code: string; message: string }>(
    (resolve, reject) => {
      const asked = request(`${of.url}/ws`, { headers }, async response => {
        let text = ''
        for await (const chunk of response) text += chunk
        const { code, message } = JSON.parse(text).error
        resolve({ status: response.statusCode, retryAfter: response.headers['retry-after'], code, message })
      })
      asked.once('upgrade', (_, socket) => {
        socket.destroy()
        reject(new Error('it was accepted'))
      })
      asked.once('error', reject)
      asked.end()
    },
  )
}

async function refusals(limit: string, of: TestGateway = gateway, metric = 'svc_realtime_limit_refusals_total') {
  const { text } = await of.get('/metrics', { as: null })
  return Number(new RegExp(`^${metric}\\{limit="${limit}"\\} (\\d+)`, 'm').exec(text)?.[1])
}

test('sockets of one address are limited: one more is answered with 429, and other addresses are served', async () => {
  const sockets = [await open('t1', '192.0.2.1'), await open('t1', '192.0.2.1'), await open('t2', '192.0.2.1')]
  expect(await refusal('t3', '192.0.2.1')).toEqual({
    ...{ status: 429, retryAfter: '5', code: 'CONCURRENCY_LIMIT' },
    message: 'this address already has 3 sockets, the limit (address_max_sockets); close some, or try again later',
  })
  expect(await refusals('address_max_sockets')).toBe(1)
  sockets.push(await open('t3', '192.0.2.2'))
  await sockets.pop()?.close()
  await sockets.pop()?.close()
  // A slot is free once the gateway has noticed the end of the connection.
  await vi.waitFor(async () => sockets.push(await open('t3', '192.0.2.1')), { timeout: 10_000 })
  await Promise.all(sockets.map(socket => socket.close()))
})

test('sockets of one tenant are limited: one more gets 429, or 4429 after a first message', async () => {
  const sockets: TestSocket[] = []
  for (let n = 1; n <= 4; n++) await vi.waitFor(async () => sockets.push(await open('t4', `192.0.2.1${n}`)))
  expect(await refusal('t4', '192.0.2.20')).toMatchObject({
    ...{ status: 429, code: 'CONCURRENCY_LIMIT' },
    message: expect.stringContaining('(tenant_max_sockets)'),
  })
  const late = await openSocket(gateway.url, { headers: { 'X-Forwarded-For': '192.0.2.21' } })
  late.say({ type: 'auth', id: 'who', token: await gateway.token({ tenantId: 't4' }) })
  expect(await late.next()).toMatchObject({ type: 'error', id: 'who', code: 'CONCURRENCY_LIMIT' })
  expect((await late.closed)[0]).toBe(CLOSE_TOO_MANY)
  expect(await refusals('tenant_max_sockets')).toBe(2)
  // Rejected sockets do not count.
  const other = await openSocket(gateway.url, { headers: { 'X-Forwarded-For': '192.0.2.21' } })
  other.say({ type: 'auth', token: await gateway.token({ tenantId: 't5' }) })
  expect(await other.next()).toMatchObject({ type: 'authenticated' })
  await Promise.all([...sockets, other].map(socket => socket.close()))
})

test('subscriptions and live queries of one tenant are limited over all of its sockets', async () => {
  const [one, two, other] = [
    await open('t6', '192.0.2.31'),
    await open('t6', '192.0.2.32'),
    await open('t7', '192.0.2.33'),
  ]
  const subscribe = async (socket: TestSocket, id: string) => {
    socket.say({ type: 'subscribe', id, channel: 'svc_table_labels' })
    return socket.next()
  }
  for (const id of ['a', 'b', 'c']) {
    expect(await subscribe(one, id)).toMatchObject({ type: 'subscribed', id })
    expect(await subscribe(two, id)).toMatchObject({ type: 'subscribed', id })
  }
  expect(await subscribe(two, 'd')).toMatchObject({
    ...{ type: 'error', id: 'd', code: 'CONCURRENCY_LIMIT' },
    message:
      'the tenant already has 6 subscriptions and live queries, the limit (tenant_max_subscriptions); ' +
      'close some, or try again later',
  })
  two.say({ type: 'live_query', id: 'live', svc: 'get labels', table: 'labels' })
  expect(await two.next()).toMatchObject({ type: 'error', id: 'live', code: 'CONCURRENCY_LIMIT' })
  expect(await subscribe(other, 'd')).toMatchObject({ type: 'subscribed' })
  two.say({ type: 'unsubscribe', id: 'a' })
  expect(await two.next()).toMatchObject({ type: 'unsubscribed' })
  expect(await subscribe(two, 'd')).toMatchObject({ type: 'subscribed', id: 'd' })
  await Promise.all([one, two, other].map(socket => socket.close()))
})

test('different subscriptions and live queries of one tenant are limited: equal ones count once', async () => {
  const [one, other] = [await open('t8', '192.0.2.41'), await open('t9', '192.0.2.42')]
  const subscribe = async (socket: TestSocket, filter: string) => {
    socket.say({ type: 'subscribe', channel: 'svc_table_labels', filter })
    return socket.next()
  }
  for (const filter of ['id=1', 'id=2', 'id=1'])
    expect(await subscribe(one, filter)).toMatchObject({ type: 'subscribed' })
  one.say({ type: 'live_query', id: 'live', svc: 'get labels', table: 'labels' })
  expect(await one.nextOf('subscribed')).toMatchObject({ id: 'live' })
  expect(await one.next()).toMatchObject({ type: 'notification', id: 'live' })
  expect(await subscribe(one, 'id=3')).toMatchObject({
    ...{ type: 'error', code: 'CONCURRENCY_LIMIT' },
    message: expect.stringContaining('(tenant_max_subscription_groups)'),
  })
  expect(await refusals('tenant_max_subscription_groups')).toBe(1)
  expect(await subscribe(other, 'id=3')).toMatchObject({ type: 'subscribed' })
  one.say({ type: 'stop_live_query', id: 'live' })
  await one.nextOf('unsubscribed')
  expect(await subscribe(one, 'id=3')).toMatchObject({ type: 'subscribed' })
  await Promise.all([one, other].map(socket => socket.close()))
})

test('different live queries of one tenant, of the process, and of one socket are limited', async () => {
  const small = await testGateway(database.url, {
    toml: `trusted_proxies = ["127.0.0.1"]
      tenant_max_live_queries = 2
      max_live_queries = 3
      socket_max_live_queries = 3
      socket_max_subscriptions = 1`,
  })
  try {
    const [one, other, third] = [
      await open('t1', '192.0.2.1', small),
      await open('t2', '192.0.2.1', small),
      await open('t3', '192.0.2.1', small),
    ]
    const start = async (socket: TestSocket, id: string, limit: number) => {
      socket.say({ type: 'live_query', id, svc: `get labels limit ${limit}`, table: 'labels' })
      let answer = await socket.next()
      while (answer.type === 'notification') answer = await socket.next()
      return answer
    }
    expect(await start(one, 'a', 1)).toMatchObject({ type: 'subscribed', id: 'a' })
    expect(await start(one, 'b', 2)).toMatchObject({ type: 'subscribed', id: 'b' })
    expect(await start(one, 'c', 3)).toMatchObject({
      ...{ type: 'error', id: 'c', code: 'CONCURRENCY_LIMIT' },
      message:
        'the tenant already has 2 different live queries, the limit (tenant_max_live_queries); ' +
        'close some, or try again later',
    })
    expect(await refusals('tenant_max_live_queries', small)).toBe(1)
    // An equal query shares the run, and counts towards the socket's own limit.
    expect(await start(one, 'd', 1)).toMatchObject({ type: 'subscribed', id: 'd' })
    expect(await start(one, 'e', 1)).toMatchObject({
      ...{ type: 'error', id: 'e', code: 'FORBIDDEN' },
      message: 'a connection can have at most 3 live queries (socket_max_live_queries); open another connection',
    })
    expect(await refusals('socket_max_live_queries', small)).toBe(1)
    expect(await start(other, 'a', 1)).toMatchObject({ type: 'subscribed' })
    expect(await start(third, 'a', 1)).toMatchObject({
      ...{ type: 'error', code: 'UNAVAILABLE' },
      message: 'the gateway already has 3 different live queries, the limit (max_live_queries); try again later',
    })
    expect(await refusals('max_live_queries', small)).toBe(1)
    other.say({ type: 'stop_live_query', id: 'a' })
    await other.nextOf('unsubscribed')
    // Rejected queries do not count.
    expect(await start(third, 'a', 1)).toMatchObject({ type: 'subscribed' })
    third.say({ type: 'subscribe', channel: 'svc_table_labels' })
    await third.nextOf('subscribed')
    third.say({ type: 'subscribe', id: 's', channel: 'svc_table_labels' })
    expect(await third.nextOf('error')).toMatchObject({ id: 's', code: 'FORBIDDEN' })
    expect(await refusals('socket_max_subscriptions', small)).toBe(1)
    await Promise.all([one, other, third].map(socket => socket.close()))
  } finally {
    await small.close()
  }
})

test('sockets of the process are limited: one more is answered with 503 before the upgrade', async () => {
  const small = await testGateway(database.url, { toml: 'max_sockets = 1' })
  try {
    const socket = await open('t1', '192.0.2.1', small)
    expect(await refusal('t2', '192.0.2.2', small)).toEqual({
      ...{ status: 503, retryAfter: '5', code: 'UNAVAILABLE' },
      message: 'the gateway already has 1 sockets, the limit (max_sockets); try again later',
    })
    expect(await refusals('max_sockets', small)).toBe(1)
    await socket.close()
  } finally {
    await small.close()
  }
})

test('a live query or subscription above a statement limit is counted like a request', async () => {
  const small = await testGateway(database.url, { toml: 'max_relations = 2' })
  try {
    const socket = await open('t1', '192.0.2.1', small)
    const joins = 'get labels as a join labels as b on b.id = a.id join labels as c on c.id = a.id fields a.id'
    socket.say({ type: 'live_query', id: 'l', svc: joins, table: 'labels' })
    expect(await socket.next()).toMatchObject({ type: 'error', id: 'l', code: 'PARSE_ERROR' })
    expect(await refusals('max_relations', small, 'svc_statements_refused_total')).toBe(1)
    await socket.close()
  } finally {
    await small.close()
  }
})

test('one address can have 300 sockets by default', { timeout: 60_000 }, async () => {
  const usual = await testGateway(database.url)
  const sockets: TestSocket[] = []
  try {
    while (sockets.length < 300) {
      const some = Array.from({ length: 50 }, (_, n) => open(`t${n % 5}`, '192.0.2.1', usual))
      sockets.push(...(await Promise.all(some)))
    }
    sockets.at(-1)?.say({ type: 'ping', id: 'last' })
    expect(await sockets.at(-1)?.next()).toEqual({ type: 'pong', id: 'last' })
  } finally {
    await Promise.all(sockets.map(socket => socket.close()))
    await usual.close()
  }
})
