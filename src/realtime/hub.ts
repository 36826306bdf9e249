/**
 * The hub of all subscriptions: the tables that are subscribed to, and the visibility groups of each. Nothing
 * runs without subscriptions.
 */
import type { Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import { toGatewayError } from '../run/errors.ts'
import type { Runner } from '../run/run.ts'
import { type Allowance, createAllowance } from './allowance.ts'
import type { Boundary } from './boundary.ts'
import { type CaptureKind, nameOf } from './capture-sources.ts'
import type { CallerRoutes, CatchUpReach, MissedChanges } from './change-source.ts'
import { databaseRoleOf, groupKeysOf, isShared, ownerOf } from './group-keys.ts'
import { createLimiter } from './limiter.ts'
import { createQueryPacing } from './query-pacing.ts'
import { readRouteValues } from './query-routes.ts'
import type { OverLimit, Quotas, RealtimeLimits } from './quotas.ts'
import type { RouteValue, VisibilityRoute } from './route.ts'
import { createSubscriber, type Subscriber, type SubscriptionReceiver } from './subscriber.ts'
import type { SubscriptionPlan, SubscriptionRequest } from './subscription-plan.ts'
import type { TableRules } from './table-rules.ts'
import { createTableState, guardKey, type TableState, type TableStateParts } from './table-state.ts'
import { isTransient } from './transient-errors.ts'
import { createVisibilityGroup, type GroupMember, type QueryCounts, type VisibilityGroup } from './visibility-group.ts'
import type { VisibilityGroups } from './visibility-groups.ts'
import { type ChangeNotification, notificationsOf, queryVisibility, tryVisibilityQuery } from './visibility-query.ts'

/** Limits on concurrent visibility queries: in total, and per tenant. */
const QUERY_SLOTS = { slots: 64, slotsPerOwner: 8 }

/**
 * How long the state of a table is kept after its last subscription, for clients that return with a resume
 * token.
 */
const LINGER_MS = 30_000

/** Delay before subscriptions are checked again after the database was unavailable. */
const REGROUP_RETRY_MS = 1_000

/** The size of missed changes: those that are visible, their characters, and the reads of the log. */
interface MissedSize {
  readonly changes: number
  readonly characters: number
  readonly reads: number
}

/** Limit on a part of what a client has missed. It is exceeded by one read (`SINCE_ROWS_MAX`) at most. */
const PART: MissedSize = { changes: 1_000, characters: 2 * 1024 * 1024, reads: 20 }

/** Limit for a client that receives all parts at once. Beyond it, the client is asked to resync. */
const WHOLE: MissedSize = { changes: 5_000, characters: 8 * 1024 * 1024, reads: 1_000 }

/** Attempts to read policies that keep changing. */
const RULES_ATTEMPTS = 5

/** An active subscription. */
export interface Subscription {
  /** The resume token of its start: exactly the transactions committed after it are delivered. */
  readonly startToken: string
  /**
   * The position that the changes delivered by `start` reach: a client that has received them, and none
   * after them, resumes from this token.
   */
  readonly reachedToken: string
  /**
   * False if more changes follow the reached position that this subscription does not deliver: the client
   * continues from there with another one.
   */
  readonly isCaughtUp: boolean
  readonly plan: SubscriptionPlan
  readonly capture: CaptureKind
  /** Tables that decide what the caller sees and whose changes are not captured, as `schema.name`. */
  readonly uncaptured: readonly string[]
  /** Equal for subscriptions that receive the same rows and values in every state of the database. */
  readonly context: string
  /** True while a resync is postponed. The tokens of notifications can then come after its reason. */
  awaitsResync(): boolean
  /**
   * The current resume token if everything before it was delivered; null while something is pending.
   */
  settledToken(): string | null
  /** The current resume token, for a client that reads its rows from now on. */
  token(): string
  /** Starts delivery, beginning with what was held back until now. */
  start(): void
  /**
   * Continues with another identity, or with a new token of the same one.
   * @throws GatewayError if the caller may not subscribe; the subscription has ended then.
   */
  renew(identity: Identity): void
  end(): void
}

/** A planned subscription, the rules that it was tried with, and the caller's routing values. */
interface Prepared {
  readonly watch: SubscriptionPlan
  readonly rules: TableRules
  readonly routes: readonly RouteValue[]
}

/** The properties of a subscription that are known when it begins. */
type Beginning = Pick<Subscription, 'startToken' | 'reachedToken' | 'isCaughtUp' | 'plan' | 'uncaptured' | 'context'>

type SubscribeRequest = SubscriptionRequest & {
  readonly since: string | null
  /** `part`: the subscription may end before it has caught up (`isCaughtUp`). By default it catches up. */
  readonly catchUp?: 'whole' | 'part'
  /** Where the missed changes end at least. By default at the last read of the change log. */
  readonly reach?: CatchUpReach
}

/** Figures of the hub. */
export interface HubStats {
  /** Tables that are subscribed to, by resource name. */
  readonly tables: ReadonlyMap<string, CaptureKind>
  readonly groups: number
  readonly subscriptions: number
  /** Visibility queries that wait for their turn. */
  readonly queued: number
  readonly queries: QueryStats
}

/** Counts of visibility queries. */
export interface QueryStats {
  /** Queries for changes that certainly concern the group's owner. */
  readonly certain: number
  /** Queries for changes that may concern the group's owner. */
  readonly possible: number
  /** How many of those were delayed by the limit. */
  readonly delayed: number
  /** Resyncs of all subscribers that were postponed and merged. */
  readonly merged: number
}

/** The dependencies of a hub. */
export interface HubParts extends TableStateParts {
  readonly quotas: Pick<Quotas, 'subscription' | 'group'>
  readonly limits: Pick<RealtimeLimits, 'tenantMaxUnroutedQueriesPerSec' | 'unroutedResyncIntervalMs'>
  readonly plan: (request: SubscriptionRequest, identity: Identity) => SubscriptionPlan
  readonly runner: Pick<Runner, 'read'>
  readonly now: () => number
}

/** A table and its subscribers with one database role. */
interface Entry {
  readonly key: string
  readonly resource: string
  /** The role that their sessions take; null for that of the connection. */
  readonly role: string | null
  readonly state: TableState
  readonly subscribers: Set<Subscriber>
  /** Names of groups with a single filter that is too slow to be evaluated with others. */
  readonly isolated: Set<string>
  /** Subscriptions being set up. */
  pending: number
  linger: NodeJS.Timeout | null
  regrouping: boolean
  /** True if regrouping is needed, or needed again. */
  outdated: boolean
}

/** Manages the subscriptions of all clients. */
export class Hub {
  readonly #parts: HubParts
  readonly #limiter = createLimiter(QUERY_SLOTS)
  readonly #pacing = createQueryPacing()
  readonly #allowance: Allowance
  readonly #counts = { certain: 0, possible: 0, delayed: 0, merged: 0 }
  readonly #count: QueryCounts = {
    queried: whose => {
      if (whose === 'its own') this.#counts.certain++
      else this.#counts.possible++
    },
    delayed: () => void this.#counts.delayed++,
  }
  readonly #tables = new Map<string, Entry>()
  /** The number of subscriptions ever made. */
  #subscribed = 0
  #isClosed = false

  constructor(parts: HubParts) {
    this.#parts = parts
    this.#allowance = createAllowance(parts.limits.tenantMaxUnroutedQueriesPerSec, parts.now)
  }

  /**
   * Subscribes. Resolves once the start position is known, which is after this call. With `since`, delivery
   * starts at that token if it is still known; otherwise a `resync` comes first.
   */
  async subscribe(
    request: SubscribeRequest,
    identity: Identity,
    receiver: SubscriptionReceiver,
  ): Promise<Subscription> {
    const { plan, quotas } = this.#parts
    // An unknown table is refused before any state is created for it.
    const { table: found } = plan(request, identity)
    const release = quotas.subscription(identity)
    const entry = this.#entryOf(found, databaseRoleOf(identity))
    entry.pending++
    const subscriber = createSubscriber(request, identity, receiver, { release, number: ++this.#subscribed })
    try {
      return this.#subscriptionOf(entry, subscriber, await this.#begin(entry, subscriber, request))
    } catch (error) {
      this.#remove(entry, subscriber)
      throw error
    } finally {
      entry.pending--
      this.#releaseIfUnused(entry)
    }
  }

  /** Checks every subscription again after the schema or rights have changed. */
  refresh(): void {
    for (const entry of this.#tables.values()) void this.#regroup(entry)
  }

  /** Adapts to a changed set of captured tables. */
  recapture(): void {
    for (const entry of this.#tables.values()) {
      entry.state.recapture().then(
        () => {
          if (!isDelivered(entry)) this.#endAll(entry, notCaptured(entry))
        },
        error => this.#endAll(entry, error),
      )
    }
  }

  /** True if the old row images of a table's gateway writes are needed. */
  wants(table: string): boolean {
    const state = this.#tables.get(table)?.state
    return state !== undefined && state.source.capture === 'gateway' && state.known?.condition != null
  }

  /** The routing column of a table; null if unknown. */
  routeBy(table: string): string | null {
    const own = this.#tables.get(table)?.state.known?.route?.column ?? null
    if (own !== null) return own
    for (const { state } of this.#tables.values()) {
      const column = state.guardedBy(table)
      if (column !== null) return column
    }
    return null
  }

  stats(): HubStats {
    const all = [...this.#tables]
    return {
      tables: new Map(all.map(([, { resource, state }]) => [resource, state.source.capture])),
      groups: this.#groupCount(),
      subscriptions: all.reduce((sum, [, { subscribers }]) => sum + subscribers.size, 0),
      queued: this.#limiter.waiting,
      queries: this.#counts,
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { linger } of this.#tables.values()) if (linger !== null) clearTimeout(linger)
    this.#tables.clear()
    this.#parts.rowsBefore.close()
  }

  // // --- starting ---

  async #begin(
    entry: Entry,
    subscriber: Subscriber,
    { since, catchUp: how = 'whole', reach = 'the last read' }: SubscribeRequest,
  ): Promise<Beginning> {
    const { state } = entry
    const { request, identity } = subscriber
    if (!isDelivered(entry)) throw notCaptured(entry)
    await state.listening()
    if (since === null) await state.source.stored()
    const { watch, rules, snapshot, routes } = await this.#prepare(entry, request, identity)
    entry.subscribers.add(subscriber)
    this.#join(entry, subscriber, { watch, rules, routes }, 'refuse')
    const start = state.source.boundary(snapshot, since === null ? 'rows' : 'entries')
    subscriber.boundary = start
    const { alone } = groupKeysOf(watch, rules, identity)
    const beginning = {
      plan: watch,
      uncaptured: state.uncaptured(),
      context: JSON.stringify([alone, watch.variant.name, rules.fingerprint]),
    }
    // The client has everything that the reads of this subscription see.
    if (since === null || (since === start.token && state.source.capture === 'trigger'))
      return { ...beginning, startToken: start.token, reachedToken: start.token, isCaughtUp: true }
    const missed = await this.#catchUp(state, subscriber, { watch, rules, routes }, { since, how, reach })
    subscriber.boundary = missed?.boundary ?? null
    // The missed changes are delivered before everything that the group has reported since then.
    subscriber.held?.unshift(() => deliverMissed(subscriber.receiver, missed))
    const reachedToken = missed?.boundary?.token ?? start.token
    const isCaughtUp = missed?.isWhole ?? true
    if (!isCaughtUp) this.#detach(entry, subscriber)
    return { ...beginning, startToken: since, reachedToken, isCaughtUp }
  }

  /**
   * Reads the changes since a token, as the caller sees them; null if they are not known. The log is read in
   * parts, so that memory is limited by what the caller can see and not by what others have written.
   */
  async #catchUp(
    state: TableState,
    { identity }: Subscriber,
    { watch, rules, routes }: Prepared,
    { since, how, reach }: { readonly since: string; readonly how: 'whole' | 'part'; readonly reach: CatchUpReach },
  ): Promise<CaughtUp | null> {
    const evaluated = [{ evaluation: watch.evaluation, names: [watch.name] }]
    const audience = { table: watch.table, rules, parts: [{ watch, variant: watch.variant }], evaluated }
    const deliveries: ChangeNotification[][] = []
    const size = { changes: 0, characters: 0, reads: 0 }
    // Changes that cannot concern the caller, also those of many rows, need not be read.
    const callerRoutes = callerRoutesOf(rules, routes)
    for (let token = since; ; ) {
      const missed = await missedChanges(state, token, callerRoutes, reach)
      if (missed === null) return null
      const { changes, boundary, isLast } = missed
      const queryMissed = () => queryVisibility(this.#parts.runner, identity, audience, changes)
      const visible = changes.length === 0 ? [[]] : await this.#limiter.run(callerKey(identity), queryMissed)
      if (visible === null || visible[0]?.some(({ steps }) => steps === null)) return null
      const notifications = notificationsOf(visible[0] ?? [], changes)
      if (notifications.length > 0) deliveries.push([...notifications])
      size.reads++
      size.changes += notifications.length
      size.characters += notifications.reduce((sum, { row, key }) => sum + (row?.length ?? 0) + key.length, 0)
      if (isLast || boundary === null) return { deliveries, boundary, isWhole: true }
      if (how === 'part' && exceeds(size, PART)) return { deliveries, boundary, isWhole: false }
      if (how === 'whole' && exceeds(size, WHOLE)) return null
      token = boundary.token
    }
  }

  #subscriptionOf(entry: Entry, subscriber: Subscriber, beginning: Beginning): Subscription {
    const { request } = subscriber
    const { state } = entry
    return {
      ...beginning,
      capture: state.source.capture,
      awaitsResync: () => state.awaitsResync(subscriber.number, subscriber.group),
      settledToken() {
        const { held, group, number, boundary } = subscriber
        const isSettled = held === null && group !== null && group.pending().length === 0
        const token = isSettled && !state.awaitsResync(number, group) ? state.source.token() : ''
        // The reader of the log may not have come as far as the start of the subscription yet.
        return token === '' ? null : (boundary?.laterOf(token) ?? null)
      },
      token: () => state.source.token(),
      start() {
        const held = subscriber.held ?? []
        subscriber.held = null
        for (const deliver of held) deliver()
      },
      renew: renewed => {
        subscriber.identity = renewed
        if (!entry.subscribers.has(subscriber) || state.known === null) return
        const watch = this.#parts.plan(request, renewed)
        this.#join(entry, subscriber, { watch, rules: state.known, routes: null }, 'count')
      },
      end: () => this.#remove(entry, subscriber),
    }
  }

  // --- tables ---

  #entryOf({ schema, name, resource }: Table, role: string | null): Entry {
    const key = role === null ? resource : JSON.stringify([resource, role])
    const known = this.#tables.get(key)
    if (known !== undefined) {
      if (known.linger !== null) clearTimeout(known.linger)
      known.linger = null
      return known
    }
    const entry: Entry = {
      ...{ key, resource, role },
      state: createTableState(
        { name: nameOf({ schema, name }), resource, role },
        {
          ...this.#parts,
          onMerge: () => void this.#counts.merged++,
          subscribed: () => this.#subscribed,
          onStale: () => void this.#regroup(entry),
        },
      ),
      ...{ subscribers: new Set(), isolated: new Set(), pending: 0, linger: null, regrouping: false, outdated: false },
    }
    this.#tables.set(key, entry)
    return entry
  }

  #releaseIfUnused(entry: Entry): void {
    if (entry.subscribers.size > 0 || entry.pending > 0 || entry.linger !== null || this.#isClosed) return
    entry.linger = setTimeout(() => {
      this.#tables.delete(entry.key)
      entry.state.close()
    }, LINGER_MS)
    entry.linger.unref()
  }

  // --- groups ---

  #join(
    entry: Entry,
    subscriber: Subscriber,
    { watch, rules, routes }: Omit<Prepared, 'routes'> & { readonly routes: readonly RouteValue[] | null },
    beyond: OverLimit,
  ): void {
    const { groups } = entry.state
    const { visibility, alone } = groupKeysOf(watch, rules, subscriber.identity)
    const name = isShared(watch, rules) || entry.isolated.has(alone) ? alone : visibility
    const before = subscriber.group
    const known = groups.get(name)
    if (known !== undefined && known === before) return
    const share = JSON.stringify([entry.state.name, alone, watch.variant.name])
    const leaveGroup = this.#parts.quotas.group(subscriber.identity, share, beyond)
    const group = known ?? this.#newGroup(entry, watch, rules, subscriber.identity)
    if (known === undefined) {
      groups.add(name, group)
      if (routes !== null) groups.route(group, routes)
      else void this.#routeLater(groups, group, rules, subscriber.identity)
    }
    group.join(subscriber, watch)
    if (before !== null) {
      group.adopt(before.pending())
      entry.state.moved(before, group)
      this.#leave(entry, subscriber, before)
    }
    subscriber.group = group
    subscriber.leaveGroup = leaveGroup
  }

  #newGroup(entry: Entry, watch: SubscriptionPlan, rules: TableRules, identity: Identity): VisibilityGroup {
    const owner = ownerOf(watch, rules, identity)
    return createVisibilityGroup(watch.table, rules, { ...this.#groupParts(entry), owner })
  }

  /** Routes a group whose caller's values are not known yet. Until then, every change concerns it. */
  async #routeLater(
    groups: VisibilityGroups,
    group: VisibilityGroup,
    rules: TableRules,
    identity: Identity,
  ): Promise<void> {
    const routes = routesOf(rules)
    if (routes.length === 0) return
    const read = () => readRouteValues(this.#parts.runner, identity, routes)
    try {
      groups.route(group, await this.#limiter.run(callerKey(identity), read))
    } catch {
      // The group remains unrouted.
    }
  }

  #leave({ state: { groups }, isolated }: Entry, subscriber: Subscriber, group: VisibilityGroup): void {
    group.leave(subscriber)
    subscriber.leaveGroup()
    if (group.isEmpty) isolated.delete(groups.delete(group))
  }

  /** Evaluates each filter separately from now on, because one of them takes too long. */
  #isolate(entry: Entry, members: readonly GroupMember[]): void {
    const concerned = new Set(members)
    for (const subscriber of [...entry.subscribers]) {
      const rules = entry.state.known
      if (!concerned.has(subscriber) || rules === null) continue
      try {
        const watch = this.#parts.plan(subscriber.request, subscriber.identity)
        entry.isolated.add(groupKeysOf(watch, rules, subscriber.identity).alone)
        this.#join(entry, subscriber, { watch, rules, routes: null }, 'count')
      } catch {
        void this.#recheck(entry, subscriber)
      }
    }
  }

  #groupCount(): number {
    let count = 0
    for (const { state } of this.#tables.values()) count += state.groups.size
    return count
  }

  #groupParts(entry: Entry) {
    const { runner, now } = this.#parts
    return {
      ...{ runner, now, limiter: this.#limiter, crowd: this.#pacing, allowance: this.#allowance, count: this.#count },
      onStale: () => void this.#regroup(entry),
      onRefused: (members: readonly GroupMember[]) => void this.#recheckMembers(entry, members),
      onSlow: (members: readonly GroupMember[]) => this.#isolate(entry, members),
    }
  }

  /** Delivers only the first held message: those after it follow changes that are not delivered. */
  #detach(entry: Entry, subscriber: Subscriber): void {
    entry.subscribers.delete(subscriber)
    if (subscriber.group !== null) this.#leave(entry, subscriber, subscriber.group)
    subscriber.group = null
    subscriber.held?.splice(1)
  }

  #remove(entry: Entry, subscriber: Subscriber): void {
    entry.subscribers.delete(subscriber)
    if (subscriber.group !== null) this.#leave(entry, subscriber, subscriber.group)
    subscriber.group = null
    subscriber.release()
    this.#releaseIfUnused(entry)
  }

  /** Ends all subscriptions to a table whose changes can no longer be received. */
  #endAll(entry: Entry, error: unknown): void {
    if (this.#isClosed) return
    for (const subscriber of [...entry.subscribers]) {
      this.#remove(entry, subscriber)
      subscriber.ended(error)
    }
  }

  /** Checks the members of one group whose visibility query failed. Never rejects. */
  async #recheckMembers(entry: Entry, members: readonly GroupMember[]): Promise<void> {
    const concerned = new Set(members)
    for (const subscriber of [...entry.subscribers]) {
      if (concerned.has(subscriber)) await this.#recheck(entry, subscriber)
    }
  }

  /**
   * Takes all subscribers out of their groups, because the rules may no longer apply. `#regroup` later asks
   * those that keep their subscription to resync.
   */
  #suspend(entry: Entry): void {
    for (const subscriber of entry.subscribers) {
      if (subscriber.group !== null) this.#leave(entry, subscriber, subscriber.group)
      subscriber.group = null
    }
  }

  /**
   * Checks every subscription to a table again and asks the remaining ones to resync, because changes during
   * the check were not evaluated.
   */
  async #regroup(entry: Entry): Promise<void> {
    entry.outdated = true
    if (entry.regrouping) return
    entry.regrouping = true
    let left = 0
    try {
      // The rules may change again during the check.
      while (entry.outdated) {
        entry.outdated = false
        entry.state.forgetRules()
        this.#suspend(entry)
        left = 0
        for (const subscriber of [...entry.subscribers]) left += (await this.#recheck(entry, subscriber)) ? 0 : 1
      }
    } finally {
      entry.regrouping = false
    }
    entry.state.invalidate('schema changed')
    if (left > 0) setTimeout(() => void this.#regroup(entry), REGROUP_RETRY_MS).unref()
  }

  /** Returns false if the database was unavailable. Never rejects. */
  async #recheck(entry: Entry, subscriber: Subscriber): Promise<boolean> {
    try {
      const prepared = await this.#prepare(entry, subscriber.request, subscriber.identity)
      if (entry.subscribers.has(subscriber)) this.#join(entry, subscriber, prepared, 'count')
    } catch (error) {
      if (!entry.subscribers.has(subscriber)) return true
      if (isTransient(error)) return false
      this.#remove(entry, subscriber)
      subscriber.ended(error)
    }
    return true
  }

  /** Plans a subscription and tries its read; returns the rules that it was tried with. */
  async #prepare({ state }: Entry, request: SubscriptionRequest, identity: Identity) {
    for (let attempt = 0; attempt < RULES_ATTEMPTS; attempt++) {
      const watch = this.#parts.plan(request, identity)
      const rules = await state.rules(watch.table)
      if (rules === null) throw new GatewayError('NOT_FOUND', `table "${request.table}" no longer exists`)
      const tried = await this.#limiter.run(callerKey(identity), () =>
        tryVisibilityQuery(this.#parts.runner, identity, { watch, rules, routes: routesOf(rules) }),
      )
      if (tried !== null) return { watch, rules, ...tried }
      state.forgetRules()
    }
    throw new GatewayError('UNAVAILABLE', `the policies of "${request.table}" are changing; try again`)
  }
}

