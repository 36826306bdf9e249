/**
 * The source of one table's changes: passes them to the visibility groups, and finds the changes a returning
 * client has missed.
 */

import type { ChangeOperation } from '../compile/row-images.ts'
import { parseJsonBody, partBytes } from '../json/json-body.ts'
import { type Boundary, type ClientState, createBoundary } from './boundary.ts'
import type { CaptureKind, SourceListener } from './capture-sources.ts'
import type { ChangeEvent } from './change-event.ts'
import { createHistory } from './history.ts'
import type { ChangeLog } from './log.ts'
import type { OldImageStore } from './old-images.ts'
import { hashed, mayConcern, type Routes, type RouteValue } from './route.ts'
import type { Snapshot } from './snapshot.ts'
import type { ResyncReason } from './visibility-group.ts'
import { decodeNotification, type WriteNotification } from './write-notification.ts'

/** Limit on notifications waiting to be processed. */
const PENDING_NOTIFICATIONS_MAX = 10_000

/** Delivers the changes of one table. */
export interface ChangeSource extends SourceListener {
  readonly capture: CaptureKind
  /** The resume token after the last change received. */
  token(): string
  /** Resolves once the source has every change that was committed before, as far as it can. */
  stored(): Promise<void>
  /**
   * The start position for a client that receives every change from now on and has just read the given
   * snapshot, or has every entry of the log that it includes.
   */
  boundary(snapshot: Snapshot, has: ClientState): Boundary
  /**
   * The changes since a token, or the first part of them; null if they are not known. `routes`: the caller's
   * routing values, of this table and of its guards, as far as they are known.
   */
  since(token: string, routes: CallerRoutes, reach: CatchUpReach): Promise<MissedChanges | null>
}

/**
 * Where the missed changes end at least: at everything that was committed before the call, or at the last
 * read of the change log, so that nothing has to be read. Later changes are delivered in both cases.
 */
export type CatchUpReach = 'now' | 'the last read'

/** The routing values of a caller. */
export interface CallerRoutes {
  /** The value in the rows of the table that the caller can see; null if unknown. */
  readonly own: RouteValue | null
  /** The values in the rows that the caller's policies see in other tables, by `schema.name`. */
  readonly guards: ReadonlyMap<string, RouteValue>
}

/** The changes that a returning client has missed. */
export interface MissedChanges {
  readonly changes: readonly ChangeEvent[]
  /** The position after them, as far as it is known. */
  readonly boundary: Boundary | null
  /** False if the next part begins at the boundary. */
  readonly isLast: boolean
}

/** Where a source delivers changes. */
export interface ChangeSourceParts {
  /** Receives changes to evaluate. */
  readonly add: (changes: readonly ChangeEvent[]) => void
  /** Requests a resync of the groups concerned by `routes`; by default of all. */
  readonly resync: (reason: ResyncReason, routes?: Routes | null) => void
  /** The routing column, if there is one. */
  readonly routeBy: () => string | null
  /**
   * Captured tables, as `schema.name`, a change to which can show or hide any row of this one, with the
   * routing columns of guards.
   */
  readonly dependencies: () => ReadonlyMap<string, string | null>
}

/**
 * Creates the source for a captured table, which reads the change log. `table` is `schema.name`.
 */
export function createLogSource(
  table: string,
  log: Pick<ChangeLog, 'token' | 'stored' | 'boundary' | 'since'>,
  { add, resync, routeBy, dependencies }: ChangeSourceParts,
): ChangeSource {
  return {
    capture: 'trigger',
    token: () => log.token(),
    stored: () => log.stored(),
    boundary: (snapshot, has) => log.boundary(snapshot, has),
    since: (token, routes, reach) => log.since(table, token, dependencies(), routes, reach),
    changed: add,
    invalidate: resync,
    unavailable() {},
    notification() {},
    gap() {},
    routeBy,
  }
}

/** The dependencies of a source of gateway writes. */
export interface GatewayWriteSourceParts extends Omit<ChangeSourceParts, 'dependencies'> {
  /** The resource name. */
  readonly table: string
  /** The identifier of this process. */
  readonly origin: string
  readonly rowsBefore: Pick<OldImageStore, 'of'>
  /**
   * True if columns of a row change only when a write assigns them: no trigger changes them and none is
   * generated.
   */
  readonly isPlain: () => boolean
}

/**
 * Creates the source for a table whose changes are known only from the notifications of gateway writes; this
 * process keeps the most recent ones.
 */
