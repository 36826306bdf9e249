/**
 * Counts requests and their outcomes. It runs for every request, so it does not allocate for known series.
 */
import { type ErrorCode, STATUS_OF } from '../errors.ts'
import type { RequestEvent } from '../events.ts'
import { isSampled } from '../trace-context.ts'
import { Durations } from './durations.ts'
import type { Sample } from './exposition.ts'
import type { CollectedSamples } from './metric-table.ts'

/** The metrics of requests. */
export interface RequestMetrics {
  record(event: RequestEvent, nowMs: number): void
  collect(nowMs: number): CollectedSamples<'requests' | 'errors' | 'duration' | 'latency'>
}

/**
 * The methods that are counted separately. All others that HTTP allows are `other`, because callers choose
 * them.
 */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

const OTHER = 'other'

interface Series {
  readonly method: string
  readonly route: string
  /** The counts by the first digit of the status. */
  readonly statuses: number[]
  readonly durations: Durations
}

/** Creates the metrics of requests. */
export function createRequestMetrics(): RequestMetrics {
  // Routes are patterns, and there are about a dozen.
  const byRoute = new Map<string, Map<string, Series>>()
  const errors = new Map<ErrorCode, number>((Object.keys(STATUS_OF) as ErrorCode[]).map(code => [code, 0]))

  function seriesOf(method: string, route: string): Series {
    return byRoute.get(route)?.get(method) ?? newSeries(METHODS.has(method) ? method : OTHER, route)
  }

  function newSeries(method: string, route: string): Series {
    const byMethod = byRoute.get(route) ?? new Map<string, Series>()
    byRoute.set(route, byMethod)
    const series = byMethod.get(method) ?? { method, route, statuses: [0, 0, 0, 0, 0, 0], durations: new Durations() }
    byMethod.set(method, series)
    return series
  }

  return {
    record({ method, route, status, durationMs, code, trace }, nowMs) {
      const { statuses, durations } = seriesOf(method, route)
      const digit = Math.floor(status / 100)
      statuses[digit] = (statuses[digit] ?? 0) + 1
      durations.record(durationMs / 1_000, nowMs, trace !== null && isSampled(trace) ? trace : null)
      if (code !== null) errors.set(code, (errors.get(code) ?? 0) + 1)
    },
    collect(nowMs) {
      const all = [...byRoute.values()].flatMap(byMethod => [...byMethod.values()])
      return {
        requests: all.flatMap(statusSamples),
        errors: [...errors].map(([code, value]) => ({ labels: [code], value })),
        duration: all.map(({ method, route, durations }) => ({ labels: [method, route], value: durations.buckets() })),
        latency: all.map(({ method, route, durations }) => ({
          labels: [method, route],
          value: durations.quantiles(nowMs),
        })),
      }
    },
  }
}

function statusSamples({ method, route, statuses }: Series): readonly Sample[] {
  return statuses.flatMap((value, digit) => (value === 0 ? [] : [{ labels: [method, route, `${digit}xx`], value }]))
}
