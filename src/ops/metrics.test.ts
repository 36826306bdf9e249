/** The output of `/metrics`, parsed as strictly as by Prometheus and promtool. */
import { afterEach, describe, expect, test } from 'vitest'
import { parseExposition, type Sample } from '../../test/support/exposition.ts'
import { PLAN_KINDS, type PlanStats } from '../compile/plans.ts'
import { STATUS_OF } from '../errors.ts'
import type { Event } from '../events.ts'
import { METRICS } from './metric-table.ts'
import { createMetrics, type Metrics, type MetricsParts, printMetrics } from './metrics.ts'

const ZEROS = Object.fromEntries(PLAN_KINDS.map(kind => [kind, 0])) as PlanStats['hits']

const PARTS: MetricsParts = {
  pool: {
    ...{ open: 3, opening: 1, idle: 2, busy: 1, streaming: 1, inFlight: 4, waiting: 5 },
    ...{ finished: 100, timedOut: 6, lost: 7, waitingFlows: 2, held: 8, streamsHeld: 9 },
  },
  replicas: null,
  cache: {
    hits: 11,
    misses: 12,
    bypassed: 3,
    knownAgeMs: 40,
    entries: 13,
    entriesMax: 1_000,
    weight: 14,
    weightMax: 15,
  },
  plans: { hits: { ...ZEROS, row: 21 }, misses: { ...ZEROS, text: 22 }, evictions: 23, entries: 24, characters: 25 },
  maxConnections: 10,
  feedConnections: 2,
  changes: null,
  schema: {
    ...{ fingerprint: 'f', tables: 8, serverVersion: 180_004, version: 2 },
    ...{ readAt: new Date(0), readAtMs: 1_000 },
    reloads: { changed: 1, unchanged: 2, failed: 3 },
  },
  realtime: {
    ...{ sockets: 3, subscriptions: 4, groups: 2, listening: true, queued: 5, refusals: { tenant_max_sockets: 6 } },
    queries: { certain: 12, possible: 13, delayed: 14, merged: 15 },
    tables: new Map([['orders', 'trigger']]),
    log: { reading: true, reads: 8, rows: 9 },
    ...{ liveQueries: 6, liveDriven: 5, liveSubscriptions: 7, liveRuns: 11 },
    counts: {
      ...{ notifications: 10, liveAnswers: 20, resyncs: new Map([['bulk', 2]]), errors: new Map([['PARSE_ERROR', 1]]) },
      ...{ lag: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], lagSum: 30 },
    },
  },
  http: {
    slowStreams: 3,
    connections: { taken: 40, refusals: { total: 1, share: 2 } },
    bodyBytes: { taken: 41, refusals: { total: 3, share: 4 } },
    unsentBytes: { taken: 42, refusals: { total: 5, share: 6 } },
    resultBytes: 43,
    largeBodies: 44,
    pipelinedWaits: 45,
    shapesWaiting: 12,
    shapesRefused: 13,
    shapeRefetches: 7,
  },
  warnings: 9,
  webhooks: null,
  tracing: { exported: 31, failed: 2 },
  shared: { isConnected: true, failures: 3 },
  issuers: [{ issuer: 'https://id.example', keys: 2, staleMs: 1_500, fetched: 3, failed: 4 }],
}

let now = 0
const opened: Metrics[] = []
function open(): Metrics {
  now = 61_000
  const metrics = createMetrics({ version: '1.2.3', now: () => now })
  opened.push(metrics)
  return metrics
}
afterEach(() => {
  for (const metrics of opened.splice(0)) metrics.close()
})

const request = (of: Partial<Extract<Event, { kind: 'request' }>> = {}): Event => ({
  ...{ kind: 'request', method: 'GET', route: '/api/{table}/{id}', status: 200, code: null, durationMs: 2 },
  ...{ role: null, path: null, table: null, function: null, rows: null, databaseMs: null, cache: null },
  ...{ requestId: 'r', tenantId: 'the-tenant', trace: null },
  ...of,
})

const database = (event: string): Event => ({ kind: 'database', event, detail: {} })

/** The samples of a metric as text, with the labels in their printed order. */
async function samples(metrics: Metrics, name: string): Promise<readonly string[]> {
  const families = parseExposition(printMetrics(await metrics.collect(PARTS)))
  const print = ({ labels, value }: Sample) => [...Object.values(labels), value].join(' ')
  return families.get(name)?.samples.map(print) ?? []
}

test('exactly the metrics of the table are printed, in its order', async () => {
  const families = parseExposition(printMetrics(await open().collect(PARTS)))
  expect([...families.keys()]).toEqual(Object.values(METRICS).map(({ name }) => name))
  for (const metric of Object.values(METRICS)) {
    const { name, type } = families.get(metric.name) ?? {}
    expect([name, type]).toEqual([metric.name, metric.type])
    expect(metric.name).toMatch(/^svc_/)
  }
})

