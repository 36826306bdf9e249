/**
 * Who subscribes to what: each table that somebody watches, and groups of subscriptions that see the same. Nothing here runs while nobody subscribes.
 */
import type { Table } from '../catalog/model.ts'
import { catalogueStatement } from '../compile/derive.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import { toGatewayError } from '../run/errors.ts'
import type { Runner } from '../run/run.ts'
import { createAllowance } from './allowance.ts'
import type { Boundary } from './boundary.ts'
import { contextOf } from './context.ts'
import { createCrowd } from './crowd.ts'
import type { Missed } from './feed.ts'
import { createGroup, type Group, type LookCounts, type Member, type ResyncReason } from './group.ts'
import { createLimiter } from './limiter.ts'
import { look, type Seen, type Told, toldOf, tryLook } from './look.ts'
import { isPassing } from './passing.ts'
import type { Beyond, Quotas, RealtimeLimits, Release } from './quotas.ts'
import { routeStatement, routeValueOf } from './route.ts'
import type { CaptureKind } from './sources.ts'
import type { TableRules } from './table-rules.ts'
import type { Watch, WatchRequest } from './watch.ts'
import { createWatched, type Watched, type WatchedParts } from './watched.ts'

/** Looks at the database at a time: of all subscriptions together, and of one tenant. */
const LOOKS = { places: 64, placesPerOwner: 8 }

/** A feed without subscriptions stays for so long, for clients that come back with a token. */
const LINGER_MS = 30_000

/** Subscriptions that could not be checked anew because the database was away are, after this time. */
const REGROUP_RETRY_MS = 1_000

/** Policies that change faster than they can be read. */
const RULES_ATTEMPTS = 5

export interface Receiver {
  see(told: readonly Told[]): void
  resync(reason: ResyncReason): void
  /** It has ended: the table is gone, or the caller may not read it any more. */
  refused(error: unknown): void
}

export interface Subscription {
  /** The resume token of where it begins: exactly what was committed after that is delivered. */
  readonly place: string
  /** Where it is now, for whoever reads the rows from then on. */
  token(): string
  /** What there is to tell from here on, and was held back until now. */
  start(): void
  /** Goes on as somebody else, or as the same with a new token. Throws what refuses it, and has ended then. */
  renew(identity: Identity): void
  end(): void
}

export interface Hub {
  /** Resolves once it is known where it begins, which is after this call. `since`: there, if that is still known; else a `resync` comes first. */
  subscribe(
    request: WatchRequest & { readonly since: string | null },
    identity: Identity,
    receiver: Receiver,
  ): Promise<Subscription>
  /** The schema or the rights have changed: every subscription is checked anew. */
  refresh(): void
  /** Other tables may be captured than before. */
  recapture(): void
  /** Whether the rows of a table as they were before a change are wanted. */
  wants(table: string): boolean
  /** The column that says whom a row of a table concerns; null: unknown. */
  routeBy(table: string): string | null
  stats(): HubStats
  close(): void
}

export interface HubStats {
  /** Those that somebody watches, by resource name. */
  readonly tables: ReadonlyMap<string, CaptureKind>
  readonly groups: number
  readonly subscriptions: number
  /** Looks that wait for their turn. */
  readonly waiting: number
  readonly looks: LookStats
}

/** How many there were. */
export interface LookStats {
  /** At changes that concern the owner of the subscriptions. */
  readonly own: number
  /** At changes of which nobody knows that. */
  readonly perhaps: number
  /** Of those, how many had to wait for the limit. */
  readonly delayed: number
  /** Times that everybody was to read again, put off and merged with others. */
  readonly merged: number
}

export interface HubParts extends WatchedParts {
  readonly quotas: Pick<Quotas, 'subscription' | 'group'>
  readonly limits: Pick<RealtimeLimits, 'tenantMaxUnroutedQueriesPerSec' | 'unroutedResyncIntervalMs'>
  readonly plan: (request: WatchRequest, identity: Identity) => Watch
  readonly runner: Pick<Runner, 'read'>
  readonly now: () => number
}

/** A table with those who watch it. */
interface Entry {
  readonly watched: Watched
  readonly subscribers: Set<Subscriber>
  /** Names of groups of one filter, which is too slow to be evaluated with others. */
  readonly apart: Set<string>
  /** Subscriptions under way. */
  pending: number
  linger: NodeJS.Timeout | null
  regrouping: boolean
  /** It has to be done, or to be done once more. */
  outdated: boolean
}

interface Subscriber extends Member {
  refused(error: unknown): void
  identity: Identity
  readonly request: WatchRequest
  readonly receiver: Receiver
  group: Group | null
  /** Gives back its share in the group, and what it counts for itself. */
  leaveGroup: Release
  readonly release: Release
  /** Where it begins; null once it was told to read again, or where nobody knows. */
  boundary: Boundary | null
  /** What it is told when it has started; null from then on. */
  held: (() => void)[] | null
}

