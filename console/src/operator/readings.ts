/** The figures of the screen *Operations*, derived from consecutive readings of `/metrics`. */
import { bucketsOf, parseExposition, quantileBetween, type Sample, sumOf } from './exposition.ts'

/** One reading of `/metrics`. */
export interface Reading {
  /** Milliseconds of a monotonic clock. */
  readonly atMs: number
  readonly samples: readonly Sample[]
}

/** The values of the charts for one interval; null where nothing happened or a figure does not exist. */
export interface Figures {
  readonly requests: number
  readonly errors: number
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly busy: number
  readonly idle: number
  readonly waiting: number
  /** Hits of all cacheable reads, from 0 to 1. */
  readonly hits: number | null
  readonly cached: number
  readonly sockets: number
  readonly subscriptions: number
}

export function readingOf(text: string, atMs: number): Reading {
  return { atMs, samples: parseExposition(text) }
}

const DURATIONS = 'svc_http_request_duration_seconds'

export function figuresBetween(before: Reading, after: Reading): Figures {
  const seconds = Math.max((after.atMs - before.atMs) / 1_000, 0.001)
  // Counters start at 0 with the process, so a restart must not show negative rates.
  const grown = (name: string): number => Math.max(sumOf(after.samples, name) - sumOf(before.samples, name), 0)
  const [earlier, later] = [bucketsOf(before.samples, DURATIONS), bucketsOf(after.samples, DURATIONS)]
  const quantile = (of: number): number | null => {
    const found = quantileBetween(earlier, later, of)
    return found === null ? null : 1_000 * found
  }
  const now = (name: string, labels: Sample['labels'] = {}): number => sumOf(after.samples, name, labels)
  const [hits, misses] = [grown('svc_cache_hits_total'), grown('svc_cache_misses_total')]
  return {
    requests: grown('svc_http_requests_total') / seconds,
    errors: grown('svc_http_errors_total') / seconds,
    ...{ p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) },
    busy: now('svc_pool_connections', { state: 'busy' }),
    idle: now('svc_pool_connections', { state: 'idle' }),
    waiting: now('svc_pool_waiting'),
    hits: hits + misses === 0 ? null : hits / (hits + misses),
    cached: now('svc_cache_entries'),
    sockets: now('svc_realtime_sockets'),
    subscriptions: now('svc_realtime_subscriptions'),
  }
}
