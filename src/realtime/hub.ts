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
import { type Allowance, createAllowance } from './allowance.ts'
import { createCrowd } from './crowd.ts'
import type { Missed } from './feed.ts'
import { createGroup, type Group, type LookCounts, type Member } from './group.ts'
import { createLimiter } from './limiter.ts'
import { look, type Seen, toldOf, tryLook } from './look.ts'
import { isPassing } from './passing.ts'
import type { Beyond, Quotas, RealtimeLimits } from './quotas.ts'
import { routeStatement, routeValueOf } from './route.ts'
import type { CaptureKind } from './sources.ts'
import { createSubscriber, type Receiver, type Subscriber } from './subscriber.ts'
import type { TableRules } from './table-rules.ts'
import type { Watch, WatchRequest } from './watch.ts'
import { createWatched, type Watched, type WatchedParts } from './watched.ts'
import { isShared, namesOf, ownerOf } from './who-sees.ts'

/** Looks at the database at a time: of all subscriptions together, and of one tenant. */
const LOOKS = { places: 64, placesPerOwner: 8 }

/** A feed without subscriptions stays for so long, for clients that come back with a token. */
const LINGER_MS = 30_000

/** Subscriptions that could not be checked anew because the database was away are, after this time. */
const REGROUP_RETRY_MS = 1_000

/** Policies that change faster than they can be read. */
const RULES_ATTEMPTS = 5

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

type SubscribeRequest = WatchRequest & { readonly since: string | null }

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

