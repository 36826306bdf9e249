/** Realtime as one part of the gateway: sessions, the hub they subscribe to, live queries, and what operators are told of them. */
import { randomBytes } from 'node:crypto'
import type { Catalog } from '../catalog/model.ts'
import type { Emit } from '../events.ts'
import type { Identity } from '../identity/identity.ts'
import type { Listener, Prepare } from '../postgres/listener.ts'
import type { Database } from '../postgres/types.ts'
import type { TextReader } from '../query/query.ts'
import { readParameters } from '../query/request.ts'
import { LISTEN_LOCKS } from '../run/announce.ts'
import { type Announcements, createAnnouncements } from '../run/announcements.ts'
import type { Runner } from '../run/run.ts'
import type { Hearing } from './channels.ts'
import { createCounts, type RealtimeCounts } from './counts.ts'
import { createFollower } from './follow.ts'
import { Hub, type HubStats } from './hub.ts'
import { createLimiter } from './limiter.ts'
import { LiveQueries } from './live-queries.ts'
import { ChangeLog, type LogStats } from './log.ts'
import { createQuotas, type RealtimeLimits, type Seat } from './quotas.ts'
import { createRowsBefore } from './rows-before.ts'
import { type Link, Session } from './session.ts'
import { createSources } from './sources.ts'
import type { Watch, WatchRequest } from './watch.ts'

/** Live queries that run at a time: all together, and of one tenant. */
const LIVE_RUNS = { places: 8, placesPerOwner: 4 }

/** Clients of a gateway that stops come back within this time, each at a moment of its own. */
const RECONNECT_SPREAD_MS = 5_000

/** Between two attempts to get the locks that tell writers of us, while writes are under way that began before. */
const LOCK_RETRY_MS = 20

/** `prepare` is what the listener does on every new connection before it counts as listening. */
export type OpenListener = (hearing: Hearing, prepare: Prepare) => Listener

export interface RealtimeParts {
  readonly database: Database
  /** Of the role that may read the change log. */
  readonly feed: Pick<Database, 'run'>
  /** Without gate and guard: looks at what changed, which nobody asked for one by one. */
  readonly looks: Pick<Runner, 'read'>
  /** With the tenant's gate and the cost guard. */
  readonly reads: Pick<Runner, 'read'>
  readonly texts: TextReader
  readonly catalog: () => Catalog
  readonly plan: (request: WatchRequest, identity: Identity) => Watch
  readonly authenticate: (token: string) => Identity | Promise<Identity>
  /** Null: through a pooler alone, nobody can listen. */
  readonly openListener: OpenListener | null
  readonly capture: Capture
  readonly limits: RealtimeLimits
  readonly emit: Emit
  /** What captures changes is not as it was found. */
  readonly onBroken: () => void
  readonly now: () => number
  readonly clock: () => number
  readonly random: () => number
}

export interface Realtime {
  /** A place for a socket of this address. Throws `CONCURRENCY_LIMIT`, or `UNAVAILABLE`. `identity` null: the first message says who calls. */
  admit(address: string | number, identity: Identity | null): Seat
  open(link: Link, identity: Identity | null, seat: Seat): Pick<Session, 'receive' | 'closed'>
  /** The schema or the rights have changed. */
  refresh(): void
  /** Other tables are captured than before. Nobody told what was written to those that no longer are (`schema.name`) until this was known. */
  recapture(left: readonly string[]): void
  /** Tokens have been revoked: ends the sessions of those. */
  revoke(isRevoked: (identity: Identity) => boolean): void
  stats(): RealtimeStats
  /** Says goodbye to everybody; the sockets close in their own time. */
  leave(): void
  close(): void
}

export interface RealtimeStats extends HubStats {
  readonly log: LogStats
  /** The connection on which writes tell of themselves stands. */
  readonly listening: boolean
  readonly sockets: number
  readonly liveQueries: number
  /** Those that are run when something has changed, and not every time. */
  readonly liveDriven: number
  readonly liveSubscriptions: number
  /** How often the database was asked for one of them. */
  readonly liveRuns: number
  readonly counts: RealtimeCounts
  /** By the key of the limit. */
  readonly refusals: Readonly<Record<string, number>>
}

