/**
 * The operator's own answers, `/metrics` and `/health/internal` (specification 4.1, 5.5). None of them asks the database:
 * they are needed most when it is away.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../http/types.ts'
import type { PoolStats } from '../postgres/pool.ts'
import type { RealtimeStats } from '../realtime/realtime.ts'
import type { CacheStats } from '../run/cache/cache.ts'
import type { BootWarnings } from './boot-warnings.ts'
import { EXPOSITION_TYPE } from './exposition.ts'
import type { Metrics } from './metrics.ts'
import type { SchemaStatus } from './schema-status.ts'

export type InternalAnswer = (headers: IncomingHttpHeaders) => Promise<Answer>

/** Answers by path. */
export type Internal = ReadonlyMap<string, InternalAnswer>

export interface InternalOptions {
  readonly version: string
  readonly metrics: Metrics
  readonly schema: () => SchemaStatus
  readonly pool: () => PoolStats
  /** Null: the result cache is off. */
  readonly cache: (() => CacheStats) | null
  readonly realtime: () => RealtimeStats
  readonly warnings: BootWarnings
  readonly maxConnections: number
  /** The limits in force, by their names in the file. */
  readonly limits: Readonly<Record<string, number>>
  /** Null: whoever reaches the gateway may see them. */
  readonly isAdmin: ((headers: IncomingHttpHeaders) => boolean) | null
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
}

export function createInternal(options: InternalOptions): Internal {
  const { metrics, schema, pool, cache, realtime, warnings, maxConnections, isAdmin, now } = options
  const startedAt = now()

  function guarded(path: string, answer: () => Promise<Answer>): readonly [string, InternalAnswer] {
    return [
      path,
      async headers => {
        if (isAdmin !== null && !isAdmin(headers)) throw unauthorized(path)
        return answer()
      },
    ]
  }

  return new Map([
    guarded('/metrics', async () => {
      const text = await metrics.print({
        pool: pool(),
        cache: cache?.() ?? null,
        maxConnections,
        schema: schema(),
        realtime: realtime(),
        warnings: warnings.all().length,
      })
      return ok(EXPOSITION_TYPE, text)
    }),
    guarded('/health/internal', async () => {
      const uptimeSecs = Math.round((now() - startedAt) / 1_000)
      return ok('application/json; charset=utf-8', JSON.stringify(details(options, uptimeSecs)))
    }),
  ])
}

function details(
  { version, pool, cache, schema, realtime, warnings, maxConnections, limits }: InternalOptions,
  uptimeSecs: number,
) {
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
    realtime: realtimeDetails(realtime()),
    limits,
    warnings: warnings.all(),
  }
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

/** `gateway`: only what is written through a gateway is told, and nothing of it survives the process. */
function realtimeDetails({
  capture,
  sockets,
  subscriptions,
  groups,
  tables,
  listening,
  liveQueries,
  liveSubscriptions,
  counts,
}: RealtimeStats) {
  return {
    ...{ capture, durable: false, listening, sockets, tables, subscriptions, groups },
    live_queries: liveQueries,
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

function unauthorized(path: string): GatewayError {
  return new GatewayError('UNAUTHORIZED', `${path} needs the admin token: Authorization: Bearer <admin_token>`, {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}
