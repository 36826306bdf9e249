/** Adds the metrics of several workers. */
import type { HistogramValue, Quantiles, Sample } from './exposition.ts'
import { type CollectedSamples, METRICS, type MetricKey } from './metric-table.ts'

type Combine = (one: number, other: number) => number

const add: Combine = (one, other) => one + other

/** Gauges that are not sums: of what all workers share, or of what is worst or oldest among them. */
const COMBINED: Partial<Record<MetricKey, Combine>> = {
  cacheKnownAge: Math.max,
  replicaAvailable: Math.min,
  replicaLag: Math.max,
  schemaTables: Math.max,
  schemaVersion: Math.max,
  schemaAge: Math.max,
  realtimeTables: Math.max,
  realtimeLogReading: Math.max,
  realtimeListening: Math.max,
  webhookOldest: Math.max,
  webhookFailing: Math.max,
  webhookDisabled: Math.max,
  issuerKeys: Math.max,
  issuerStale: Math.max,
  sharedConnected: Math.min,
  build: Math.max,
  warnings: Math.max,
  startTime: Math.min,
}

/** Metrics with the label `storage`: every worker counts the same outbox, and each has its own memory. */
const BY_STORAGE: ReadonlySet<MetricKey> = new Set<MetricKey>(['webhookQueue', 'webhookDead'])

/** The metrics of all workers together. */
export function mergeMetrics(collected: readonly CollectedSamples[]): CollectedSamples {
  return Object.fromEntries(
    (Object.keys(METRICS) as MetricKey[]).map(key => [
      key,
      mergeSamples(
        collected.map(of => of[key]),
        sample => combineOf(key, sample),
      ),
    ]),
  ) as unknown as CollectedSamples
}

/** The metrics that remain of workers that have ended: counters and histograms, which never decrease. */
export function addEndedMetrics(one: unknown, other: unknown): unknown {
  const both = [one, other].filter(value => value !== null) as CollectedSamples[]
  if (both.length === 0) return null
  const merged = mergeMetrics(both)
  return Object.fromEntries(
    (Object.keys(METRICS) as MetricKey[]).map(key => [key, isCounted(METRICS[key].type) ? merged[key] : []]),
  )
}

function isCounted(type: string): boolean {
  return type === 'counter' || type === 'histogram'
}

function combineOf(key: MetricKey, { labels: [first] }: Sample): Combine {
  if (BY_STORAGE.has(key)) return first === 'outbox' ? Math.max : add
  return COMBINED[key] ?? add
}

function mergeSamples(lists: readonly (readonly Sample[])[], combine: (sample: Sample) => Combine): readonly Sample[] {
  const merged = new Map<string, Sample>()
  for (const sample of lists.flat()) {
    const name = JSON.stringify(sample.labels)
    const known = merged.get(name)
    merged.set(
      name,
      known === undefined ? sample : { ...sample, value: both(known.value, sample.value, combine(sample)) },
    )
  }
  return [...merged.values()]
}

function both(one: Sample['value'], other: Sample['value'], combine: Combine): Sample['value'] {
  if (typeof one === 'number' || typeof other === 'number') return combine(one as number, other as number)
  if ('bounds' in one && 'bounds' in other) return bothBuckets(one, other)
  return bothQuantiles(one as Quantiles, other as Quantiles)
}

function bothBuckets(one: HistogramValue, other: HistogramValue): HistogramValue {
  const counts = Array.from(one.counts, (count, index) => count + (other.counts[index] ?? 0))
  const merged = { bounds: one.bounds, counts, sum: one.sum + other.sum }
  if (one.exemplars === undefined && other.exemplars === undefined) return merged
  // One of each bucket, whichever worker has it.
  return { ...merged, exemplars: counts.map((_, index) => one.exemplars?.[index] ?? other.exemplars?.[index] ?? null) }
}

/** Quantiles cannot be added; the larger one is an upper bound. */
function bothQuantiles(one: Quantiles, other: Quantiles): Quantiles {
  const quantiles = new Map(
    [...one.quantiles].map(([quantile, value]) => [quantile, larger(value, other.quantiles.get(quantile) ?? NaN)]),
  )
  return { quantiles, sum: one.sum + other.sum, count: one.count + other.count }
}

/** NaN: no measurements. */
function larger(one: number, other: number): number {
  return Number.isNaN(one) ? other : Number.isNaN(other) ? one : Math.max(one, other)
}
