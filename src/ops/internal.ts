/**
 * The operator's routes: `/metrics`, `/health/internal` (docs/guides/monitoring.md), `/internal/checks`
 * (docs/guides/checking.md#findings-of-a-running-gateway), and those for webhooks
 * (docs/guides/webhooks.md#manage-failed-deliveries). The first two do not wait for the database, because
 * they are needed most when it is unavailable; they report the last known state of the outbox.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ReaderStats } from '../changes/reader.ts'
import type { Gathered, Peers, WorkerStatus } from '../cluster/peers.ts'
import type { PlanStats } from '../compile/plans.ts'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import type { IssuerStats } from '../identity/issuers.ts'
import type { Installation } from '../install/installation.ts'
import { UnavailableError } from '../postgres/errors.ts'
import type { PoolStats } from '../postgres/pool.ts'
import type { RealtimeStats } from '../realtime/realtime.ts'
import type { CacheStats } from '../run/cache/cache.ts'
import type { ReplicaStats } from '../run/replicas/read-routes.ts'
import type { SharedStats } from '../shared/shared-state.ts'
import type { TracingStats } from '../tracing/tracing.ts'
import type { OperatorRequest } from '../webhooks/operator-requests.ts'
import type { WebhookStats } from '../webhooks/webhooks.ts'
import type { BootWarnings } from './boot-warnings.ts'
import { EXPOSITION_TYPES, type MetricsFormat } from './exposition.ts'
import type { HttpStats } from './http-metrics.ts'
import { mergeDetails, mergeWebhooks } from './merge-details.ts'
import { mergeMetrics } from './merge-metrics.ts'
import type { CollectedSamples } from './metric-table.ts'
import { type Metrics, printMetrics } from './metrics.ts'
import type { OperatorRoute, OperatorRoutes } from './operator-routes.ts'
import type { SchemaStatus } from './schema-status.ts'
import type { SlowRequest } from './slow-requests.ts'

/** The state of webhooks and the operations on them. */
export interface WebhookOperations {
  readonly status: () => Promise<Readonly<Record<string, unknown>>>
  readonly stats: () => Promise<WebhookStats>
  readonly answers: ReadonlyMap<string, OperatorRequest>
}

/** Which session settings transactions do not set, and why they set the others. */
export interface SessionSettingsStatus {
  readonly unsent: readonly string[]
  /** An object of the database that reads the setting, by the setting's name. */
  readonly readers: Readonly<Record<string, string>>
  /** Why all settings are set; null if some are not. */
  readonly reason: string | null
}

