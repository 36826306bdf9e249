/** Realtime as one part of the gateway: sessions, the hub, live queries, and their figures. */
import { randomBytes } from 'node:crypto'
import type { Catalog } from '../catalog/model.ts'
import type { Emit } from '../events.ts'
import type { Identity } from '../identity/identity.ts'
import type { Listener, PrepareConnection } from '../postgres/listener.ts'
import type { Database } from '../postgres/types.ts'
import type { TextReader } from '../query/query.ts'
import { readQueryParameters } from '../query/request.ts'
import { createNotifyingWrites, type NotifyingWrites } from '../run/notifying-writes.ts'
import type { Runner } from '../run/run.ts'
import { LISTEN_LOCKS } from '../run/write-notifications.ts'
import { createCaptureSources, nameOf } from './capture-sources.ts'
import type { ChannelListener } from './channels.ts'
import { createCounters, type RealtimeCounts, type SessionCounts } from './counts.ts'
import { createDependencyListener } from './dependency-listener.ts'
import { Hub, type HubStats } from './hub.ts'
import type { JoinedRead } from './joined-read.ts'
import { createLimiter } from './limiter.ts'
import { LiveQueries } from './live-queries.ts'
import { ChangeLog, type LogStats } from './log.ts'
import { createOldImageStore } from './old-images.ts'
import { createQueryRoutes } from './query-routes.ts'
import { createQuotas, type RealtimeLimits, type Seat } from './quotas.ts'
import { ClientSession, type Link } from './session.ts'
import type { ShareRead } from './share-read.ts'
import type { SubscriptionPlan, SubscriptionRequest } from './subscription-plan.ts'
import type { UnreadBudget } from './waiting-bytes.ts'

/** Limits on concurrently running live queries: in total, and per tenant. */
const LIVE_RUN_SLOTS = { slots: 8, slotsPerOwner: 4 }

/** When the gateway stops, clients are asked to reconnect at random times within this period. */
const RECONNECT_SPREAD_MS = 5_000

/** Interval between attempts to acquire the locks that writers check, while older writes are in progress. */
const LOCK_RETRY_MS = 20

/** Opens a listener. `prepare` runs on every new connection before it counts as listening. */
export type OpenListener = (hearing: ChannelListener, prepare: PrepareConnection) => Listener

/** The dependencies of realtime. */
export interface RealtimeParts {
  readonly database: Database
  /** Connections of the feed role, which may read the change log. */
  readonly feed: Pick<Database, 'run'>
  /** The runner of visibility queries, without concurrency limit and cost guard. */
  readonly visibilityReads: Pick<Runner, 'read'>
  /** The runner of live queries, with the tenant's concurrency limit and the cost guard. */
  readonly reads: Pick<Runner, 'read'>
  readonly texts: TextReader
  readonly catalog: () => Catalog
  readonly plan: (request: SubscriptionRequest, identity: Identity) => SubscriptionPlan
  readonly authenticate: (token: string) => Identity | Promise<Identity>
  /** Opens a listener; null if the gateway has only a pooled connection, on which it cannot listen. */
  readonly openListener: OpenListener | null
  readonly capture: WriteCapture
  readonly limits: RealtimeLimits
  readonly unread: UnreadBudget
  readonly emit: Emit
  /** Shares reads of the change log with the other workers; null if there is only this process. */
  readonly shareRead: ShareRead | null
  /** Called when the capture of changes is damaged. */
  readonly onBroken: () => void
  readonly now: () => number
  readonly clock: () => number
  readonly random: () => number
}

/** The realtime part of a gateway. */
export interface Realtime {
  /**
   * Reserves a socket for this address. If `identity` is null, the first message must authenticate.
   * @throws GatewayError `CONCURRENCY_LIMIT`, or `UNAVAILABLE`
   */
  admit(address: string | number, identity: Identity | null): Seat
  open(link: Link, identity: Identity | null, seat: Seat): Pick<ClientSession, 'receive' | 'closed'>
  /** Adds a session of another protocol, which is counted, revoked and ended like the others. */
  adopt(session: Pick<ClientSession, 'leave' | 'revoke'>): AdoptedSession
  /** Adapts to changed schema or rights. */
  refresh(): void
  /**
   * Adapts to a changed set of captured tables. `left` are tables (`schema.name`) no longer captured, whose
   * writes sent no notifications until now.
   */
  recapture(left: readonly string[]): void
  /** Reads the change log soon, because changes from the write-ahead log have been stored. */
  wake(): void
  /** Joins the transaction that stores such changes (`ChangeLog.join`). */
  join(): JoinedRead | null
  /** Ends the sessions whose tokens have been revoked. */
  revoke(isRevoked: (identity: Identity) => boolean): void
  stats(): RealtimeStats
  /** The hub, for subscriptions that are not made by a socket. */
  readonly hub: Pick<Hub, 'subscribe'>
  /** Closes all sessions with a reconnect delay; sockets close in their own time. */
  leave(): void
  close(): void
}

/** A session of another protocol. */
export interface AdoptedSession {
  readonly count: SessionCounts
  /** Called when the session is closed. */
  release(): void
}

/** Figures of realtime. */
export interface RealtimeStats extends HubStats {
  readonly log: LogStats
  /** True if the connection that listens for gateway writes is established. */
  readonly listening: boolean
  readonly sockets: number
  readonly liveQueries: number
  /** Live queries that run only when a table has changed. */
  readonly liveDriven: number
  readonly liveSubscriptions: number
  /** How often a live query was run. */
  readonly liveRuns: number
  readonly counts: RealtimeCounts
  /** Refusals by the key of the limit. */
  readonly refusals: Readonly<Record<string, number>>
}

