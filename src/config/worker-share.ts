/** The share of one worker process in the limits of the machine (docs/guides/scaling.md#workers). */
import { availableParallelism } from 'node:os'
import type { Config, GatewayConfig } from './config.ts'

/** Limit on worker processes: more than the cores of large machines. */
export const WORKERS_MAX = 256

/** Which worker, from 1, and of how many. */
export interface Share {
  readonly number: number
  readonly count: number
}

/** Limits that are divided evenly. 0 means no limit and stays 0; a share is at least 1. */
const DIVIDED = [
  'tenantMaxConnections',
  'tenantMaxStreams',
  'addressMaxSockets',
  'tenantMaxSockets',
  'tenantMaxSubscriptions',
  'tenantMaxSubscriptionGroups',
  'tenantMaxWaitingShapes',
  'tenantMaxLiveQueries',
  'maxLiveQueries',
  'maxSockets',
  'tenantMaxUnroutedQueriesPerSec',
  'maxInflightBodyBytes',
  'addressMaxInflightBodyBytes',
  'maxUnsentBytes',
  'tenantMaxUnsentBytes',
] as const satisfies readonly (keyof GatewayConfig)[]

/**
 * The number of workers: the configured one, or with `auto` one for each core, but no more than the pool has
 * connections.
 */
export function workerCount({ workers, maxConnections }: Pick<GatewayConfig, 'workers' | 'maxConnections'>): number {
  return workers === 'auto' ? Math.min(availableParallelism(), maxConnections) : workers
}

/** The problem if some workers would have no connection, as the rest of a sentence; null if there is none. */
export function tooManyWorkers({
  workers,
  maxConnections,
}: Pick<GatewayConfig, 'workers' | 'maxConnections'>): string | null {
  if (workers === 'auto' || workers <= maxConnections) return null
  return `needs max_connections of ${workers} or more, one connection for each worker; it is ${maxConnections}`
}

/** The configuration of one worker. Everything that `DIVIDED` does not contain is the same in each. */
export function shareOf(config: Config, share: Share): Config {
  const { gateway } = config
  const { maxConnections, feedMaxConnections, cache, replicas } = gateway
  return {
    ...config,
    gateway: {
      ...gateway,
      ...Object.fromEntries(DIVIDED.map(key => [key, divided(gateway[key], share)])),
      maxConnections: part(maxConnections, share),
      feedMaxConnections: Math.max(1, part(feedMaxConnections, share)),
      replicas: replicas.map(replica => ({
        ...replica,
        maxConnections: Math.max(1, part(replica.maxConnections ?? maxConnections, share)),
      })),
      cache: { ...cache, maxEntries: Math.max(1, part(cache.maxEntries, share)) },
    },
  }
}

function divided(value: number | null, { count }: Share): number | null {
  return value === null || value === 0 ? value : Math.max(1, Math.floor(value / count))
}

/** The first workers have the remainder. */
function part(total: number, { number, count }: Share): number {
  return Math.floor(total / count) + (number <= total % count ? 1 : 0)
}
