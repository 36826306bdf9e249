/**
 * `GET /metrics` (docs/reference/metrics.md): counts what happens, and asks the parts for their state when it
 * is scraped.
 *
 * The text format is implemented here, because it runs for every request and must cost only a small part of
 * it; the usual package hashes the labels for each number.
 */

import type { ReaderStats } from '../changes/reader.ts'
import type { PlanStats } from '../compile/plans.ts'
import type { CircuitKind, Event } from '../events.ts'
import type { IssuerStats } from '../identity/issuers.ts'
import type { PoolStats } from '../postgres/pool.ts'
import { LAG_BOUNDS } from '../realtime/counts.ts'
import type { RealtimeStats } from '../realtime/realtime.ts'
import type { CacheStats } from '../run/cache/cache.ts'
import { FALLBACK_REASONS, PRIMARY_REASONS, type ReplicaStats } from '../run/replicas/read-routes.ts'
import type { SharedStats } from '../shared/shared-state.ts'
import { LIMIT_NAMES, type LimitName } from '../statement-limits.ts'
import type { TracingStats } from '../tracing/tracing.ts'
import type { WebhookStats } from '../webhooks/webhooks.ts'
import { type MetricsFormat, printMetric, type Sample } from './exposition.ts'
import { collectHttp, type HttpStats } from './http-metrics.ts'
import { collectIssuers } from './issuer-metrics.ts'
import { type CollectedSamples, METRICS, type MetricKey } from './metric-table.ts'
import { createProcessMetrics } from './process-metrics.ts'
import { createRequestMetrics } from './request-metrics.ts'
import type { SchemaStatus } from './schema-status.ts'
import { createWebhookMetrics } from './webhook-metrics.ts'

/** The metrics of the gateway. */
export interface Metrics {
  hear(event: Event): void
  /** Records how late the event loop ran a timer (event-loop.ts). */
  delayed(ms: number): void
  /** The samples of this process. */
  collect(parts: MetricsParts): Promise<CollectedSamples>
  close(): void
}

/** The current state of the parts, read when the metrics are collected. */
export interface MetricsParts {
  readonly pool: PoolStats
  /** Null if the result cache is disabled. */
  readonly cache: CacheStats | null
  /** The statistics of the read replicas, or null without any. */
  readonly replicas: ReplicaStats | null
  readonly plans: PlanStats
  readonly maxConnections: number
  readonly feedConnections: number
  /** The reader of the write-ahead log; null while it has not started. */
  readonly changes: ReaderStats | null
  readonly schema: SchemaStatus
  readonly realtime: RealtimeStats
  readonly http: HttpStats
  readonly warnings: number
  /** Null without webhook triggers. */
  readonly webhooks: WebhookStats | null
  /** Null if requests are not traced. */
  readonly tracing: TracingStats | null
  /** Null if nothing is shared with other machines. */
  readonly shared: SharedStats | null
  /** The identity providers whose keys are fetched. */
  readonly issuers: readonly IssuerStats[]
}

/** The dependencies of the metrics. */
export interface MetricsOptions {
  readonly version: string
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
}

/** Events of the pool and the listener by `kind`, and the metric that counts each. */
const COUNTED = {
  connected: 'poolConnects',
  'connect-failed': 'poolConnectFailures',
  retried: 'poolRetries',
  'host-changed': 'poolFailovers',
  'cancel-requested': 'poolCancels',
  'listener lost': 'listenerLost',
  'realtime listener lost': 'realtimeListenerLost',
} as const

type CountedKey = (typeof COUNTED)[keyof typeof COUNTED]

