/**
 * docs/guides/webhooks.md#retries-and-order: retries, delays and dead letters, on a
 * clock of the test.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { type TestClock, testClock, turn } from '../../test/support/test-clock.ts'
import type { Event } from '../events.ts'
import { createDeadLetters, type DeadLetters } from './dead-letters.ts'
import { createDeliverer, type Deliverer } from './deliverer.ts'
import type { Delivery, Outcome } from './delivery.ts'
import { PAYLOAD_BYTES_MAX } from './payload.ts'
import type { WebhookRequest } from './sender.ts'
import type { Trigger } from './trigger.ts'

const TRIGGER: Trigger = {
  ...{ name: 'hook', table: 't', operations: ['create'], url: new URL('https://example.com/hook'), retryCount: 3 },
  ...{
    headers: { 'x-a': 'b' },
    enabled: true,
    columns: null,
    secrets: [],
    timeoutMs: 5_000,
    source: 'gateway',
    order: 'none',
  },
}

const answered = (status: number, retryAfter: string | null = null): Outcome => ({
  ...{ kind: 'answered', status, retryAfter, body: `says ${status}` },
})

let clock: TestClock
let sent: { readonly post: WebhookRequest; readonly atMs: number; readonly answer: (outcome: Outcome) => void }[]
let deadLetters: DeadLetters
let deliverer: Deliverer
let trigger: Trigger | undefined
let disabled: string[]
let events: Event[]
let random: number
beforeEach(() => {
  clock = testClock(0)
  sent = []
  deadLetters = createDeadLetters()
  trigger = TRIGGER
  disabled = []
  events = []
  random = 0.5
  deliverer = createDeliverer({
    triggers: {
      named: name => (name === 'hook' ? trigger : undefined),
      isActive: ({ name, enabled }) => enabled && !disabled.includes(name),
      disable: name => disabled.push(name),
    },
    sender: { send: post => new Promise(answer => sent.push({ post, atMs: clock.now(), answer })) },
    ...{ deadLetters, clock, random: () => random, userAgent: 'svc/test', emit: event => events.push(event) },
  })
})

function delivery(of: Partial<Delivery> = {}): Delivery {
  const rest = { trigger: 'hook', endpoint: 'https://example.com', table: 't', operation: 'INSERT' } as const
  return { ...rest, id: 'msg_1', body: Buffer.from('{}'), createdAtMs: 0, traceparent: null, tries: 0, ...of }
}

/** The outcome of the last attempt. */
async function answer(outcome: Outcome): Promise<void> {
  sent.at(-1)?.answer(outcome)
  await turn()
}

const letters = () =>
  deadLetters.all().map(({ delivery: { id, tries }, reason, outcome }) => ({ id, tries, reason, outcome }))

test('a successful delivery is finished', async () => {
  deliverer.add(delivery())
  expect(sent[0]?.post).toMatchObject({
    ...{ url: TRIGGER.url, timeoutMs: 5_000, body: Buffer.from('{}') },
    headers: { 'x-a': 'b', 'user-agent': 'svc/test', 'content-type': 'application/json', 'webhook-id': 'msg_1' },
  })
  await answer(answered(204))
  expect(deliverer.stats()).toMatchObject({ ready: 0, waiting: 0, inFlight: 0 })
  expect([clock.due(), letters()]).toEqual([[], []])
})

test('a failed delivery is retried after 1, 2 and 4 s and then becomes a dead letter', async () => {
  deliverer.add(delivery())
  for (let tries = 0; tries < 4; tries++) {
    await answer(tries === 1 ? { kind: 'failed', reason: 'timeout', message: 'slow' } : answered(500))
    await clock.advance(10_000)
  }
  const starts = sent.map(({ atMs }) => atMs)
  expect(starts).toEqual([0, 1_000, 12_000, 24_000])
  expect(letters()).toEqual([{ id: 'msg_1', tries: 4, reason: 'failed 4 times: answered 500', outcome: answered(500) }])
  const outcomes = events.flatMap(event => (event.kind === 'webhook attempt' ? [event.outcome] : []))
  expect(outcomes).toEqual(['refused', 'timeout', 'refused', 'refused'])
})

test('jitter and Retry-After determine the delay', async () => {
  random = 0
  deliverer.add(delivery())
  await answer(answered(500))
  expect(clock.due()).toEqual([800])
  await clock.advance(800)
  await answer(answered(429, '60'))
  expect(clock.due()).toEqual([60_000])
  await clock.advance(60_000)
  await answer(answered(503, 'Thu, 01 Jan 1970 00:05:00 GMT'))
  expect(clock.due()).toEqual([300_000 - 60_800])
})

test('each attempt uses the trigger as it is then', async () => {
  deliverer.add(delivery())
  await answer(answered(500))
  trigger = { ...TRIGGER, url: new URL('https://other.example/'), headers: {} }
  await clock.advance(1_000)
  expect(sent[1]?.post.url.host).toBe('other.example')
  await answer(answered(500))
  trigger = undefined
  await clock.advance(2_000)
  expect(sent).toHaveLength(2)
  expect(letters()).toMatchObject([{ tries: 2, reason: 'the trigger no longer exists' }])
})

test('status 410 disables the trigger and makes its queued deliveries dead letters', async () => {
  deliverer.add(delivery())
  await answer(answered(500))
  deliverer.add(delivery({ id: 'msg_2' }))
  await answer(answered(410))
  expect(disabled).toEqual(['hook'])
  await clock.advance(1_000)
  expect(sent).toHaveLength(2)
  expect(letters()).toMatchObject([
    { id: 'msg_2', reason: 'the endpoint answered 410 Gone' },
    { id: 'msg_1', reason: 'the trigger is disabled' },
  ])
})

test('thousands of deliveries of a removed trigger become dead letters immediately', () => {
  trigger = undefined
  for (let id = 0; id < 9_000; id++) deliverer.add(delivery({ id: `msg_${id}` }))
  expect(letters()).toHaveLength(9_000)
})

test('a body that is too large is neither sent nor kept', () => {
  deliverer.add(delivery({ body: Buffer.alloc(PAYLOAD_BYTES_MAX) }))
  deliverer.add(delivery({ id: 'msg_2', body: Buffer.alloc(PAYLOAD_BYTES_MAX + 1) }))
  expect(sent).toHaveLength(1)
  expect(deadLetters.all()).toMatchObject([
    { delivery: { id: 'msg_2', body: Buffer.alloc(0) }, reason: expect.stringContaining('1048577 bytes') },
  ])
})

describe('draining', () => {
  test('finishes deliveries in flight and ready ones, and gives up those waiting for a retry', async () => {
    for (let id = 0; id < 10; id++) deliverer.add(delivery({ id: `msg_${id}` }))
    await answer(answered(500))
    let lost: number | null = null
    void deliverer.drain().then(count => {
      lost = count
    })
    for (let at = 0; at < sent.length; at++) {
      expect(lost).toBeNull()
      sent[at]?.answer(answered(at === 3 ? 500 : 200))
      await turn()
    }
    expect([sent.length, lost, clock.due()]).toEqual([10, 2, []])
  })

  test('resolves immediately when there is nothing to do', async () => {
    expect(await deliverer.drain()).toBe(0)
  })

  test('sends nothing more after a stop', async () => {
    for (let id = 0; id < 10; id++) deliverer.add(delivery({ id: `msg_${id}` }))
    expect(deliverer.stop()).toBe(2)
    await answer(answered(200))
    expect(sent).toHaveLength(8)
  })
})