/**
 * Gateway writes publish the changes of a table for the role of the connection only. The change log has them
 * for every role.
 */
function isDelivered({ role, state }: Entry): boolean {
  return role === null || state.source.capture === 'trigger'
}

function notCaptured({ state }: Entry): GatewayError {
  return new GatewayError(
    'FORBIDDEN',
    `the changes of "${state.name}" are not captured; run svc install for this table, or ask the operator to`,
  )
}

/** The changes that a client has missed, in the order of delivery, and the position after them. */
interface CaughtUp {
  readonly deliveries: readonly (readonly ChangeNotification[])[]
  readonly boundary: Boundary | null
  readonly isWhole: boolean
}

function exceeds(size: MissedSize, limit: MissedSize): boolean {
  return size.changes > limit.changes || size.characters > limit.characters || size.reads >= limit.reads
}

/** The routing values of a caller, of the table and of its guards. */
function callerRoutesOf({ route, guards }: TableRules, values: readonly RouteValue[]): CallerRoutes {
  return {
    own: values.find(({ column }) => column === route?.column) ?? null,
    guards: new Map(
      [...guards.keys()].flatMap(name => {
        const value = values.find(({ column }) => column === guardKey(name))
        return value === undefined ? [] : [[name, value] as const]
      }),
    ),
  }
}

/** The routes of a table and of its guards. */
function routesOf({ route, guards }: TableRules): readonly VisibilityRoute[] {
  const ofGuards = [...guards].map(([name, guard]) => ({ column: guardKey(name), value: guard.route.value }))
  return route === null ? ofGuards : [route, ...ofGuards]
}

/** The changes since a token, or the first part of them; null if they are not known. */
async function missedChanges(
  { source: feed }: TableState,
  since: string,
  routes: CallerRoutes,
  reach: CatchUpReach,
): Promise<MissedChanges | null> {
  try {
    return await feed.since(since, routes, reach)
  } catch (error) {
    throw toGatewayError(error, { statements: [], access: 'read only' })
  }
}

/** Delivers what a client has missed; null if it is not known. */
function deliverMissed(receiver: SubscriptionReceiver, missed: CaughtUp | null): void {
  if (missed === null) receiver.resync('token')
  for (const notifications of missed?.deliveries ?? []) receiver.notify(notifications)
}