/** Creates the metrics of the gateway. */
export function createMetrics({ version, now }: MetricsOptions): Metrics {
  const requests = createRequestMetrics()
  const webhookAttempts = createWebhookMetrics()
  const processes = createProcessMetrics()
  const circuit = new Map<CircuitKind, number>([
    ['open', 0],
    ['half-open', 0],
    ['closed', 0],
  ])
  const refused = new Map<LimitName, number>(Object.values(LIMIT_NAMES).map(name => [name, 0]))
  const counts = new Map<string, number>(Object.keys(COUNTED).map(event => [event, 0]))

  function counted(): CollectedSamples<CountedKey> {
    const samples = Object.entries(COUNTED).map(([event, key]) => [key, one(counts.get(event) ?? 0)])
    return Object.fromEntries(samples) as CollectedSamples<CountedKey>
  }

  return {
    hear(event) {
      if (event.kind === 'request') requests.record(event, now())
      else if (event.kind === 'statement refused') refused.set(event.limit, (refused.get(event.limit) ?? 0) + 1)
      else if (event.kind === 'circuit') circuit.set(event.to, (circuit.get(event.to) ?? 0) + 1)
      else if (event.kind === 'webhook attempt') webhookAttempts.record(event, now())
      else if (event.kind === 'database') {
        const count = counts.get(event.event)
        if (count !== undefined) counts.set(event.event, count + 1)
      }
    },
    async collect(parts) {
      const { pool, cache, plans, maxConnections, feedConnections, schema, realtime, http, warnings, webhooks } = parts
      return {
        ...requests.collect(now()),
        ...counted(),
        statementsRefused: [...refused].map(([limit, value]) => ({ labels: [limit], value })),
        circuitTransitions: [...circuit].map(([to, value]) => ({ labels: [to], value })),
        ...collectPool(pool),
        ...collectCache(cache),
        ...collectReplicas(parts.replicas),
        ...collectPlans(plans),
        ...collectSchema(schema, now()),
        ...collectRealtime(realtime),
        ...collectHttp(http),
        ...webhookAttempts.collect(webhooks),
        ...collectIssuers(parts.issuers),
        ...(await processes.collect()),
        poolMax: one(maxConnections),
        feedConnections: one(feedConnections),
        walLag: one(parts.changes?.lagBytes ?? 0),
        walKept: one(parts.changes?.keptBytes ?? 0),
        walReading: one(parts.changes?.isReading === true ? 1 : 0),
        walChanges: one(parts.changes?.changes ?? 0),
        walResyncs: one(parts.changes?.resyncs ?? 0),
        build: [{ labels: [version, process.version], value: 1 }],
        warnings: one(warnings),
        spans: [
          { labels: ['exported'], value: parts.tracing?.exported ?? 0 },
          { labels: ['failed'], value: parts.tracing?.failed ?? 0 },
        ],
        sharedConnected: parts.shared === null ? [] : one(parts.shared.isConnected ? 1 : 0),
        sharedFailures: one(parts.shared?.failures ?? 0),
        workers: [],
        workerRestarts: [],
      }
    },
    delayed: ms => processes.delayed(ms),
    close: () => processes.close(),
  }
}

/** Prints samples in a text format. */
export function printMetrics(collected: CollectedSamples, format: MetricsFormat = 'prometheus'): string {
  const all = (Object.keys(METRICS) as MetricKey[]).map(key => printMetric(METRICS[key], collected[key], format))
  return `${all.join('')}${format === 'openmetrics' ? '# EOF\n' : ''}`
}

type PoolKey =
  | 'poolConnections'
  | 'poolStreams'
  | 'poolInFlight'
  | 'poolWaiting'
  | 'poolWaitingTenants'
  | 'poolShareWaits'
  | 'poolStreamWaits'
  | 'poolTransactions'
  | 'poolTimeouts'
  | 'poolLost'

function collectPool(stats: PoolStats): CollectedSamples<PoolKey> {
  const { idle, busy, opening } = stats
  return {
    poolConnections: Object.entries({ idle, busy, opening }).map(([state, value]) => ({ labels: [state], value })),
    poolStreams: one(stats.streaming),
    poolInFlight: one(stats.inFlight),
    poolWaiting: one(stats.waiting),
    poolWaitingTenants: one(stats.waitingFlows),
    poolShareWaits: one(stats.held),
    poolStreamWaits: one(stats.streamsHeld),
    poolTransactions: one(stats.finished),
    poolTimeouts: one(stats.timedOut),
    poolLost: one(stats.lost),
  }
}

type CacheKey = Extract<MetricKey, `cache${string}`>

function collectCache(stats: CacheStats | null): CollectedSamples<CacheKey> {
  return {
    cacheHits: one(stats?.hits ?? 0),
    cacheMisses: one(stats?.misses ?? 0),
    cacheBypasses: one(stats?.bypassed ?? 0),
    cacheKnownAge: one((stats?.knownAgeMs ?? 0) / 1_000),
    cacheEntries: one(stats?.entries ?? 0),
    cacheWeight: one(stats?.weight ?? 0),
  }
}