export function createHub(parts: HubParts): Hub {
  const { plan, runner, rowsBefore, now, quotas } = parts
  const limiter = createLimiter(LOOKS)
  const crowd = createCrowd()
  const allowance = createAllowance(parts.limits.tenantMaxUnroutedQueriesPerSec, now)
  const counts = { own: 0, perhaps: 0, delayed: 0, merged: 0 }
  const count: LookCounts = {
    look(whose) {
      if (whose === 'its own') counts.own++
      else counts.perhaps++
    },
    delayed() {
      counts.delayed++
    },
  }
  const tables = new Map<string, Entry>()
  let closed = false

  // ---- tables ------------------------------------------------------------------------------------------------

  /** How many ever did. */
  let subscribed = 0
  const onMerge = () => {
    counts.merged++
  }

  function entryOf({ schema, name, resource }: Table): Entry {
    const known = tables.get(resource)
    if (known !== undefined) {
      if (known.linger !== null) clearTimeout(known.linger)
      known.linger = null
      return known
    }
    const entry: Entry = {
      watched: createWatched(
        { name: `${schema}.${name}`, resource },
        { ...parts, ...{ onMerge, subscribed: () => subscribed }, onStale: () => void regroup(entry) },
      ),
      ...{ subscribers: new Set(), apart: new Set(), pending: 0, linger: null, regrouping: false, outdated: false },
    }
    tables.set(resource, entry)
    return entry
  }

  function releaseIfUnused(table: string, entry: Entry): void {
    if (entry.subscribers.size > 0 || entry.pending > 0 || entry.linger !== null || closed) return
    entry.linger = setTimeout(() => {
      tables.delete(table)
      entry.watched.close()
    }, LINGER_MS)
    entry.linger.unref()
  }

  // ---- groups ------------------------------------------------------------------------------------------------

  function join(
    entry: Entry,
    subscriber: Subscriber,
    { watch, rules }: { readonly watch: Watch; readonly rules: TableRules },
    beyond: Beyond,
  ): void {
    const { groups } = entry.watched
    const { sees, alone } = namesOf(watch, rules, subscriber.identity)
    const name = isShared(watch, rules) || entry.apart.has(alone) ? alone : sees
    const before = subscriber.group
    const known = groups.get(name)
    if (known !== undefined && known === before) return
    const share = JSON.stringify([entry.watched.name, alone, watch.variant.name])
    const leaveGroup = quotas.group(subscriber.identity, share, beyond)
    const group = known ?? newGroup(entry, watch, rules, subscriber.identity)
    if (known === undefined) groups.add(name, group)
    group.join(subscriber, watch)
    if (before !== null) {
      group.adopt(before.pending())
      leave(entry, subscriber, before)
    }
    subscriber.group = group
    subscriber.leaveGroup = leaveGroup
  }

  function newGroup(entry: Entry, watch: Watch, rules: TableRules, identity: Identity): Group {
    const { groups } = entry.watched
    const owner = ownerOf(watch, rules, identity)
    const group = createGroup(watch.table, rules, { ...groupParts(entry), owner })
    const { route } = rules
    if (route === null) return group
    const ask = () => runner.read(identity, [catalogueStatement(routeStatement(route), [])], { ms: 0 }).result
    limiter.run(owner, ask).then(
      ([rows]) => groups.route(group, routeValueOf(route, rows?.[0] ?? [])),
      // Everything concerns it then.
      () => {},
    )
    return group
  }

  function leave({ watched: { groups }, apart }: Entry, subscriber: Subscriber, group: Group): void {
    group.leave(subscriber)
    subscriber.leaveGroup()
    if (group.isEmpty) apart.delete(groups.delete(group))
  }

  /** One of their filters takes too long: each is evaluated on its own from now on. */
  function separate(entry: Entry, members: readonly Member[]): void {
    const concerned = new Set(members)
    for (const subscriber of [...entry.subscribers]) {
      const rules = entry.watched.known
      if (!concerned.has(subscriber) || rules === null) continue
      try {
        const watch = plan(subscriber.request, subscriber.identity)
        entry.apart.add(namesOf(watch, rules, subscriber.identity).alone)
        join(entry, subscriber, { watch, rules }, 'count')
      } catch {
        void checkAnew(entry, subscriber)
      }
    }
  }

  function groupCount(): number {
    let count = 0
    for (const { watched } of tables.values()) count += watched.groups.size
    return count
  }

  function groupParts(entry: Entry) {
    return {
      ...{ runner, limiter, now, crowd, allowance, count },
      onStale: () => void regroup(entry),
      onRefused: (members: readonly Member[]) => void checkMembers(entry, members),
      onSlow: (members: readonly Member[]) => separate(entry, members),
    }
  }

  function remove(table: string, entry: Entry, subscriber: Subscriber): void {
    entry.subscribers.delete(subscriber)
    if (subscriber.group !== null) leave(entry, subscriber, subscriber.group)
    subscriber.group = null
    subscriber.release()
    releaseIfUnused(table, entry)
  }

  /** Nobody is left to wait for changes that are not heard of. */
  function refuse(entry: Entry, error: unknown): void {
    if (closed) return
    for (const subscriber of [...entry.subscribers]) {
      remove(subscriber.request.table, entry, subscriber)
      subscriber.refused(error)
    }
  }

  /** Of one group, whose look failed: nobody else's business. Never rejects. */
  async function checkMembers(entry: Entry, members: readonly Member[]): Promise<void> {
    const concerned = new Set(members)
    for (const subscriber of [...entry.subscribers]) {
      if (concerned.has(subscriber)) await checkAnew(entry, subscriber)
    }
  }

  /** Nothing is told by rules that may not hold any more; whoever remains is told to read again. */
  function suspend(entry: Entry): void {
    for (const subscriber of entry.subscribers) {
      if (subscriber.group !== null) leave(entry, subscriber, subscriber.group)
      subscriber.group = null
    }
  }

  /** Checks every subscription of a table anew, and has those that remain read again: what changed meanwhile nobody looked at. */
  async function regroup(entry: Entry): Promise<void> {
    entry.outdated = true
    if (entry.regrouping) return
    entry.regrouping = true
    let left = 0
    try {
      // Something else may change while it is looked at.
      while (entry.outdated) {
        entry.outdated = false
        entry.watched.forgetRules()
        suspend(entry)
        left = 0
        for (const subscriber of [...entry.subscribers]) left += (await checkAnew(entry, subscriber)) ? 0 : 1
      }
    } finally {
      entry.regrouping = false
    }
    entry.watched.doubt('schema changed')
    if (left > 0) setTimeout(() => void regroup(entry), REGROUP_RETRY_MS).unref()
  }

  /** False: the database could not be asked. Never rejects. */
  async function checkAnew(entry: Entry, subscriber: Subscriber): Promise<boolean> {
    try {
      const { watch, rules } = await prepare(entry, subscriber.request, subscriber.identity)
      if (entry.subscribers.has(subscriber)) join(entry, subscriber, { watch, rules }, 'count')
    } catch (error) {
      if (!entry.subscribers.has(subscriber)) return true
      if (isPassing(error)) return false
      remove(subscriber.request.table, entry, subscriber)
      subscriber.refused(error)
    }
    return true
  }

  /** The read of a subscription, tried, with the rules that it was tried by. */
  async function prepare({ watched }: Entry, request: WatchRequest, identity: Identity) {
    for (let attempt = 0; attempt < RULES_ATTEMPTS; attempt++) {
      const watch = plan(request, identity)
      const rules = await watched.rules(watch.table)
      if (rules === null) throw new GatewayError('NOT_FOUND', `table "${request.table}" is gone`)
      const snapshot = await limiter.run(callerKey(identity), () => tryLook(runner, identity, watch, rules))
      if (snapshot !== null) return { watch, rules, snapshot }
      watched.forgetRules()
    }
    throw new GatewayError('UNAVAILABLE', `the policies of "${request.table}" are changing; try again`)
  }

  return {
    async subscribe(request, identity, receiver) {
      // A name that means nothing is refused before anything is kept for it.
      const { table: found } = plan(request, identity)
      const { table, since } = request
      const release = quotas.subscription(identity)
      const entry = entryOf(found)
      const { watched } = entry
      entry.pending++
      const subscriber = createSubscriber(request, identity, receiver, { release, number: ++subscribed })
      let place: string
      try {
        await watched.listening()
        const { watch, rules, snapshot } = await prepare(entry, request, identity)
        entry.subscribers.add(subscriber)
        join(entry, subscriber, { watch, rules }, 'refuse')
        const begin = watched.feed.boundary(snapshot)
        subscriber.boundary = begin
        place = since ?? begin.token
        if (since !== null) {
          const missed = await missedSince(watched, since)
          const changes = missed?.changes ?? []
          const evaluated = [{ evaluation: watch.evaluation, names: [watch.name] }]
          const audience = { table: watch.table, rules, parts: [{ watch, variant: watch.variant }], evaluated }
          const lookAtMissed = () => look(runner, identity, audience, changes)
          const seen = missed === null ? null : await limiter.run(callerKey(identity), lookAtMissed)
          subscriber.boundary = missed?.boundary ?? null
          // In front of whatever the group has seen meanwhile.
          subscriber.held?.unshift(() => tell(receiver, seen?.[0] ?? null, changes))
        }
      } catch (error) {
        remove(table, entry, subscriber)
        throw error
      } finally {
        entry.pending--
        releaseIfUnused(table, entry)
      }
      return {
        place,
        token: () => watched.feed.token(),
        start() {
          const held = subscriber.held ?? []
          subscriber.held = null
          for (const telling of held) telling()
        },
        renew(renewed) {
          subscriber.identity = renewed
          if (!entry.subscribers.has(subscriber) || watched.known === null) return
          join(entry, subscriber, { watch: plan(request, renewed), rules: watched.known }, 'count')
        },
        end: () => remove(table, entry, subscriber),
      }
    },
    refresh() {
      for (const entry of tables.values()) void regroup(entry)
    },
    recapture() {
      for (const entry of tables.values()) entry.watched.recapture().catch(error => refuse(entry, error))
    },
    wants(table) {
      const watched = tables.get(table)?.watched
      return watched !== undefined && watched.feed.capture === 'gateway' && watched.known?.condition != null
    },
    routeBy: table => tables.get(table)?.watched.known?.route?.column ?? null,
    stats() {
      const all = [...tables]
      return {
        tables: new Map(all.map(([table, { watched }]) => [table, watched.feed.capture])),
        groups: groupCount(),
        subscriptions: all.reduce((sum, [, { subscribers }]) => sum + subscribers.size, 0),
        waiting: limiter.waiting,
        looks: counts,
      }
    },
    close() {
      closed = true
      for (const { linger } of tables.values()) if (linger !== null) clearTimeout(linger)
      tables.clear()
      rowsBefore.close()
    },
  }
}

