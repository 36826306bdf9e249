import { expect, test } from 'vitest'
import { addEndedMetrics, mergeMetrics } from './merge-metrics.ts'
import { type CollectedSamples, METRICS, type MetricKey } from './metric-table.ts'

/** Samples of some metrics, and none of the others. */
function collected(samples: Partial<CollectedSamples>): CollectedSamples {
  const none = Object.fromEntries((Object.keys(METRICS) as MetricKey[]).map(key => [key, []]))
  return { ...(none as unknown as CollectedSamples), ...samples }
}

const one = (value: number) => [{ labels: [], value }]

test('counters and amounts are added by their labels', () => {
  const merged = mergeMetrics([
    collected({ cacheHits: one(2), poolConnections: [{ labels: ['idle'], value: 1 }] }),
    collected({ cacheHits: one(3), poolConnections: [{ labels: ['busy'], value: 4 }] }),
  ])
  expect(merged.cacheHits).toEqual(one(5))
  expect(merged.poolConnections).toEqual([
    { labels: ['idle'], value: 1 },
    { labels: ['busy'], value: 4 },
  ])
})

test('of shared states, the worst or oldest is shown', () => {
  const merged = mergeMetrics([
    collected({ schemaAge: one(5), startTime: one(100), build: one(1) }),
    collected({ schemaAge: one(9), startTime: one(50), build: one(1) }),
  ])
  expect([merged.schemaAge, merged.startTime, merged.build]).toEqual([one(9), one(50), one(1)])
})

test('the outbox is counted once, and memory in each worker', () => {
  const queue = (storage: string, value: number) => ({ labels: [storage, 'ready'], value })
  const of = collected({ webhookQueue: [queue('outbox', 7), queue('memory', 7)] })
  expect(mergeMetrics([of, of]).webhookQueue).toEqual([queue('outbox', 7), queue('memory', 14)])
})

test('the buckets of histograms are added; quantiles are those of the slowest worker', () => {
  const lag = (counts: number[]) => [
    { labels: [], value: { bounds: [1, 2], counts: Float64Array.from(counts), sum: 3 } },
  ]
  const latency = (value: number) => [{ labels: [], value: { quantiles: new Map([[0.5, value]]), sum: 1, count: 2 } }]
  const merged = mergeMetrics([
    collected({ eventLoopLag: lag([1, 2, 3]), latency: latency(Number.NaN) }),
    collected({ eventLoopLag: lag([1, 1, 1]), latency: latency(0.2) }),
  ])
  expect(merged.eventLoopLag).toEqual([{ labels: [], value: { bounds: [1, 2], counts: [2, 3, 4], sum: 6 } }])
  expect(merged.latency).toEqual([{ labels: [], value: { quantiles: new Map([[0.5, 0.2]]), sum: 2, count: 4 } }])
})

test('of workers that have ended, counters remain and amounts do not', () => {
  const first = addEndedMetrics(null, collected({ cacheHits: one(2), cacheEntries: one(9) }))
  const both = addEndedMetrics(first, collected({ cacheHits: one(3) })) as CollectedSamples
  expect(both.cacheHits).toEqual(one(5))
  expect(both.cacheEntries).toEqual([])
  expect(addEndedMetrics(null, null)).toBeNull()
})
