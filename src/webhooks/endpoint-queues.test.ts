/**
 * Delivery queues are fair between endpoints, and bounded
 * (docs/guides/webhooks.md#retries-and-order).
 */
import { expect, test } from 'vitest'
import type { Delivery } from './delivery.ts'
import {
  ENDPOINT_IN_FLIGHT_MAX,
  EndpointQueues,
  FAILURES_UNTIL_THROTTLED,
  HELD_BYTES_MAX,
  HELD_MAX,
  IN_FLIGHT_MAX,
} from './endpoint-queues.ts'

function delivery(endpoint: string, id: string | number, bytes = 1): Delivery {
  const rest = { trigger: 't', table: 'x', operation: 'INSERT', createdAtMs: 0, traceparent: null, tries: 0 } as const
  return { ...rest, endpoint, id: String(id), body: Buffer.alloc(bytes) }
}

function takeAll(lanes: EndpointQueues): readonly Delivery[] {
  const taken: Delivery[] = []
  for (let next = lanes.take(); next !== null; next = lanes.take()) taken.push(next)
  return taken
}

test('endpoints take turns, however many deliveries each has waiting', () => {
  const lanes = new EndpointQueues()
  for (let id = 0; id < 5; id++) lanes.add(delivery('a', `a${id}`))
  lanes.add(delivery('b', 'b0'))
  lanes.add(delivery('c', 'c0'))
  expect(takeAll(lanes).map(({ id }) => id)).toEqual(['a0', 'b0', 'c0', 'a1', 'a2', 'a3', 'a4'])
})

test('requests in flight are limited per endpoint and in total', () => {
  const lanes = new EndpointQueues()
  for (let id = 0; id < 20; id++) lanes.add(delivery('a', id))
  const [first] = takeAll(lanes)
  expect(lanes.stats()).toMatchObject({ inFlight: ENDPOINT_IN_FLIGHT_MAX, ready: 12 })
  if (first === undefined) throw new Error('nothing was taken')
  lanes.finish(first)
  expect(takeAll(lanes)).toHaveLength(1)
  for (let at = 0; at < 20; at++) for (let id = 0; id < 10; id++) lanes.add(delivery(`e${at}`, id))
  takeAll(lanes)
  expect(lanes.stats().inFlight).toBe(IN_FLIGHT_MAX)
})

test('an endpoint that keeps failing is throttled to one request at a time until one succeeds', () => {
  const lanes = new EndpointQueues()
  for (let id = 0; id < 20; id++) lanes.add(delivery('a', id))
  const taken = takeAll(lanes)
  for (const each of taken.slice(0, FAILURES_UNTIL_THROTTLED)) {
    lanes.recordOutcome(each, 'bad')
    lanes.finish(each)
  }
  expect(takeAll(lanes)).toEqual([])
  for (const each of taken.slice(FAILURES_UNTIL_THROTTLED)) lanes.finish(each)
  const [single, ...others] = takeAll(lanes)
  expect([single === undefined, others.length, lanes.stats().throttled]).toEqual([false, 0, 1])
  if (single === undefined) return
  lanes.recordOutcome(single, 'good')
  lanes.finish(single)
  expect(takeAll(lanes)).toHaveLength(ENDPOINT_IN_FLIGHT_MAX)
})

test('over the limit, the endpoint that holds most loses the delivery that has waited longest for a retry', () => {
  const lanes = new EndpointQueues()
  const failing = delivery('a', 'failing')
  lanes.add(failing)
  lanes.take()
  let cancelled = false
  lanes.retry(failing, failing, () => () => {
    cancelled = true
  })
  for (let id = 1; id < HELD_MAX - 1; id++) lanes.add(delivery('a', id))
  expect(lanes.add(delivery('b', 'b0'))).toEqual([])
  expect(lanes.add(delivery('b', 'b1'))).toEqual([failing])
  expect(cancelled).toBe(true)
  expect(lanes.add(delivery('b', 'b2')).map(({ id }) => id)).toEqual(['1'])
  expect(lanes.stats()).toMatchObject({ ready: HELD_MAX, waiting: 0, bytes: HELD_MAX })
})

test('the bytes held are limited as well', () => {
  const lanes = new EndpointQueues()
  lanes.add(delivery('a', 'large', HELD_BYTES_MAX))
  expect(lanes.add(delivery('b', 'small')).map(({ id }) => id)).toEqual(['large'])
  expect(lanes.stats().bytes).toBe(1)
})

test('a woken delivery is ready again; clearing a queue cancels its retries', () => {
  const lanes = new EndpointQueues()
  const [one, two] = [delivery('a', 1), delivery('a', 2)]
  for (const each of [one, two]) {
    lanes.add(each)
    lanes.take()
    lanes.retry(each, each, () => () => {})
  }
  expect(lanes.take()).toBeNull()
  lanes.wake(one)
  expect(lanes.take()).toBe(one)
  expect(lanes.clear('waiting')).toEqual([two])
  lanes.wake(two)
  expect(lanes.take()).toBeNull()
  expect(lanes.isIdle()).toBe(false)
  lanes.finish(one)
  expect(lanes.isIdle()).toBe(true)
  expect(lanes.stats()).toEqual({ ready: 0, waiting: 0, inFlight: 0, bytes: 0, oldestMs: null, throttled: 0 })
})