export class Hub {
  readonly #parts: HubParts
  readonly #limiter = createLimiter(LOOKS)
  readonly #crowd = createCrowd()
  readonly #allowance: Allowance
  readonly #counts = { own: 0, perhaps: 0, delayed: 0, merged: 0 }
  readonly #count: LookCounts = {
    look: whose => {
      if (whose === 'its own') this.#counts.own++
      else this.#counts.perhaps++
    },
    delayed: () => void this.#counts.delayed++,
  }
  readonly #tables = new Map<string, Entry>()
  /** How many ever did. */
  #subscribed = 0
  #isClosed = false

  constructor(parts: HubParts) {
    this.#parts = parts
    this.#allowance = createAllowance(parts.limits.tenantMaxUnroutedQueriesPerSec, parts.now)
  }

  /** Resolves once it is known where it begins, which is after this call. `since`: there, if that is still known; else a `resync` comes first. */
  async subscribe(request: SubscribeRequest, identity: Identity, receiver: Receiver): Promise<Subscription> {
    const { plan, quotas } = this.#parts
    // A name that means nothing is refused before anything is kept for it.
    const { table: found } = plan(request, identity)
    const release = quotas.subscription(identity)
    const entry = this.#entryOf(found)
    entry.pending++
    const subscriber = createSubscriber(request, identity, receiver, { release, number: ++this.#subscribed })
    try {
      const place = await this.#begin(entry, subscriber, request.since)
      return this.#subscriptionOf(entry, subscriber, place)
    } catch (error) {
      this.#remove(request.table, entry, subscriber)
      throw error
    } finally {
      entry.pending--
      this.#releaseIfUnused(request.table, entry)
    }
  }

  /** The schema or the rights have changed: every subscription is checked anew. */
  refresh(): void {
    for (const entry of this.#tables.values()) void this.#regroup(entry)
  }

  /** Other tables may be captured than before. */
  recapture(): void {
    for (const entry of this.#tables.values()) entry.watched.recapture().catch(error => this.#refuse(entry, error))
  }

  /** Whether the rows of a table as they were before a change are wanted. */
  wants(table: string): boolean {
    const watched = this.#tables.get(table)?.watched
    return watched !== undefined && watched.feed.capture === 'gateway' && watched.known?.condition != null
  }

  /** The column that says whom a row of a table concerns; null: unknown. */
  routeBy(table: string): string | null {
    return this.#tables.get(table)?.watched.known?.route?.column ?? null
  }

  stats(): HubStats {
    const all = [...this.#tables]
    return {
      tables: new Map(all.map(([table, { watched }]) => [table, watched.feed.capture])),
      groups: this.#groupCount(),
      subscriptions: all.reduce((sum, [, { subscribers }]) => sum + subscribers.size, 0),
      waiting: this.#limiter.waiting,
      looks: this.#counts,
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { linger } of this.#tables.values()) if (linger !== null) clearTimeout(linger)
    this.#tables.clear()
    this.#parts.rowsBefore.close()
  }

  // --- beginning ---

  /** Answers where it begins. */
  async #begin(entry: Entry, subscriber: Subscriber, since: string | null): Promise<string> {
    const { watched } = entry
    const { request, identity } = subscriber
    await watched.listening()
    const { watch, rules, snapshot } = await this.#prepare(entry, request, identity)
    entry.subscribers.add(subscriber)
    this.#join(entry, subscriber, { watch, rules }, 'refuse')
    const begin = watched.feed.boundary(snapshot)
    subscriber.boundary = begin
    if (since === null) return begin.token
    await this.#catchUp(watched, subscriber, { watch, rules }, since, identity)
    return since
  }

  /** Holds ready what came of the changes since a token. */
  async #catchUp(
    watched: Watched,
    subscriber: Subscriber,
    { watch, rules }: { readonly watch: Watch; readonly rules: TableRules },
    since: string,
    identity: Identity,
  ): Promise<void> {
    const missed = await missedSince(watched, since)
    const changes = missed?.changes ?? []
    const evaluated = [{ evaluation: watch.evaluation, names: [watch.name] }]
    const audience = { table: watch.table, rules, parts: [{ watch, variant: watch.variant }], evaluated }
    const lookAtMissed = () => look(this.#parts.runner, identity, audience, changes)
    const seen = missed === null ? null : await this.#limiter.run(callerKey(identity), lookAtMissed)
    subscriber.boundary = missed?.boundary ?? null
    // In front of whatever the group has seen meanwhile.
    subscriber.held?.unshift(() => tell(subscriber.receiver, seen?.[0] ?? null, changes))
  }

  #subscriptionOf(entry: Entry, subscriber: Subscriber, place: string): Subscription {
    const { request } = subscriber
    const { watched } = entry
    return {
      place,
      token: () => watched.feed.token(),
      start() {
        const held = subscriber.held ?? []
        subscriber.held = null
        for (const telling of held) telling()
      },
      renew: renewed => {
        subscriber.identity = renewed
        if (!entry.subscribers.has(subscriber) || watched.known === null) return
        const watch = this.#parts.plan(request, renewed)
        this.#join(entry, subscriber, { watch, rules: watched.known }, 'count')
      },
      end: () => this.#remove(request.table, entry, subscriber),
    }
  }

  // --- tables ---

  #entryOf({ schema, name, resource }: Table): Entry {
    const known = this.#tables.get(resource)
    if (known !== undefined) {
      if (known.linger !== null) clearTimeout(known.linger)
      known.linger = null
      return known
    }
    const entry: Entry = {
      watched: createWatched(
        { name: `${schema}.${name}`, resource },
        {
          ...this.#parts,
          onMerge: () => void this.#counts.merged++,
          subscribed: () => this.#subscribed,
          onStale: () => void this.#regroup(entry),
        },
      ),
      ...{ subscribers: new Set(), apart: new Set(), pending: 0, linger: null, regrouping: false, outdated: false },
    }
    this.#tables.set(resource, entry)
    return entry
  }

  #releaseIfUnused(table: string, entry: Entry): void {
    if (entry.subscribers.size > 0 || entry.pending > 0 || entry.linger !== null || this.#isClosed) return
    entry.linger = setTimeout(() => {
      this.#tables.delete(table)
      entry.watched.close()
    }, LINGER_MS)
    entry.linger.unref()
  }

  // --- groups ---

  #join(
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
    const leaveGroup = this.#parts.quotas.group(subscriber.identity, share, beyond)
    const group = known ?? this.#newGroup(entry, watch, rules, subscriber.identity)
    if (known === undefined) groups.add(name, group)
    group.join(subscriber, watch)
    if (before !== null) {
      group.adopt(before.pending())
      this.#leave(entry, subscriber, before)
    }
    subscriber.group = group
    subscriber.leaveGroup = leaveGroup
  }

  #newGroup(entry: Entry, watch: Watch, rules: TableRules, identity: Identity): Group {
    const { groups } = entry.watched
    const owner = ownerOf(watch, rules, identity)
    const group = createGroup(watch.table, rules, { ...this.#groupParts(entry), owner })
    const { route } = rules
    if (route === null) return group
    const ask = () =>
      this.#parts.runner.read(identity, [catalogueStatement(routeStatement(route), [])], { ms: 0 }).result
    this.#limiter.run(owner, ask).then(
      ([rows]) => groups.route(group, routeValueOf(route, rows?.[0] ?? [])),
      // Everything concerns it then.
      () => {},
    )
    return group
  }

  #leave({ watched: { groups }, apart }: Entry, subscriber: Subscriber, group: Group): void {
    group.leave(subscriber)
    subscriber.leaveGroup()
    if (group.isEmpty) apart.delete(groups.delete(group))
  }

  /** One of their filters takes too long: each is evaluated on its own from now on. */
  #separate(entry: Entry, members: readonly Member[]): void {
    const concerned = new Set(members)
    for (const subscriber of [...entry.subscribers]) {
      const rules = entry.watched.known
      if (!concerned.has(subscriber) || rules === null) continue
      try {
        const watch = this.#parts.plan(subscriber.request, subscriber.identity)
        entry.apart.add(namesOf(watch, rules, subscriber.identity).alone)
        this.#join(entry, subscriber, { watch, rules }, 'count')
      } catch {
        void this.#checkAnew(entry, subscriber)
      }
    }
  }

  #groupCount(): number {
    let count = 0
    for (const { watched } of this.#tables.values()) count += watched.groups.size
    return count
  }

  #groupParts(entry: Entry) {
    const { runner, now } = this.#parts
    return {
      ...{ runner, now, limiter: this.#limiter, crowd: this.#crowd, allowance: this.#allowance, count: this.#count },
      onStale: () => void this.#regroup(entry),
      onRefused: (members: readonly Member[]) => void this.#checkMembers(entry, members),
      onSlow: (members: readonly Member[]) => this.#separate(entry, members),
    }
  }

  #remove(table: string, entry: Entry, subscriber: Subscriber): void {
    entry.subscribers.delete(subscriber)
    if (subscriber.group !== null) this.#leave(entry, subscriber, subscriber.group)
    subscriber.group = null
    subscriber.release()
    this.#releaseIfUnused(table, entry)
  }

  /** Nobody is left to wait for changes that are not heard of. */
  #refuse(entry: Entry, error: unknown): void {
    if (this.#isClosed) return
    for (const subscriber of [...entry.subscribers]) {
      this.#remove(subscriber.request.table, entry, subscriber)
      subscriber.refused(error)
    }
  }

  /** Of one group, whose look failed: nobody else's business. Never rejects. */
  async #checkMembers(entry: Entry, members: readonly Member[]): Promise<void> {
    const concerned = new Set(members)
    for (const subscriber of [...entry.subscribers]) {
      if (concerned.has(subscriber)) await this.#checkAnew(entry, subscriber)
    }
  }

  /** Nothing is told by rules that may not hold any more; whoever remains is told to read again. */
  #suspend(entry: Entry): void {
    for (const subscriber of entry.subscribers) {
      if (subscriber.group !== null) this.#leave(entry, subscriber, subscriber.group)
      subscriber.group = null
    }
  }

  /** Checks every subscription of a table anew, and has those that remain read again: what changed meanwhile nobody looked at. */
  async #regroup(entry: Entry): Promise<void> {
    entry.outdated = true
    if (entry.regrouping) return
    entry.regrouping = true
    let left = 0
    try {
      // Something else may change while it is looked at.
      while (entry.outdated) {
        entry.outdated = false
        entry.watched.forgetRules()
        this.#suspend(entry)
        left = 0
        for (const subscriber of [...entry.subscribers]) left += (await this.#checkAnew(entry, subscriber)) ? 0 : 1
      }
    } finally {
      entry.regrouping = false
    }
    entry.watched.doubt('schema changed')
    if (left > 0) setTimeout(() => void this.#regroup(entry), REGROUP_RETRY_MS).unref()
  }

  /** False: the database could not be asked. Never rejects. */
  async #checkAnew(entry: Entry, subscriber: Subscriber): Promise<boolean> {
    try {
      const { watch, rules } = await this.#prepare(entry, subscriber.request, subscriber.identity)
      if (entry.subscribers.has(subscriber)) this.#join(entry, subscriber, { watch, rules }, 'count')
    } catch (error) {
      if (!entry.subscribers.has(subscriber)) return true
      if (isPassing(error)) return false
      this.#remove(subscriber.request.table, entry, subscriber)
      subscriber.refused(error)
    }
    return true
  }

  /** The read of a subscription, tried, with the rules that it was tried by. */
  async #prepare({ watched }: Entry, request: WatchRequest, identity: Identity) {
    for (let attempt = 0; attempt < RULES_ATTEMPTS; attempt++) {
      const watch = this.#parts.plan(request, identity)
      const rules = await watched.rules(watch.table)
      if (rules === null) throw new GatewayError('NOT_FOUND', `table "${request.table}" is gone`)
      const snapshot = await this.#limiter.run(callerKey(identity), () =>
        tryLook(this.#parts.runner, identity, watch, rules),
      )
      if (snapshot !== null) return { watch, rules, snapshot }
      watched.forgetRules()
    }
    throw new GatewayError('UNAVAILABLE', `the policies of "${request.table}" are changing; try again`)
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

/** What came of the changes since a token; null: nobody knows them. */
function tell(receiver: Receiver, seen: readonly Seen[] | null, changes: Missed['changes']): void {
  if (seen === null || seen.some(({ steps }) => steps === null)) receiver.resync('token')
  const told = toldOf(seen ?? [], changes)
  if (told.length > 0) receiver.see(told)
}