test('changes of the Kerberos circuit are counted by the new state', async () => {
  const metrics = open()
  const name = 'svc_kerberos_circuit_transitions_total'
  expect(await samples(metrics, name)).toEqual(['open 0', 'half-open 0', 'closed 0'])
  metrics.hear({ kind: 'circuit', from: 'closed', to: 'open', error: new Error('KDC') })
  metrics.hear({ kind: 'circuit', from: 'open', to: 'half-open', error: null })
  metrics.hear({ kind: 'circuit', from: 'half-open', to: 'open', error: new Error('KDC') })
  expect(await samples(metrics, name)).toEqual(['open 2', 'half-open 1', 'closed 0'])
})

describe('requests', () => {
  test('are counted by method, route and status class', async () => {
    const metrics = open()
    metrics.hear(request())
    metrics.hear(request({ status: 404, code: 'NOT_FOUND' }))
    metrics.hear(request({ status: 403, code: 'FORBIDDEN' }))
    metrics.hear(request({ method: 'POST', route: '/api/{table}', status: 201 }))
    expect(await samples(metrics, 'svc_http_requests_total')).toEqual([
      'GET /api/{table}/{id} 2xx 1',
      'GET /api/{table}/{id} 4xx 2',
      'POST /api/{table} 2xx 1',
    ])
  })
  test('with unsupported methods are counted together', async () => {
    const metrics = open()
    for (const method of ['PROPFIND', 'MKCOL', 'other', '__proto__']) metrics.hear(request({ method, status: 405 }))
    expect(await samples(metrics, 'svc_http_requests_total')).toEqual(['other /api/{table}/{id} 4xx 4'])
  })
  test('errors are counted by code, and unused codes are 0', async () => {
    const metrics = open()
    for (const code of ['TIMEOUT', 'TIMEOUT', 'INTERNAL'] as const) metrics.hear(request({ code }))
    const expected = Object.keys(STATUS_OF).map(code => `${code} ${{ TIMEOUT: 2, INTERNAL: 1 }[code] ?? 0}`)
    expect(await samples(metrics, 'svc_http_errors_total')).toEqual(expected)
  })
  test('durations are printed as buckets and as p50, p95 and p99', async () => {
    const metrics = open()
    for (let n = 0; n < 90; n++) metrics.hear(request({ durationMs: 0.6 }))
    for (let n = 0; n < 10; n++) metrics.hear(request({ durationMs: 60_000 }))
    const buckets = await samples(metrics, 'svc_http_request_duration_seconds')
    expect(buckets).toContain('GET /api/{table}/{id} 0.0005 0')
    expect(buckets).toContain('GET /api/{table}/{id} 0.001 90')
    expect(buckets).toContain('GET /api/{table}/{id} 30 90')
    expect(buckets).toContain('GET /api/{table}/{id} +Inf 100')
    const [p50, p95, p99, sum, count] = await samples(metrics, 'svc_http_request_latency_seconds')
    expect(Number(p50?.split(' ').at(-1))).toBeCloseTo(0.0005 + (0.0005 * 50) / 90)
    expect([p95, p99]).toEqual(['GET /api/{table}/{id} 0.95 30', 'GET /api/{table}/{id} 0.99 30'])
    expect(Number(sum?.split(' ').at(-1))).toBeCloseTo(600.054)
    expect(count).toBe('GET /api/{table}/{id} 100')
  })
  test('metrics contain no data of callers', async () => {
    const metrics = open()
    metrics.hear(request({ requestId: 'the-request', tenantId: 'the-tenant' }))
    expect(printMetrics(await metrics.collect(PARTS))).not.toMatch(/the-tenant|the-request/)
  })
})

test.each([
  ['svc_http_connections', ['40']],
  ['svc_http_inflight_body_bytes', ['41']],
  ['svc_http_unsent_bytes', ['42']],
  ['svc_http_result_bytes', ['43']],
  ['svc_http_large_bodies_total', ['44']],
  ['svc_http_pipelined_waits_total', ['45']],
  [
    'svc_http_limit_refusals_total',
    [
      ...['max_client_connections 1', 'address_max_client_connections 2'],
      ...['max_inflight_body_bytes 3', 'address_max_inflight_body_bytes 4'],
      ...['max_unsent_bytes 5', 'tenant_max_unsent_bytes 6'],
      'tenant_max_waiting_shapes 13',
    ],
  ],
  ['svc_pool_max_connections', ['10']],
  ['svc_pool_connections', ['idle 2', 'busy 1', 'opening 1']],
  ['svc_pool_streams', ['1']],
  ['svc_pool_in_flight', ['4']],
  ['svc_pool_waiting', ['5']],
  ['svc_pool_transactions_total', ['100']],
  ['svc_pool_acquire_timeouts_total', ['6']],
  ['svc_pool_connections_lost_total', ['7']],
  ['svc_schema_tables', ['8']],
  ['svc_schema_version', ['2']],
  ['svc_schema_age_seconds', ['60']],
  ['svc_schema_reloads_total', ['changed 1', 'unchanged 2', 'failed 3']],
  ['svc_boot_warnings', ['9']],
  ['svc_build_info', [`1.2.3 ${process.version} 1`]],
])('a metric has the counted value: %s', async (name, expected) => {
  expect(await samples(open(), name)).toEqual(expected)
})