export function createGatewayWriteSource(parts: GatewayWriteSourceParts): ChangeSource {
  const { table, origin, rowsBefore, add, resync, routeBy, isPlain } = parts
  const history = createHistory()
  let pending: string[] = []
  let processing = false

  function doubt(reason: ResyncReason, routes: Routes | null = null): void {
    history.invalidate(routes)
    resync(reason, routes)
  }

  async function process(payload: string): Promise<void> {
    const notification = decodeNotification(payload)
    if (notification === null || notification.rows === null) {
      doubt('bulk', notification === null ? null : routesOfMany(notification, isPlain()))
      return
    }
    const { txid, assigned, at } = notification
    const isOurs = notification.origin === origin
    const rows = notification.hasBefore && isOurs ? await rowsBefore.of(txid, table) : null
    const changes = notification.rows.map(({ operation, key, route }): ChangeEvent => {
      const seq = history.next()
      const place = { seq, from: history.tokenAt(seq - 1), to: history.tokenAt(seq) }
      const before = rows?.get(key) ?? null
      const routes = routesOf(notification, { operation, route, before }, isPlain())
      return { ...place, operation, key, before, assigned, at, txid, routes }
    })
    history.add(changes)
    add(changes)
  }

  async function processAll(): Promise<void> {
    processing = true
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) await process(next)
    processing = false
  }

  return {
    capture: 'gateway',
    token: history.token,
    async stored() {},
    boundary: snapshot => createBoundary(snapshot, history.token()),
    since(token, routes) {
      const changes = history.since(token, of => mayConcern(of, valueIn(of.column, routes)))
      return Promise.resolve(changes === null ? null : { changes, boundary: null, isLast: true })
    },
    notification(payload) {
      if (pending.length >= PENDING_NOTIFICATIONS_MAX) {
        pending = []
        doubt('too many changes')
        return
      }
      pending.push(payload)
      if (!processing) void processAll()
    },
    gap: () => doubt('connection lost'),
    invalidate: doubt,
    changed() {},
    unavailable() {},
    routeBy,
  }
}

/** The caller's value of a routing column, of the table or of a guard; null if unknown. */
function valueIn(column: string, { own, guards }: CallerRoutes): RouteValue | null {
  return [own, ...guards.values()].find(value => value?.column === column) ?? null
}

/**
 * The routes of everything that a notification reports, without old rows; null if it may concern any group.
 * `isPlain`: see `GatewayWriteSourceParts`.
 */
export function routesOfNotification(payload: string, isPlain: boolean): Routes | null {
  const notification = decodeNotification(payload)
  if (notification === null) return null
  if (notification.rows === null) return routesOfMany(notification, isPlain)
  return joinedRoutes(
    notification.rows.map(({ operation, route }) =>
      routesOf(notification, { operation, route, before: null }, isPlain),
    ),
  )
}

/** The routes of several changes together; null if one of them may concern any group. */
export function joinedRoutes(all: readonly (Routes | null)[]): Routes | null {
  const [first = null] = all
  if (first === null || !all.every(routes => routes?.column === first.column)) return null
  return { column: first.column, values: [...new Set(all.flatMap(routes => routes?.values ?? []))] }
}

/** True if the routing column kept its value. */
function keepsRoute({ by, assigned }: WriteNotification, isPlain: boolean): boolean {
  return by !== null && assigned !== null && !assigned.includes(by) && isPlain
}

/** The routes of a bulk change; null if it may concern any group. */
function routesOfMany(notification: WriteNotification, isPlain: boolean): Routes | null {
  const { by, whom, assigned } = notification
  if (by === null || whom === null) return null
  // Rows inserted or deleted as a whole had no other value.
  return assigned === null || keepsRoute(notification, isPlain) ? { column: by, values: whom.map(hashed) } : null
}

/** The routes of a row; null if it may concern any group. */
function routesOf(
  notification: WriteNotification,
  { operation, route, before }: { operation: ChangeOperation; route: string | null; before: string | null },
  isPlain: boolean,
): Routes | null {
  const { by } = notification
  if (by === null || route === null) return null
  const values = [hashed(route)]
  // An inserted row had no value before, and for a deleted row this is the value before.
  if (operation === 'INSERT' || operation === 'DELETE') return { column: by, values }
  const was = before === null ? null : memberOf(before, by)
  if (was !== null) return { column: by, values: [...values, was] }
  return keepsRoute(notification, isPlain) ? { column: by, values } : null
}

/** The text of a member of a JSON object. */
function memberOf(row: string, name: string): string | null {
  const whole = parseJsonBody(Buffer.from(row), Number.POSITIVE_INFINITY)
  const member = whole.kind === 'object' ? whole.members.find(({ key }) => key === name) : undefined
  return member === undefined || whole.kind !== 'object' ? null : partBytes(whole, member).toString()
}
