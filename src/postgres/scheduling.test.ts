/** The choice of a connection for the next request: fast work is packed, slow work is kept apart. */
import { expect, test } from 'vitest'
import { Flow } from './flow.ts'
import { createLatencyEstimates, UNKNOWN_LATENCY_MS } from './latency-estimates.ts'
import { choose } from './scheduling.ts'

const flow = new Flow('a tenant')
const other = new Flow('another tenant')

function connection(
  name: string,
  waitMs: number,
  depth = waitMs > 0 ? 1 : 0,
  accepting = true,
  owner: Flow | null = flow,
) {
  return { name, depth, accepting, owner, waitMs: () => waitMs }
}

test('fast work goes to the busiest connection, as long as the wait is short', () => {
  const candidates = [
    connection('idle', 0),
    connection('busy', 0.3),
    connection('busier', 1.9),
    connection('too busy', 2.1),
  ]
  expect(choose(candidates, flow, true, 0.05, 0)).toEqual({ candidate: candidates[2], grow: false })
})

test('slow work is not sent behind other requests', () => {
  const candidates = [connection('busy', 0.3), connection('idle', 0)]
  expect(choose(candidates, flow, true, 1.1, 0)).toEqual({ candidate: candidates[1], grow: false })
})

test('if every wait is longer, it goes to the shortest and requests one more connection', () => {
  const candidates = [connection('a', 4), connection('b', 3)]
  expect(choose(candidates, flow, true, 0.05, 0)).toEqual({ candidate: candidates[1], grow: true })
})

test('work that is slow or of unknown duration is sent on an idle connection', () => {
  const candidates = [connection('busy', 0.3), connection('idle', 0)]
  expect(choose(candidates, flow, true, UNKNOWN_LATENCY_MS, 0)).toEqual({ candidate: candidates[1], grow: false })
})

test('slower work waits in the pool rather than behind others', () => {
  const candidates = [connection('a', 0.8), connection('b', 0.9)]
  expect(choose(candidates, flow, true, 0.4, 0)).toEqual({ candidate: null, grow: true })
  const [next, last] = [connection('one ahead', 0.7), connection('b', 0.9)]
  expect(choose([last, next], flow, true, 0.4, 0)).toEqual({ candidate: next, grow: true })
})

test('nothing is sent behind a slow statement; it waits for the first free connection', () => {
  const candidates = [connection('long queue', 5.1), connection('slow statement', Infinity)]
  expect(choose(candidates, flow, true, 0.05, 0)).toEqual({ candidate: null, grow: true })
})

test('a connection that accepts nothing is not chosen', () => {
  const candidates = [connection('streaming', 0, 1, false), connection('ordinary', 0.5)]
  expect(choose(candidates, flow, true, 0.05, 0)).toEqual({ candidate: candidates[1], grow: false })
  expect(choose([candidates[0] as (typeof candidates)[0]], flow, true, 0.05, 0).candidate).toBeNull()
})

test('another flow’s connection is never chosen, and a free one only if the share allows it', () => {
  const taken = connection('of another', 0.1, 1, true, other)
  const free = connection('free', 0, 0, true, null)
  expect(choose([taken, free], flow, true, 0.05, 0)).toEqual({ candidate: free, grow: false })
  expect(choose([taken, free], flow, false, 0.05, 0)).toEqual({ candidate: null, grow: true })
})

test('a new text has no estimate; then the estimate follows its latency, more slowly upwards', () => {
  const costs = createLatencyEstimates()
  expect(costs.expect('select 1')).toBe(UNKNOWN_LATENCY_MS)
  costs.learn('select 1', 1)
  expect(costs.expect('select 1')).toBe(1)
  costs.learn('select 1', 2)
  expect(costs.expect('select 1')).toBeCloseTo(1.02)
  costs.learn('select 1', 0.02)
  expect(costs.expect('select 1')).toBeCloseTo(0.92)
})

test('a statement that is clearly slow sometimes is not fast', () => {
  const costs = createLatencyEstimates()
  for (let n = 1; n <= 500; n++) costs.learn('select 1', n % 10 === 0 ? 20 : 0.1)
  expect(costs.expect('select 1')).toBeGreaterThan(1)
})

test('a statement that is slow every other time is estimated by its fast runs, and is slow if it always is', () => {
  const costs = createLatencyEstimates()
  for (let n = 0; n < 500; n++) costs.learn('select 1', n % 2 === 0 ? 0.1 : 0.7)
  expect(costs.expect('select 1')).toBeCloseTo(0.2, 1)
  for (let n = 0; n < 5; n++) costs.learn('select 1', 20)
  expect(costs.expect('select 1')).toBeGreaterThan(1)
})

test('one stall counts as 50 ms at most', () => {
  const costs = createLatencyEstimates()
  costs.learn('select 1', 60_000)
  expect(costs.expect('select 1')).toBe(50)
})

test('at most 10 000 estimates are kept; the oldest is dropped', () => {
  const costs = createLatencyEstimates()
  for (let index = 0; index <= 10_000; index++) costs.learn(`select ${index}`, 1)
  expect(costs.expect('select 0')).toBe(UNKNOWN_LATENCY_MS)
  expect(costs.expect('select 1')).toBe(1)
})