test.each([
  ['connected', 'svc_pool_connects_total'],
  ['connect-failed', 'svc_pool_connect_failures_total'],
  ['retried', 'svc_pool_retries_total'],
  ['host-changed', 'svc_pool_failovers_total'],
  ['cancel-requested', 'svc_pool_cancel_requests_total'],
  ['listener lost', 'svc_listener_connections_lost_total'],
])('the event %s is counted as %s', async (event, name) => {
  const metrics = open()
  for (const heard of [event, event, 'listener connected', 'something else', '__proto__']) metrics.hear(database(heard))
  expect(await samples(metrics, name)).toEqual(['2'])
})

describe('the process', () => {
  test('is described in base units', async () => {
    const metrics = open()
    const only = async (name: string) => Number((await samples(metrics, name))[0])
    const startedSeconds = await only('svc_process_start_time_seconds')
    expect(Math.abs(Date.now() / 1_000 - process.uptime() - startedSeconds)).toBeLessThan(5)
    expect(await only('svc_process_cpu_seconds_total')).toBeGreaterThan(0.01)
    expect(await only('svc_process_resident_memory_bytes')).toBeGreaterThan(1e7)
    expect(await only('svc_nodejs_heap_used_bytes')).toBeGreaterThan(1e6)
    expect(await only('svc_nodejs_heap_limit_bytes')).toBeGreaterThan(await only('svc_nodejs_heap_used_bytes'))
    if (process.platform === 'linux') expect(await only('svc_process_open_fds')).toBeGreaterThan(3)
  })
  test('garbage collections are counted by kind', async () => {
    const metrics = open()
    const minor = async () => Number((await samples(metrics, 'svc_nodejs_gc_runs_total'))[0]?.split(' ')[1])
    // Until the young generation is full; the objects created here die at once.
    for (let made: unknown[] = []; (await minor()) === 0; made = []) for (let n = 0; n < 1e5; n++) made.push({ n })
    expect((await samples(metrics, 'svc_nodejs_gc_seconds_total')).map(line => line.split(' ')[0])).toEqual([
      ...['minor', 'major', 'incremental', 'weakcb'],
    ])
  })
  test('delays of the event loop are recorded', async () => {
    const metrics = open()
    for (const ms of [0, 20, 250]) metrics.delayed(ms)
    const lines = await samples(metrics, 'svc_nodejs_eventloop_lag_seconds')
    const of = (le: string) => Number(lines.find(line => line.startsWith(`${le} `))?.split(' ')[1])
    expect([of('0.05'), of('+Inf')]).toEqual([2, 3])
    expect(lines.at(-2)).toBe('0.27')
  })
})

test('realtime metrics are those of the hub', async () => {
  const metrics = open()
  expect(await samples(metrics, 'svc_realtime_subscriptions')).toEqual(['change 4', 'live query 7'])
  expect(await samples(metrics, 'svc_realtime_tables')).toEqual(['trigger 1', 'gateway 0'])
  expect(await samples(metrics, 'svc_realtime_live_runs_total')).toEqual(['11'])
  expect(await samples(metrics, 'svc_realtime_log_rows_total')).toEqual(['9'])
  expect(await samples(metrics, 'svc_realtime_groups')).toEqual(['change 2', 'live query 6'])
  expect(await samples(metrics, 'svc_realtime_notifications_total')).toEqual(['change 10', 'live query 20'])
  expect(await samples(metrics, 'svc_realtime_resyncs_total')).toEqual(['bulk 2'])
  expect(await samples(metrics, 'svc_realtime_visibility_queries_total')).toEqual(['known 12', 'unknown 13'])
  expect(await samples(metrics, 'svc_realtime_limit_delays_total')).toEqual([
    'tenant_max_unrouted_queries_per_sec 14',
    'unrouted_resync_interval_ms 15',
  ])
  expect(await samples(metrics, 'svc_realtime_errors_total')).toEqual(['PARSE_ERROR 1'])
  expect((await samples(metrics, 'svc_realtime_lag_seconds')).slice(-3)).toEqual(['+Inf 3', '30', '3'])
  metrics.hear(database('realtime listener lost'))
  expect(await samples(metrics, 'svc_realtime_connections_lost_total')).toEqual(['1'])
})
