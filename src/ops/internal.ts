/**
 * The operator's routes: `/metrics`, `/health/internal` (docs/guides/monitoring.md), and those for webhooks
 * (docs/guides/webhooks.md#manage-failed-deliveries). The first two do not wait for the database, because
 * they are needed most when it is unavailable; they report the last known state of the outbox.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { PlanStats } from '../compile/plans.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { IssuerStats } from '../identity/issuers.ts'
import type { Installation } from '../install/installation.ts'
import { UnavailableError } from '../postgres/errors.ts'
import type { PoolStats } from '../postgres/pool.ts'
import type { RealtimeStats } from '../realtime/realtime.ts'
import type { CacheStats } from '../run/cache/cache.ts'
import type { OperatorRequest } from '../webhooks/operator-requests.ts'
import type { WebhookStats } from '../webhooks/webhooks.ts'
import type { BootWarnings } from './boot-warnings.ts'
import { EXPOSITION_TYPE } from './exposition.ts'
import type { HttpStats } from './http-metrics.ts'
import type { Metrics } from './metrics.ts'
import type { SchemaStatus } from './schema-status.ts'

/** A route and its response. */
export interface OperatorRoute {
  readonly method: 'GET' | 'POST'
  readonly answer: (incoming: Pick<Incoming, 'headers' | 'query' | 'connection'>) => Promise<Answer>
}

/** The routes by path. */
export type OperatorRoutes = ReadonlyMap<string, OperatorRoute>

/** The state of webhooks and the operations on them. */
export interface WebhookOperations {
  readonly status: () => Promise<Readonly<Record<string, unknown>>>
  readonly stats: () => Promise<WebhookStats>
  readonly answers: ReadonlyMap<string, OperatorRequest>
}

/** The dependencies of the operator's routes. */
export interface InternalOptions {
  readonly version: string
  readonly metrics: Metrics
  readonly schema: () => SchemaStatus
  readonly pool: () => PoolStats
  /** The statistics of the result cache, or null if it is disabled. */
  readonly cache: (() => CacheStats) | null
  readonly plans: () => PlanStats
  readonly realtime: () => RealtimeStats
  readonly http: () => HttpStats
  /** The installation, or null if `svc install` was not run or its result cannot be used. */
  readonly installation: () => Installation | null
  readonly warnings: BootWarnings
  /** The webhooks, or null if there are no triggers. */
  readonly webhooks: WebhookOperations | null
  readonly issuers: () => readonly IssuerStats[]
  readonly maxConnections: number
  /** The number of open connections of the feed role. */
  readonly feedConnections: () => number
  /** The limits in force, by their names in the configuration file. */
  readonly limits: Readonly<Record<string, number>>
  /** Checks the admin token; null if the routes need none. */
  readonly isAdmin: ((headers: IncomingHttpHeaders) => boolean) | null
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Creates the operator's routes. */
export function createInternal(options: InternalOptions): OperatorRoutes {
  const { metrics, schema, pool, cache, realtime, http, warnings, webhooks, maxConnections, isAdmin, now } = options
  const startedAt = now()

  function guarded(path: string, answer: () => Promise<Answer>): readonly [string, OperatorRoute] {
    return [
      path,
      {
        method: 'GET',
        async answer({ headers }) {
          if (isAdmin !== null && !isAdmin(headers)) throw unauthorized(path)
          return answer()
        },
      },
    ]
  }

  /** These routes show rows and send requests, so they always need the admin token. */
  function operated([path, { method, respond: answer }]: readonly [string, OperatorRequest]): readonly [
    string,
    OperatorRoute,
  ] {
    return [
      path,
      {
        method,
        async answer({ headers, query }) {
          if (isAdmin === null) throw new GatewayError('FORBIDDEN', `${path} needs admin_token to be configured`)
          if (!isAdmin(headers)) throw unauthorized(path)
          const answered = await Promise.resolve(answer(new Map(new URLSearchParams(query)))).catch(unavailable)
          if (answered === null) throw new GatewayError('NOT_FOUND', 'there is no such trigger or dead letter')
          return ok('application/json; charset=utf-8', JSON.stringify(answered))
        },
      },
    ]
  }

  return new Map([
    ...[...(webhooks?.answers ?? [])].map(operated),
    guarded('/metrics', async () => {
      const text = await metrics.print({
        pool: pool(),
        cache: cache?.() ?? null,
        plans: options.plans(),
        maxConnections,
        feedConnections: options.feedConnections(),
        schema: schema(),
        realtime: realtime(),
        http: http(),
        warnings: warnings.all().length,
        webhooks: (await webhooks?.stats()) ?? null,
        issuers: options.issuers(),
      })
      return ok(EXPOSITION_TYPE, text)
    }),
    guarded('/health/internal', async () => {
      const uptimeSecs = Math.round((now() - startedAt) / 1_000)
      return ok('application/json; charset=utf-8', JSON.stringify(await details(options, uptimeSecs)))
    }),
  ])
}

async function details(options: InternalOptions, uptimeSecs: number) {
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
    realtime: realtimeDetails(realtime()),
    limits,
    webhooks: webhooks === null ? { enabled: false } : { enabled: true, ...(await webhooks.status()) },
    issuers: options.issuers().map(issuerDetails),
    warnings: warnings.all(),
  }
}

function issuerDetails({ issuer, keys, staleMs, fetched, failed }: IssuerStats) {
  return { issuer, keys, stale_secs: Math.round(staleMs / 1_000), fetched, failed }
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
    looks_waiting: waiting,
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
  const message = 'the database that stores the webhooks does not respond; try again'
  throw new GatewayError('UNAVAILABLE', message, { headers: { 'Retry-After': '1' }, cause: error })
}

function unauthorized(path: string): GatewayError {
  return new GatewayError('UNAUTHORIZED', `${path} needs the admin token: Authorization: Bearer <admin_token>`, {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}
