/** docs/guides/webhooks.md#allowed-addresses: the address is checked when the connection is made. */
import type { LookupAddress } from 'node:dns'
import { createServer as createTlsServer } from 'node:https'
import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createSelfSigned } from '../../test/support/certificates.ts'
import { OK, type Receiver, receiver } from '../../test/support/receiver.ts'
import { testClock, turn } from '../../test/support/test-clock.ts'
import { systemClock } from '../clock.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import type { ResolveName } from '../outbound/connector.ts'
import { createSender, KEPT_BODY_BYTES, type Sender, type WebhookRequest } from './sender.ts'

let hook: Receiver
let sender: Sender | null = null
beforeEach(async () => {
  hook = await receiver()
})
afterEach(async () => {
  await sender?.close()
  sender = null
  await hook.close()
})

const LOCAL = ['127.0.0.0/8']

function open(allow: readonly string[], resolve?: ResolveName): Sender {
  const guard = createAddressGuard({ allow, loopback: 'refused' })
  sender = createSender({ guard, clock: systemClock, connections: 8, ...(resolve ? { resolve } : {}) })
  return sender
}

const post = (url = hook.url): WebhookRequest => ({
  url: new URL(url),
  headers: { 'x-a': 'b' },
  body: Buffer.from('{"a":1}'),
  timeoutMs: 60_000,
})

