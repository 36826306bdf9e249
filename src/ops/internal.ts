/**
 * The operator's routes: `/metrics`, `/health/internal` (docs/guides/monitoring.md) and those about webhooks
 * (docs/guides/webhooks.md#manage-failed-deliveries). The first two wait for no database: they are needed
 * most when it is away, and say what was known of the outbox when it answered last.
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

export interface InternalAnswer {
  readonly method: 'GET' | 'POST'
  readonly answer: (incoming: Pick<Incoming, 'headers' | 'query' | 'connection'>) => Promise<Answer>
}

/** Answers by path. */
export type Internal = ReadonlyMap<string, InternalAnswer>

/** What webhooks tell of themselves, and let be done with them. */
export interface WebhookOperations {
  readonly status: () => Promise<Readonly<Record<string, unknown>>>
  readonly stats: () => Promise<WebhookStats>
  readonly answers: ReadonlyMap<string, OperatorRequest>
}

export interface InternalOptions {
  readonly version: string
  readonly metrics: Metrics
  readonly schema: () => SchemaStatus
  readonly pool: () => PoolStats
  /** Null: the result cache is off. */
  readonly cache: (() => CacheStats) | null
  readonly plans: () => PlanStats
  readonly realtime: () => RealtimeStats
  readonly http: () => HttpStats
  /** Null: `svc install` was not run, or what it made cannot be used. */
  readonly installation: () => Installation | null
  readonly warnings: BootWarnings
  /** Null: there are no triggers. */
  readonly webhooks: WebhookOperations | null
  readonly issuers: () => readonly IssuerStats[]
  readonly maxConnections: number
  /** Open ones of the feed role. */
  readonly feedConnections: () => number
  /** The limits in force, by their names in the file. */
  readonly limits: Readonly<Record<string, number>>
  /** Null: whoever reaches the gateway may see them. */
  readonly isAdmin: ((headers: IncomingHttpHeaders) => boolean) | null
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
}

export function createInternal(options: InternalOptions): Internal {
  const { metrics, schema, pool, cache, realtime, http, warnings, webhooks, maxConnections, isAdmin, now } = options
  const startedAt = now()

  function guarded(path: string, answer: () => Promise<Answer>): readonly [string, InternalAnswer] {
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

  /** They show rows and send requests: not for whoever happens to reach the gateway. */
  function operated([path, { method, respond: answer }]: readonly [string, OperatorRequest]): readonly [
    string,
    InternalAnswer,
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
      // 180004 is 18.4.
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

/** `tables`: those that somebody subscribes to, and how changes of each are heard of. */
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
  const message = 'the database, where webhooks wait, does not answer; try again'
  throw new GatewayError('UNAVAILABLE', message, { headers: { 'Retry-After': '1' }, cause: error })
}

function unauthorized(path: string): GatewayError {
  return new GatewayError('UNAUTHORIZED', `${path} needs the admin token: Authorization: Bearer <admin_token>`, {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}