/**
 * The link between writes and subscriptions. Created first, because the runner of writes is created before
 * the hub.
 */
export interface WriteCapture {
  readonly origin: string
  /** True if every change to a table, `schema.name`, is captured. */
  readonly isCaptured: (table: string) => boolean
  readonly announcements: NotifyingWrites
  readonly rowsBefore: ReturnType<typeof createOldImageStore>
  /** Sets the hub, which has the subscribed tables. */
  connect(by: Pick<Hub, 'wants' | 'routeBy'>): void
}

/** The dependencies of the link. */
export interface WriteCaptureParts {
  readonly isCaptured: WriteCapture['isCaptured']
  readonly catalog: () => Catalog
  /**
   * The routing column of tables that no subscription of this gateway has analyzed; other gateways may have
   * subscriptions.
   */
  readonly tenantColumn: string
}

/** Creates the link before there is a hub. */
export function createWriteCapture({ isCaptured, catalog, tenantColumn }: WriteCaptureParts): WriteCapture {
  const origin = randomBytes(9).toString('base64url')
  let hub: Pick<Hub, 'wants' | 'routeBy'> = { wants: () => false, routeBy: () => null }
  const rowsBefore = createOldImageStore(table => hub.wants(table))
  const routeBy = (table: string) => hub.routeBy(table) ?? tenantColumn
  const isLogged = (resource: string): boolean => {
    const table = catalog().tables.get(resource)
    return table !== undefined && isCaptured(nameOf(table))
  }
  return {
    ...{ origin, isCaptured },
    announcements: createNotifyingWrites({ origin, rowsBefore, isLogged, routeBy }),
    rowsBefore,
    connect(by) {
      hub = by
    },
  }
}

/** Assembles realtime from its parts. */
export function createRealtime(parts: RealtimeParts): Realtime {
  const { now, clock, capture, texts, openListener, database } = parts
  const log = new ChangeLog({ database: parts.feed, now, onBroken: parts.onBroken, shareRead: parts.shareRead })
  const sources = createCaptureSources({
    ...{ log, isCaptured: capture.isCaptured },
    openListener: openListener === null ? null : hearing => openListener(hearing, acquireLocks),
  })
  const quotas = createQuotas(parts.limits, parts.unread)
  const hub = new Hub({
    ...{ origin: capture.origin, rowsBefore: capture.rowsBefore, now, sources, log, quotas },
    limits: parts.limits,
    ...{ plan: parts.plan, catalog: parts.catalog, database, runner: parts.visibilityReads },
  })
  capture.connect(hub)
  const limiter = createLimiter(LIVE_RUN_SLOTS)
  const live = new LiveQueries({
    ...{ runner: parts.reads, limiter, now, quotas },
    listen: createDependencyListener({
      ...{ sources, catalog: parts.catalog },
      routes: createQueryRoutes({ database, catalog: parts.catalog, runner: parts.visibilityReads, limiter }),
    }),
  })
  const sessions = new Set<Pick<ClientSession, 'leave' | 'revoke'>>()
  const counts = createCounters(clock, parts.emit)

  return {
    admit(address, identity) {
      const seat = quotas.seat(address)
      try {
        if (identity !== null) seat.claim(identity)
      } catch (error) {
        seat.leave()
        throw error
      }
      return seat
    },
    open(link, identity, seat) {
      const session = new ClientSession({
        ...{ link, identity, hub, live, now, clock, count: counts.count, authenticate: parts.authenticate },
        seat,
        liveRequest({ svc, parameters, table, intervalMs }) {
          const request = {
            text: svc,
            values: parameters === null ? new Map() : readQueryParameters(parameters.bytes, parts.limits.maxParameters),
          }
          return { intervalMs, prepare: identity => texts(request, table, identity) }
        },
      })
      sessions.add(session)
      return {
        receive: (message, form) => session.receive(message, form),
        closed() {
          sessions.delete(session)
          session.closed()
        },
      }
    },
    adopt(session) {
      sessions.add(session)
      return { count: counts.count, release: () => void sessions.delete(session) }
    },
    refresh() {
      hub.refresh()
      live.refresh()
    },
    recapture(left) {
      hub.recapture()
      live.refresh()
      const tables = [...parts.catalog().tables.values()].filter(table => left.includes(nameOf(table)))
      if (tables.length === 0 || openListener === null) return
      const commands = tables.map(({ resource }) => capture.announcements.doubt(resource))
      // A listener that cannot be reached has no connection, and starts again.
      database.run(commands).result.catch(() => {})
    },
    wake: () => log.wake(),
    join: () => log.join(),
    revoke(isRevoked) {
      for (const session of sessions) session.revoke(isRevoked)
    },
    stats() {
      const { queries, driven, subscriptions, runs } = live.stats()
      return {
        ...hub.stats(),
        ...{ log: log.stats(), listening: sources.listening, sockets: sessions.size, counts: counts.all() },
        refusals: quotas.refusals(),
        ...{ liveQueries: queries, liveDriven: driven, liveSubscriptions: subscriptions, liveRuns: runs },
      }
    },
    hub,
    leave() {
      for (const session of sessions) session.leave(Math.floor(parts.random() * RECONNECT_SPREAD_MS))
    },
    close() {
      live.close()
      hub.close()
      sources.close()
    },
  }
}

/** Waits until all writes that began without notifications have ended; later ones send them. */
const acquireLocks: PrepareConnection = async ask => {
  for (;;) {
    const [row] = await ask(LISTEN_LOCKS)
    if (row?.[0]?.toString() === '0') return
    await new Promise(resolve => setTimeout(resolve, LOCK_RETRY_MS))
  }
}