/** Resolves each lookup to the next of these lists, and to the last one from then on. */
function resolver(...answers: readonly (readonly string[])[]): ResolveName & { asked: string[] } {
  const asked: string[] = []
  const resolve = (hostname: string, _: unknown, found: (error: Error | null, addresses: LookupAddress[]) => void) => {
    const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? []
    asked.push(hostname)
    found(
      null,
      addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  return Object.assign(resolve, { asked })
}

const named = () => hook.url.replace('127.0.0.1', 'hooks.example')

test('the request is sent as given, and the beginning of the response is kept', async () => {
  hook.respond(response => response.writeHead(503, { 'Retry-After': '7' }).end('é'.repeat(KEPT_BODY_BYTES)))
  const outcome = await open(LOCAL).send(post())
  expect(outcome).toMatchObject({
    kind: 'answered',
    status: 503,
    retryAfter: '7',
    body: 'é'.repeat(KEPT_BODY_BYTES / 2),
  })
  expect(hook.received[0]).toMatchObject({ method: 'POST', text: '{"a":1}', headers: { 'x-a': 'b' } })
})

test('an endless response body is abandoned, and its status is the outcome', async () => {
  hook.respond(response => {
    response.writeHead(200)
    const more = (): void => void (response.destroyed || response.write('x'.repeat(65_536), more))
    more()
  })
  expect(await open(LOCAL).send(post())).toMatchObject({
    kind: 'answered',
    status: 200,
    body: 'x'.repeat(KEPT_BODY_BYTES),
  })
})

test('connections are reused', async () => {
  const opened = open(LOCAL)
  for (let at = 0; at < 10; at++) await opened.send(post())
  expect(hook.received).toHaveLength(10)
  // A connection may not be free yet when the next request begins.
  expect(hook.connections()).toBeLessThanOrEqual(2)
})

describe('the address guard', () => {
  test('refuses an address in the URL without connecting', async () => {
    expect(await open([]).send(post())).toEqual({
      ...{ kind: 'failed', reason: 'address' },
      message:
        '127.0.0.1 is a loopback address, which is not allowed for webhooks; to allow it, add it to webhook_allow',
    })
    for (const host of ['[::ffff:127.0.0.1]', '0x7f.1', '[::1]', '169.254.169.254']) {
      expect(await sender?.send(post(hook.url.replace('127.0.0.1', host)))).toMatchObject({ reason: 'address' })
    }
    expect(hook.connections()).toBe(0)
  })

  test('refuses a name that resolves to a refused address', async () => {
    const resolve = resolver(['10.0.0.1'])
    expect(await open([], resolve).send(post(named()))).toMatchObject({
      ...{ kind: 'failed', reason: 'address' },
      message: expect.stringContaining('hooks.example: 10.0.0.1 is a private address'),
    })
    expect(resolve.asked).toEqual(['hooks.example'])
  })

  test('of several addresses, only the allowed ones are tried', async () => {
    const outcome = await open(['127.0.0.1'], resolver(['10.0.0.1', '::1', '127.0.0.1'])).send(post(named()))
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
  })

  test('checks a name whose address changes at each connection, by the address being connected to', async () => {
    const resolve = resolver(['127.0.0.1'], ['127.0.0.2'])
    const opened = open(['127.0.0.1/32'], resolve)
    hook.respond((response, received, count) => OK(response.setHeader('Connection', 'close'), received, count))
    expect(await opened.send(post(named()))).toMatchObject({ kind: 'answered' })
    expect(await opened.send(post(named()))).toMatchObject({ reason: 'address' })
    // One lookup per connection: names are not resolved once for the check and again for the connection.
    expect([resolve.asked.length, hook.received.length]).toEqual([2, 1])
  })

  test('reports a name without addresses as a failed connection', async () => {
    expect(await open([], resolver([])).send(post(named()))).toMatchObject({
      message: 'hooks.example: the name has no address',
    })
  })

  test('does not follow a redirect to a refused address', async () => {
    hook.respond(response => response.writeHead(307, { Location: 'http://169.254.169.254/' }).end())
    expect(await open(LOCAL).send(post())).toMatchObject({ kind: 'answered', status: 307 })
    expect(hook.received).toHaveLength(1)
  })
})

test('a target that refuses connections is a failed connection', async () => {
  const url = hook.url
  await hook.close()
  expect(await open(LOCAL).send(post(url))).toMatchObject({
    ...{ kind: 'failed', reason: 'connection' },
    message: expect.stringContaining('ECONNREFUSED'),
  })
  hook = await receiver()
})

test('the time limit covers a response that never comes and a server that sends nothing', async () => {
  const clock = testClock()
  const guard = createAddressGuard({ allow: LOCAL, loopback: 'refused' })
  sender = createSender({ guard, clock, connections: 8 })
  hook.respond(() => {})
  const outcome = sender.send({ ...post(), timeoutMs: 1_000 })
  await hook.until(1)
  await clock.advance(999)
  let settled = false
  void outcome.then(() => {
    settled = true
  })
  await turn()
  expect(settled).toBe(false)
  await clock.advance(1)
  expect(await outcome).toEqual({ kind: 'failed', reason: 'timeout', message: 'no complete response within 1000 ms' })
})

test('a response that is not HTTP is a failure', async () => {
  const server = createServer(socket =>
    socket
      .resume()
      .on('error', () => {})
      .end('SSH-2.0-OpenSSH\r\n'),
  )
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  expect(await open(LOCAL).send(post(`http://127.0.0.1:${port}/`))).toMatchObject({ reason: 'connection' })
  await new Promise(resolve => server.close(resolve))
})

test('an untrusted certificate is a failure', async () => {
  const { certificate, key } = createSelfSigned('localhost', ['127.0.0.1'])
  const server = createTlsServer({ cert: certificate, key }, (_, response) => response.end())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  expect(await open(LOCAL).send(post(`https://127.0.0.1:${port}/`))).toEqual({
    ...{ kind: 'failed', reason: 'connection' },
    // Node 24 appends a hint on how to fix it.
    message: expect.stringMatching(/^self-signed certificate/),
  })
  await new Promise(resolve => server.close(resolve))
})

test('closing aborts requests in flight', async () => {
  hook.respond(() => {})
  const outcome = open(LOCAL).send(post())
  await hook.until(1)
  await sender?.close()
  expect(await outcome).toMatchObject({ kind: 'failed', reason: 'connection' })
})

test('attempts that time out leave no connection open and open none afterwards', async () => {
  hook.respond(() => {})
  const hanging = open(LOCAL)
  const post200 = { ...post(), timeoutMs: 200 }
  for (let round = 0; round < 5; round++) {
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => hanging.send(post200)))
    expect(outcomes.map(outcome => outcome.kind === 'failed' && outcome.reason)).toEqual(Array(6).fill('timeout'))
  }
  await hook.waitUntil(() => hook.open() === 0)
  // One more request gives pending connections the chance to connect.
  hook.respond(OK)
  expect(await hanging.send(post())).toMatchObject({ status: 200 })
  expect([hook.open(), hook.connections()]).toEqual([1, 31])
})

test('a response that never ends costs its connection', async () => {
  hook.respond(response => void response.writeHead(200).write('x'.repeat(200_000)))
  expect(await open(LOCAL).send(post())).toMatchObject({ kind: 'answered', status: 200 })
  await hook.waitUntil(() => hook.open() === 0)
  expect(hook.connections()).toBe(1)
})