/** Null: nobody knows, or not in time. */
async function missedSince({ feed }: Watched, since: string): Promise<Missed | null> {
  try {
    return await feed.since(since)
  } catch (error) {
    throw toGatewayError(error, { statements: [], access: 'read only' })
  }
}

function createSubscriber(
  request: WatchRequest,
  identity: Identity,
  receiver: Receiver,
  of: Pick<Subscriber, 'release' | 'number'>,
): Subscriber {
  const subscriber: Subscriber = {
    ...{ identity, request, receiver, ...of, leaveGroup: () => {}, group: null, boundary: null, held: [] },
    see: told => inTurn(() => receiver.see(subscriber.boundary === null ? told : after(subscriber.boundary, told))),
    resync: reason =>
      inTurn(() => {
        // The server may have been started again, and give the same numbers to other transactions.
        subscriber.boundary = null
        receiver.resync(reason)
      }),
    refused: error => inTurn(() => receiver.refused(error)),
  }
  const inTurn = (telling: () => void) => {
    if (subscriber.held === null) telling()
    else subscriber.held.push(telling)
  }
  return subscriber
}

/** Who sees the same rows, whatever their filters; and who has the same filter and columns besides. */
function namesOf(watch: Watch, rules: TableRules, identity: Identity) {
  const settings = rules.settings === null ? null : [...rules.settings, ...watch.settings]
  // Filters of different tenants are never evaluated together: one that takes long is its own tenant's matter.
  const holder = isShared(watch, rules) ? '' : callerKey(identity)
  const sees = JSON.stringify([watch.rights, contextOf(identity, settings), holder])
  return { sees, alone: JSON.stringify([watch.name, sees]) }
}