type ReplicaKey = Extract<MetricKey, `replica${string}`>

function collectReplicas(stats: ReplicaStats | null): CollectedSamples<ReplicaKey> {
  const replicas = stats?.replicas ?? []
  const each = (figure: (replica: (typeof replicas)[number]) => number) =>
    replicas.map(replica => ({ labels: [replica.name], value: figure(replica) }))
  return {
    replicaAvailable: each(({ state }) => (state === 'available' ? 1 : 0)),
    replicaLag: replicas.flatMap(({ name, lagMs }) =>
      lagMs === null ? [] : [{ labels: [name], value: lagMs / 1_000 }],
    ),
    replicaReads: each(({ reads }) => reads),
    replicaPrimaryReads: PRIMARY_REASONS.map(reason => ({ labels: [reason], value: stats?.primary[reason] ?? 0 })),
    replicaFallbacks: FALLBACK_REASONS.map(reason => ({ labels: [reason], value: stats?.fallbacks[reason] ?? 0 })),
  }
}

type PlanMetricKey = Extract<MetricKey, `plan${string}`>

function collectPlans({ hits, misses, evictions, entries, characters }: PlanStats): CollectedSamples<PlanMetricKey> {
  const byKind = (counts: PlanStats['hits']) =>
    Object.entries(counts).map(([kind, value]) => ({ labels: [kind], value }))
  return {
    planHits: byKind(hits),
    planMisses: byKind(misses),
    planEvictions: one(evictions),
    planEntries: one(entries),
    planCharacters: one(characters),
  }
}

type SchemaKey = 'schemaTables' | 'schemaVersion' | 'schemaAge' | 'schemaReloads'

function collectSchema(
  { tables, version, readAtMs, reloads }: SchemaStatus,
  nowMs: number,
): CollectedSamples<SchemaKey> {
  return {
    schemaTables: one(tables),
    schemaVersion: one(version),
    schemaAge: one(Math.max(0, nowMs - readAtMs) / 1_000),
    schemaReloads: Object.entries(reloads).map(([outcome, value]) => ({ labels: [outcome], value })),
  }
}

type RealtimeKey = Exclude<Extract<MetricKey, `realtime${string}`>, 'realtimeListenerLost'>

function collectRealtime(stats: RealtimeStats): CollectedSamples<RealtimeKey> {
  const { counts } = stats
  const byKind = (change: number, live: number) => [
    { labels: ['change'], value: change },
    { labels: ['live query'], value: live },
  ]
  const each = (map: ReadonlyMap<string, number>) => [...map].map(([label, value]) => ({ labels: [label], value }))
  return {
    realtimeSockets: one(stats.sockets),
    realtimeSubscriptions: byKind(stats.subscriptions, stats.liveSubscriptions),
    realtimeGroups: byKind(stats.groups, stats.liveQueries),
    realtimeTables: (['trigger', 'gateway'] as const).map(capture => ({
      labels: [capture],
      value: [...stats.tables.values()].filter(of => of === capture).length,
    })),
    realtimeLogReading: one(stats.log.reading ? 1 : 0),
    realtimeLogReads: one(stats.log.reads),
    realtimeLogRows: one(stats.log.rows),
    realtimeLiveRuns: one(stats.liveRuns),
    realtimeListening: one(stats.listening ? 1 : 0),
    realtimeQueriesWaiting: one(stats.queued),
    realtimeLooks: [
      { labels: ['known'], value: stats.queries.certain },
      { labels: ['unknown'], value: stats.queries.possible },
    ],
    realtimeDelays: [
      { labels: ['tenant_max_unrouted_queries_per_sec'], value: stats.queries.delayed },
      { labels: ['unrouted_resync_interval_ms'], value: stats.queries.merged },
    ],
    realtimeNotifications: byKind(counts.notifications, counts.liveAnswers),
    realtimeResyncs: each(counts.resyncs),
    realtimeErrors: each(counts.errors),
    realtimeRefusals: each(new Map(Object.entries(stats.refusals))),
    realtimeLag: [{ labels: [], value: { bounds: LAG_BOUNDS, counts: counts.lag, sum: counts.lagSum } }],
  }
}

function one(value: number): readonly Sample[] {
  return [{ labels: [], value }]
}
