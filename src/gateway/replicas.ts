/** Opens the read replicas, and keeps their positions and that of the primary up to date. */
import type { Peers } from '../cluster/peers.ts'
import type { Config, GatewayConfig, ReplicaConfig } from '../config/config.ts'
import { tenantShare, tenantStreams } from '../config/share.ts'
import type { Emit } from '../events.ts'
import type { ServerTiming } from '../ops/server-timing.ts'
import { createPool, type Pool, type PoolEvent, type PoolOptions } from '../postgres/pool.ts'
import type { ResultBudget } from '../postgres/result-budget.ts'
import { describeAddress } from '../postgres/target.ts'
import { parseUrl } from '../postgres/url.ts'
import { PrimaryPosition } from '../run/replicas/primary-position.ts'
import { ReadRoutes, type ReplicaStats } from '../run/replicas/read-routes.ts'
import { IDENTITY, Replica } from '../run/replicas/replica.ts'
import { WrittenPositions } from '../run/replicas/written-positions.ts'
import { ANSWER_GRACE_MS, CANCEL_GRACE_MS, openTokens } from './database.ts'

/** Reads wait less for a connection of a replica than of the primary, which they can still use afterwards. */
const ACQUIRE_MS_MAX = 1_000

/** A replica that does not answer a check within this time is not used. */
const CHECK_TIMEOUT_MS = 2_000

/** Limit on the wait for the position after a write. */
const POSITION_TIMEOUT_MS = 1_000

/** Positions are read several times within the limit on the lag, and at least once in this time. */
const INTERVAL_MS_MAX = 1_000
const INTERVAL_MS_MIN = 25
const READS_PER_LAG = 4

/** The replicas of a gateway. */
export interface Replicas {
  readonly routes: ReadRoutes
  readonly stats: () => ReplicaStats
  /** Replaces the connections for reads. */
  renew(): void
  close(options: { readonly deadlineMs: number }): Promise<void>
}

interface Parts {
  readonly config: Config
  /** The pool of the primary. */
  readonly pool: Pool
  readonly resultBudget: ResultBudget
  /** Null if the times of requests are not measured. */
  readonly timing: Pick<ServerTiming, 'database'> | null
  /** The other workers; null if there is only this process. */
  readonly peers: Peers | null
  readonly emit: Emit
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Opens the configured replicas without waiting for them; null if none are configured. */
export async function openReplicas(parts: Parts): Promise<Replicas | null> {
  const { config, pool, peers, now } = parts
  const { replicas: configured, replicaMaxLagMs, statementTimeoutMs } = config.gateway
  if (configured.length === 0) return null
  const intervalMs = intervalOf(replicaMaxLagMs)
  const written = new WrittenPositions()
  const position = new PrimaryPosition({
    ...{ database: pool, maxLagMs: replicaMaxLagMs, sampleMs: intervalMs / 2, now },
    onSetBack: ({ lsn }) => written.setBack(lsn),
  })
  const replicas = await Promise.all(configured.map(replica => openReplica(replica, parts)))
  const routes = new ReadRoutes({
    ...{ replicas, position, written, statementTimeoutMs, now },
    wroteElsewhere: peers?.wrote ?? null,
    positionTimeoutMs: POSITION_TIMEOUT_MS,
  })
  let timer: NodeJS.Timeout | null = null
  let isClosed = false
  const checkAll = async () => {
    // The primary first: the positions of the replicas are compared with a sample taken before them.
    await position.read().catch(() => {})
    if (isClosed) return
    // Not awaited: a replica that does not answer must not delay the positions of the others.
    for (const replica of replicas) void replica.check()
    timer = setTimeout(checkAll, intervalMs)
    timer.unref()
  }
  void checkAll()
  return {
    routes,
    stats: () => routes.stats(),
    renew() {
      for (const replica of replicas) replica.renew()
    },
    async close(options) {
      isClosed = true
      if (timer !== null) clearTimeout(timer)
      await Promise.all(replicas.map(replica => replica.close(options)))
    },
  }
}

function intervalOf(maxLagMs: number): number {
  if (maxLagMs === 0) return INTERVAL_MS_MAX
  return Math.min(INTERVAL_MS_MAX, Math.max(INTERVAL_MS_MIN, maxLagMs / READS_PER_LAG))
}

async function openReplica(
  { url, maxConnections: configured }: ReplicaConfig,
  { config, pool, resultBudget, timing, emit, now }: Parts,
): Promise<Replica> {
  const target = parseUrl(url)
  const name = describeAddress(target.address)
  const { gateway } = config
  const maxConnections = configured ?? gateway.maxConnections
  const gss = await openTokens(target, config, emit)
  const shared = { target, gss, preparedStatements: gateway.preparedStatements }
  const report = ({ kind, ...detail }: PoolEvent) =>
    emit({ kind: 'database', event: `replica ${kind}`, detail: { replica: name, ...detail } })
  return new Replica({
    ...{ name, maxConnections, now },
    openPool(onFailed) {
      const reads = createPool({
        ...shared,
        ...poolLimits(gateway, maxConnections),
        resultBudget,
        onEvent(event) {
          report(event)
          if (event.kind === 'connect-failed') onFailed(event.error)
        },
      })
      if (timing === null) return reads
      const { run, stream } = timing.database(reads)
      return { run, stream, renew: () => reads.renew(), close: options => reads.close(options) }
    },
    openChecks: () =>
      createPool({
        ...{ ...shared, maxConnections: 1, acquireTimeoutMs: CHECK_TIMEOUT_MS, answerTimeoutMs: CHECK_TIMEOUT_MS },
        // A failure is reported as the state of the replica.
        onEvent() {},
      }),
    async primaryIdentity() {
      const [result] = await pool.run([{ text: `SELECT ${IDENTITY}`, parameters: [] }]).result
      return result?.rows[0]?.[0]?.toString() ?? ''
    },
    onState: (state, reason) =>
      emit({
        kind: 'database',
        event: `replica is ${state}`,
        detail: { replica: name, ...(reason === null ? {} : { error: new Error(reason) }) },
      }),
  })
}

function poolLimits(gateway: GatewayConfig, maxConnections: number): Omit<PoolOptions, 'target'> {
  const { acquireTimeoutMs, statementTimeoutMs, maxResultBytes } = gateway
  return {
    maxConnections,
    flowConnectionsMax: tenantShare({ ...gateway, maxConnections }),
    flowStreamsMax: tenantStreams({ ...gateway, maxConnections }),
    acquireTimeoutMs: Math.min(acquireTimeoutMs, ACQUIRE_MS_MAX),
    resultBytesMax: maxResultBytes,
    cancelAfterMs: statementTimeoutMs + CANCEL_GRACE_MS,
    answerTimeoutMs: statementTimeoutMs + ANSWER_GRACE_MS,
  }
}