/** Without a filter, rows are the same for every tenant where no policy looks at it. */
function isShared({ hasFilter, settings }: Watch, rules: TableRules): boolean {
  return !hasFilter && rules.settings !== null && [...rules.settings, ...settings].every(name => COMMON.has(name))
}

/** Settings that callers of different tenants can have in common. */
const COMMON: ReadonlySet<string> = new Set(['app.is_super_admin', 'app.current_role', 'app.current_scopes'])

/** Whose turns the looks of a group take; nobody's where everybody sees the same. */
function ownerOf({ hasFilter, settings }: Watch, rules: TableRules, identity: Identity): string {
  const isEverybodys = rules.settings?.length === 0 && settings.length === 0 && !hasFilter
  return isEverybodys ? '' : callerKey(identity)
}

/** What is left without the transactions that were committed before. */
function after(boundary: Boundary, told: readonly Told[]): readonly Told[] {
  return told.map(item => ({
    ...item,
    steps: item.steps.filter(({ txid }) => !boundary.includes(txid)),
    token: boundary.laterOf(item.token),
  }))
}

/** What came of the changes since a token; null: nobody knows them. */
function tell(receiver: Receiver, seen: readonly Seen[] | null, changes: Missed['changes']): void {
  if (seen === null || seen.some(({ steps }) => steps === null)) receiver.resync('token')
  const told = toldOf(seen ?? [], changes)
  if (told.length > 0) receiver.see(told)
}