/** What writes and subscriptions have of each other: made first, because the one who runs writes is made before those who listen. */
export interface Capture {
  readonly origin: string
  /** Whether triggers write down every change of a table, `schema.name`. */
  readonly isCaptured: (table: string) => boolean
  readonly announcements: Announcements
  readonly rowsBefore: ReturnType<typeof createRowsBefore>
  /** Says from now on which tables are watched, and how. */
  watch(by: Pick<Hub, 'wants' | 'routeBy'>): void
}

export interface CaptureParts {
  readonly isCaptured: Capture['isCaptured']
  readonly catalog: () => Catalog
  /** What says of a row whom it concerns, where nothing better is known: other gateways may watch the table. */
  readonly tenantColumn: string
}

export function createCapture({ isCaptured, catalog, tenantColumn }: CaptureParts): Capture {
  const origin = randomBytes(9).toString('base64url')
  let watched: Pick<Hub, 'wants' | 'routeBy'> = { wants: () => false, routeBy: () => null }
  const rowsBefore = createRowsBefore(table => watched.wants(table))
  const routeBy = (table: string) => watched.routeBy(table) ?? tenantColumn
  const isLogged = (resource: string): boolean => {
    const table = catalog().tables.get(resource)
    return table !== undefined && isCaptured(`${table.schema}.${table.name}`)
  }
  return {
    ...{ origin, isCaptured },
    announcements: createAnnouncements({ origin, rowsBefore, isLogged, routeBy }),
    rowsBefore,
    watch(by) {
      watched = by
    },
  }
}

export function createRealtime(parts: RealtimeParts): Realtime {
  const { now, clock, capture, texts, openListener, database } = parts
  const log = new ChangeLog({ database: parts.feed, now, onBroken: parts.onBroken })
  const sources = createSources({
    ...{ log, isCaptured: capture.isCaptured },
    openListener: openListener === null ? null : hearing => openListener(hearing, takeLocks),
  })
  const quotas = createQuotas(parts.limits)
  const hub = new Hub({
    ...{ origin: capture.origin, rowsBefore: capture.rowsBefore, now, sources, log, quotas },
    limits: parts.limits,
    ...{ plan: parts.plan, catalog: parts.catalog, database, runner: parts.looks },
  })
  capture.watch(hub)
  const live = new LiveQueries({
    ...{ runner: parts.reads, limiter: createLimiter(LIVE_RUNS), now, quotas },
    follow: createFollower({ sources, catalog: parts.catalog }),
  })
  const sessions = new Set<Session>()
  const counts = createCounts(clock, parts.emit)

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
      const session = new Session({
        ...{ link, identity, hub, live, now, clock, count: counts.count, authenticate: parts.authenticate },
        seat,
        liveRequest({ svc, parameters, table, intervalMs }) {
          const request = { text: svc, values: parameters === null ? new Map() : readParameters(parameters.bytes) }
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
    refresh() {
      hub.refresh()
      live.refresh()
    },
    recapture(left) {
      hub.recapture()
      live.refresh()
      const tables = [...parts.catalog().tables.values()].filter(({ schema, name }) =>
        left.includes(`${schema}.${name}`),
      )
      if (tables.length === 0 || openListener === null) return
      const commands = tables.map(({ resource }) => capture.announcements.doubt(resource))
      // Whoever cannot be told now is not there, and begins anew.
      database.run(commands).result.catch(() => {})
    },
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

/** Writes that have begun without telling of themselves end first; those that begin later tell. */
const takeLocks: Prepare = async ask => {
  for (;;) {
    const [row] = await ask(LISTEN_LOCKS)
    if (row?.[0]?.toString() === '0') return
    await new Promise(resolve => setTimeout(resolve, LOCK_RETRY_MS))
  }
}
