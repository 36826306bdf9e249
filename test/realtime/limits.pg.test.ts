/** docs/reference/limits.md: what one address and one tenant may hold of `/ws`. */
import { request } from 'node:http'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { CLOSE_TOO_MANY } from '../../src/realtime/session.ts'
import { shopDatabase } from '../features/shop.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { openSocket, type TestSocket } from '../support/socket.ts'

let database: TestDatabase
let gateway: TestGateway

beforeAll(async () => {
  database = await shopDatabase()
  gateway = await testGateway(database.url, {
    toml: `trusted_proxies = ["127.0.0.1"]
      address_max_sockets = 3
      tenant_max_sockets = 4
      tenant_max_subscriptions = 6
      tenant_max_subscription_groups = 3`,
  })
})

afterAll(async () => {
  await gateway?.close()
  await database?.drop()
})

async function open(tenantId: string, address: string): Promise<TestSocket> {
  return openSocket(gateway.url, {
    ...{ token: await gateway.token({ tenantId }), headers: { 'X-Forwarded-For': address } },
  })
}

/** The answer to a handshake that is refused. */
async function refusal(tenantId: string, address: string) {
  const token = await gateway.token({ tenantId })
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
      const asked = request(`${gateway.url}/ws`, { headers }, async response => {
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

async function refusals(limit: string): Promise<number> {
  const { text } = await gateway.get('/metrics', { as: null })
  return Number(new RegExp(`^svc_realtime_limit_refusals_total\\{limit="${limit}"\\} (\\d+)`, 'm').exec(text)?.[1])
}

test('sockets of one address: one more is 429 before the upgrade, other addresses are served', async () => {
  const sockets = [await open('t1', '192.0.2.1'), await open('t1', '192.0.2.1'), await open('t2', '192.0.2.1')]
  expect(await refusal('t3', '192.0.2.1')).toEqual({
    ...{ status: 429, retryAfter: '5', code: 'CONCURRENCY_LIMIT' },
    message: 'this address has 3 sockets already (address_max_sockets); close some, or try again later',
  })
  expect(await refusals('address_max_sockets')).toBe(1)
  sockets.push(await open('t3', '192.0.2.2'))
  await sockets.pop()?.close()
  await sockets.pop()?.close()
  // A place is free once the gateway has seen the connection end.
  await vi.waitFor(async () => sockets.push(await open('t3', '192.0.2.1')), { timeout: 10_000 })
  await Promise.all(sockets.map(socket => socket.close()))
})

test('sockets of one tenant: one more is 429, or closed with 4429 where the first message says who calls', async () => {
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
  // Refused, neither of them counts.
  const other = await openSocket(gateway.url, { headers: { 'X-Forwarded-For': '192.0.2.21' } })
  other.say({ type: 'auth', token: await gateway.token({ tenantId: 't5' }) })
  expect(await other.next()).toMatchObject({ type: 'authenticated' })
  await Promise.all([...sockets, other].map(socket => socket.close()))
})

test('subscriptions and live queries of one tenant, over all of its sockets', async () => {
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
      'the tenant has 6 subscriptions and live queries already (tenant_max_subscriptions); close some, or try again later',
  })
  two.say({ type: 'live_query', id: 'live', svc: 'get labels', table: 'labels' })
  expect(await two.next()).toMatchObject({ type: 'error', id: 'live', code: 'CONCURRENCY_LIMIT' })
  expect(await subscribe(other, 'd')).toMatchObject({ type: 'subscribed' })
  two.say({ type: 'unsubscribe', id: 'a' })
  expect(await two.next()).toMatchObject({ type: 'unsubscribed' })
  expect(await subscribe(two, 'd')).toMatchObject({ type: 'subscribed', id: 'd' })
  await Promise.all([one, two, other].map(socket => socket.close()))
})

test('different subscriptions and live queries of one tenant: those that are alike count once', async () => {
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