/** The dependencies of the operator's routes. */
export interface InternalOptions {
  readonly version: string
  readonly metrics: Metrics
  readonly schema: () => SchemaStatus
  /** Null if no admin token is configured, because it names policies and functions. */
  readonly sessionSettings: (() => SessionSettingsStatus) | null
  readonly pool: () => PoolStats
  /** The statistics of the read replicas, or null without any. */
  readonly replicas: (() => ReplicaStats) | null
  /** The statistics of the result cache, or null if it is disabled. */
  readonly cache: (() => CacheStats) | null
  readonly plans: () => PlanStats
  readonly realtime: () => RealtimeStats
  readonly http: () => HttpStats
  /** The installation, or null if `svc install` was not run or its result cannot be used. */
  readonly installation: () => Installation | null
  readonly warnings: BootWarnings
  /** The webhooks; null without triggers. */
  readonly webhooks: WebhookOperations | null
  readonly issuers: () => readonly IssuerStats[]
  /** Null if requests are not traced. */
  readonly tracing: (() => TracingStats) | null
  /** The slowest requests; null if no admin token is configured, because they name tables. */
  readonly slowRequests: (() => readonly SlowRequest[]) | null
  /** Runs the checks of configuration and database. */
  readonly checks: () => Promise<unknown>
  /** Null if nothing is shared with other machines. */
  readonly shared: (() => SharedStats) | null
  readonly maxConnections: number
  /** The number of open connections of the feed role. */
  readonly feedConnections: () => number
  /** The reader of the write-ahead log; null while it has not started. */
  readonly changes: () => ReaderStats | null
  /** The limits in force, by their names in the configuration file. */
  readonly limits: Readonly<Record<string, number>>
  /** Checks the admin token; null if the routes need none. */
  readonly isAdmin: ((headers: IncomingHttpHeaders) => boolean) | null
  /** The other workers; null if there is only this process. */
  readonly peers: Peers | null
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** The operator's routes, and what this process contributes to those of all workers. */
export interface Internal {
  readonly routes: OperatorRoutes
  collect(): Promise<CollectedSamples>
  details(): Promise<Readonly<Record<string, unknown>>>
  /** Answers an operator's request about the webhooks of this process; `target` is its path and query. */
  operate(target: string): Promise<unknown>
}

/** The path that sends a test message; only the worker that receives the request sends one. */
const TEST_PATH = '/internal/webhooks/test'

const CHECKS_PATH = '/internal/checks'

/** Creates the operator's routes. */
export function createInternal(options: InternalOptions): Internal {
  const { metrics, schema, pool, cache, realtime, http, warnings, webhooks, maxConnections, isAdmin, peers, now } =
    options
  const startedAt = now()

  function guarded(
    path: string,
    answer: (headers: IncomingHttpHeaders) => Promise<Answer>,
  ): readonly [string, OperatorRoute] {
    return [
      path,
      {
        method: 'GET',
        async answer({ headers }) {
          if (isAdmin !== null && !isAdmin(headers)) throw unauthorized(path)
          return answer(headers)
        },
      },
    ]
  }

  /** @throws {GatewayError} if the request does not carry the admin token, or none is configured. */
  function assertOperator(path: string, headers: IncomingHttpHeaders): void {
    if (isAdmin === null) throw new GatewayError('FORBIDDEN', `${path} needs admin_token to be configured`)
    if (!isAdmin(headers)) throw unauthorized(path)
  }

  /** These routes show rows and send requests, so they always need the admin token. */
  function operated([path, { method }]: readonly [string, OperatorRequest]): readonly [string, OperatorRoute] {
    const own = (query: string) => operate(path, query).catch(unavailable)
    const ofAll = async (others: Peers, query: string) => {
      const { reports } = await others.gather('webhooks', `${path}?${query}`)
      return mergeWebhooks(
        path,
        [
          ...reports.filter(({ number }) => number === others.number),
          ...reports.filter(({ number }) => number !== others.number),
        ].map(({ value }) => value),
      )
    }
    return [
      path,
      {
        method,
        async answer({ headers, query }) {
          assertOperator(path, headers)
          const answered = await (peers === null || path === TEST_PATH ? own(query) : ofAll(peers, query))
          if (answered === null) throw new GatewayError('NOT_FOUND', 'there is no such trigger or dead letter')
          return ok('application/json; charset=utf-8', JSON.stringify(answered))
        },
      },
    ]
  }

  async function operate(path: string, query: string): Promise<unknown> {
    const request = webhooks?.answers.get(path)
    return request === undefined ? null : request.respond(new Map(new URLSearchParams(query)))
  }

  const collect = async () =>
    metrics.collect({
      pool: pool(),
      cache: cache?.() ?? null,
      replicas: options.replicas?.() ?? null,
      plans: options.plans(),
      maxConnections,
      feedConnections: options.feedConnections(),
      changes: options.changes(),
      schema: schema(),
      realtime: realtime(),
      http: http(),
      warnings: warnings.all().length,
      webhooks: (await webhooks?.stats()) ?? null,
      issuers: options.issuers(),
      tracing: options.tracing?.() ?? null,
      shared: options.shared?.() ?? null,
    })
  const ownDetails = () => describe(options, Math.round((now() - startedAt) / 1_000))
  const routes = new Map<string, OperatorRoute>([
    ...[...(webhooks?.answers ?? [])].map(operated),
    [
      CHECKS_PATH,
      {
        method: 'GET',
        async answer({ headers }) {
          assertOperator(CHECKS_PATH, headers)
          return ok('application/json; charset=utf-8', JSON.stringify(await options.checks().catch(unavailable)))
        },
      },
    ],
    guarded('/metrics', async ({ accept }) => {
      const format = formatFor(accept, options.tracing !== null)
      const collected = peers === null ? await collect() : collectedOf(await peers.gather('metrics'))
      return ok(EXPOSITION_TYPES[format], printMetrics(collected, format))
    }),
    guarded('/health/internal', async () => {
      const own = await ownDetails()
      const shown = peers === null ? own : detailsOf(own, await peers.gather('details'), peers.limits)
      return ok('application/json; charset=utf-8', JSON.stringify(shown))
    }),
  ])
  return {
    ...{ routes, collect, details: ownDetails },
    operate(target) {
      const [path = '', query = ''] = target.split('?')
      return operate(path, query)
    },
  }
}

/** Exemplars need the format of OpenMetrics; without traces, the response has none. */
function formatFor(accept: string | undefined, isTraced: boolean): MetricsFormat {
  return isTraced && accept?.includes('application/openmetrics-text') === true ? 'openmetrics' : 'prometheus'
}

function collectedOf({ reports, ended, workers }: Gathered): CollectedSamples {
  const all = reports.map(({ value }) => value as CollectedSamples)
  return {
    ...mergeMetrics(ended === null ? all : [...all, ended as CollectedSamples]),
    workers: (['starting', 'serving', 'retiring'] as const).map(state => ({
      labels: [state],
      value: workers.filter(of => of.state === state).length,
    })),
    workerRestarts: workers.filter(isCurrent).map(({ number, restarts }) => ({
      labels: [String(number)],
      value: restarts,
    })),
  }
}

/** During a rolling restart, two workers have the same number. */
function isCurrent({ number }: WorkerStatus, index: number, workers: readonly WorkerStatus[]): boolean {
  return workers.findIndex(each => each.number === number) === index
}

function detailsOf(
  own: Readonly<Record<string, unknown>>,
  { reports, workers }: Gathered,
  limits: Peers['limits'],
): Readonly<Record<string, unknown>> {
  const all = reports.map(({ value }) => value as Readonly<Record<string, unknown>>)
  return mergeDetails(own, all.length === 0 ? [own] : all, { limits, workers })
}

async function describe(options: InternalOptions, uptimeSecs: number) {
  const { version, pool, schema, cache, realtime, warnings, webhooks, maxConnections, limits } = options
  const { open, opening, idle, busy, streaming, inFlight, waiting, finished, timedOut, lost } = pool()
  const { fingerprint, tables, serverVersion, version: schemaVersion, readAt, reloads } = schema()
  return {
    version,
    node: process.version,
    uptime_secs: uptimeSecs,
    pool: {
      max_connections: maxConnections,
      ...{ open, opening, idle, busy, streaming, waiting, finished, lost },
      in_flight: inFlight,
      timed_out: timedOut,
    },
    replicas: replicaDetails(options.replicas?.() ?? null),
    schema: {
      version: schemaVersion,
      fingerprint,
      read_at: readAt.toISOString(),
      tables,
      reloads,
      // 180004 means version 18.4.
      postgresql: `${Math.floor(serverVersion / 10_000)}.${serverVersion % 10_000}`,
    },
    cache: cacheDetails(cache?.() ?? null),
    installation: installationDetails(options.installation()),
    capture: captureDetails(options.installation(), options.changes()),
    realtime: realtimeDetails(realtime()),
    limits,
    webhooks: webhooks === null ? { enabled: false } : { enabled: true, ...(await webhooks.status()) },
    issuers: options.issuers().map(issuerDetails),
    warnings: warnings.all(),
    ...(options.sessionSettings === null ? {} : { session_settings: settingsDetails(options.sessionSettings()) }),
    ...(options.slowRequests === null ? {} : { slowest_requests: options.slowRequests().map(slowDetails) }),
  }
}

function slowDetails({ request, durationMs, databaseMs, at }: SlowRequest) {
  return {
    request,
    duration_ms: toHundredths(durationMs),
    database_ms: databaseMs === null ? null : toHundredths(databaseMs),
    at: new Date(at).toISOString(),
  }
}

function toHundredths(ms: number): number {
  return Math.round(ms * 100) / 100
}

function issuerDetails({ issuer, keys, staleMs, fetched, failed }: IssuerStats) {
  return { issuer, keys, stale_secs: Math.round(staleMs / 1_000), fetched, failed }
}

/** In the order of the configuration. */
function replicaDetails(stats: ReplicaStats | null) {
  return (stats?.replicas ?? []).map(({ name, state, lagMs, running, reads }) => ({
    ...{ host: name, state },
    lag_ms: lagMs === null ? null : Math.round(lagMs),
    ...{ running, reads },
  }))
}

function settingsDetails({ unsent, readers, reason }: SessionSettingsStatus) {
  return { not_set: unsent, read_by: readers, all_because: reason }
}

function cacheDetails(stats: CacheStats | null) {
  if (stats === null) return { enabled: false }
  const { hits, misses, entries, entriesMax, weight, weightMax } = stats
  return {
    ...{ enabled: true, hits, misses, entries },
    max_entries: entriesMax,
    weighted_size: weight,
    max_weighted_size: weightMax,
  }
}

function installationDetails(installation: Installation | null) {
  if (installation === null) return { installed: false }
  return { installed: true, captured_tables: installation.captured.size, broken_tables: installation.broken }
}

/** How the changes of each captured table are learned; `wal` is null if none is captured from there. */
function captureDetails(installation: Installation | null, changes: ReaderStats | null) {
  const { captured = new Set<string>(), fromWal = new Set<string>(), usesWal = false } = installation ?? {}
  const { isReading = false, problem = null, lagBytes = null, keptBytes = null } = changes ?? {}
  const { changes: stored = 0, resyncs = 0 } = changes ?? {}
  return {
    sources: Object.fromEntries([...captured].map(table => [table, fromWal.has(table) ? 'wal' : 'triggers'])),
    wal: usesWal
      ? { reading: isReading, problem, lag_bytes: lagBytes, kept_bytes: keptBytes, changes: stored, resyncs }
      : null,
  }
}

/** `tables` are those with subscriptions, and how the gateway learns about their changes. */
function realtimeDetails({
  log,
  sockets,
  subscriptions,
  groups,
  tables,
  listening,
  queued: waiting,
  liveQueries,
  liveDriven,
  liveRuns,
  liveSubscriptions,
  counts,
}: RealtimeStats) {
  return {
    ...{ listening, sockets, subscriptions, groups },
    tables: Object.fromEntries(
      [...tables].map(([table, capture]) => [table, { capture, durable: capture === 'trigger' }]),
    ),
    log: { reading: log.reading, reads: log.reads, rows: log.rows },
    visibility_queries_waiting: waiting,
    live_queries: liveQueries,
    live_queries_driven: liveDriven,
    live_runs: liveRuns,
    live_subscriptions: liveSubscriptions,
    notifications: counts.notifications,
    live_answers: counts.liveAnswers,
    resyncs: Object.fromEntries(counts.resyncs),
  }
}

function ok(type: string, text: string): Answer {
  const headers = { 'Content-Type': type, 'Cache-Control': 'no-store' }
  return { status: 200, headers, body: Buffer.from(text) }
}

function unavailable(error: unknown): never {
  if (!(error instanceof UnavailableError)) throw error
  const message = 'the database does not respond; try again'
  throw new GatewayError('UNAVAILABLE', message, { headers: { 'Retry-After': '1' }, cause: error })
}

function unauthorized(path: string): GatewayError {
  return new GatewayError('UNAUTHORIZED', `${path} needs the admin token: Authorization: Bearer <admin_token>`, {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}
