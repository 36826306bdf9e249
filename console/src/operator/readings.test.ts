import { expect, test } from 'vitest'
import { figuresBetween, readingOf } from './readings.ts'

const text = (requests: number, hits: number) => `svc_http_requests_total{route="a"} ${requests}
svc_http_request_duration_seconds_bucket{le="0.01"} ${requests}
svc_http_request_duration_seconds_bucket{le="+Inf"} ${requests}
svc_pool_connections{state="busy"} 2
svc_pool_connections{state="idle"} 3
svc_cache_hits_total ${hits}
svc_cache_misses_total ${requests - hits}
svc_realtime_sockets 4
`

test('rates and quantiles are those of the interval', () => {
  const figures = figuresBetween(readingOf(text(100, 50), 1_000), readingOf(text(120, 65), 3_000))
  expect(figures).toMatchObject({ requests: 10, errors: 0, busy: 2, idle: 3, hits: 0.75, sockets: 4 })
  expect(figures.p50).toBeCloseTo(5)
})

test('a restarted gateway has no negative rates, and an idle one has no quantiles', () => {
  expect(figuresBetween(readingOf(text(100, 50), 0), readingOf(text(0, 0), 1_000))).toMatchObject({
    ...{ requests: 0, hits: null, p50: null },
  })
})
