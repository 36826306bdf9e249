/**
 * Who subscribes to what: one feed for each table that somebody watches, one connection that listens for all of them, and groups of subscriptions that see
 * the same. Nothing here runs while nobody subscribes.
 */
import type { Catalog, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import type { Listener } from '../postgres/listener.ts'
import type { Database } from '../postgres/types.ts'
import { channelOf } from '../run/announce.ts'
import { toGatewayError } from '../run/errors.ts'
import type { Runner } from '../run/run.ts'
import { createChannels, type Hearing } from './channels.ts'
import { contextOf } from './context.ts'
import { createFeed, type Feed } from './feed.ts'
import { createGroup, type Group, lookIntervalMs, type Member, type ResyncReason } from './group.ts'
import { createLimiter } from './limiter.ts'
import { look, type Seen } from './look.ts'
import type { RowsBeforeStore } from './rows-before.ts'
import { readTableRules, type TableRules } from './table-rules.ts'
import type { Watch, WatchRequest } from './watch.ts'

/** Looks at the database at a time, of all subscriptions together. */
const LOOKS_MAX = 64

/** Until the table is listened to; a write that began before may keep that waiting. */
const LISTEN_MS_MAX = 10_000

/** A feed without subscriptions stays for so long, for clients that come back with a token. */
const LINGER_MS = 30_000

/** Subscriptions that could not be checked anew because the database was away are, after this time. */
const REGROUP_RETRY_MS = 1_000

/** Policies that change faster than they can be read. */
const RULES_ATTEMPTS = 5

export interface Receiver {
  see(seen: readonly Seen[]): void
  resync(reason: ResyncReason): void
  /** It has ended: the table is gone, or the caller may not read it any more. */
  refused(error: unknown): void
}

export interface Subscription {
  /** Where it is now, to come back to. */
  token(): string
  /** Where a change is. */
  tokenAt(seq: number): string
  /** What there is to tell from here on, and was held back until now. */
  start(): void
  /** Goes on as somebody else, or as the same with a new token. Throws what refuses it, and has ended then. */
  renew(identity: Identity): void
  end(): void
}

export interface Hub {
  /** Resolves once every later change will be told of. `since`: from there, if that is still known; else a `resync` comes first. */
  subscribe(
    request: WatchRequest & { readonly since: string | null },
    identity: Identity,
    receiver: Receiver,
  ): Promise<Subscription>
  /** The schema or the rights have changed: every subscription is checked anew. */
  refresh(): void
  /** Whether the rows of a table as they were before a change are wanted. */
  wants(table: string): boolean
  stats(): HubStats
  close(): void
}

export interface HubStats {
  readonly tables: number
  readonly groups: number
  readonly subscriptions: number
  readonly listening: boolean
  /** Looks that wait for their turn. */
  readonly waiting: number
}

export interface HubParts {
  readonly origin: string
  readonly plan: (request: WatchRequest, identity: Identity) => Watch
  readonly catalog: () => Catalog
  readonly database: Database
  readonly runner: Pick<Runner, 'read'>
  readonly rowsBefore: RowsBeforeStore
  /** Null: through a pooler alone, nobody can listen. */
  readonly openListener: ((on: Hearing) => Listener) | null
  readonly now: () => number
}

/** A table that somebody watches. */
interface Watched {
  readonly feed: Feed
  readonly channel: string
  readonly listening: Promise<void>
  readonly subscribers: Set<Subscriber>
  rules: Promise<TableRules | null> | null
  /** As they were read last; null while nobody knows. */
  known: TableRules | null
  /** Channels of tables that it depends on. */
  dependencies: readonly string[]
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
  /** What it is told when it has started; null from then on. */
  held: (() => void)[] | null
}

export function createHub(parts: HubParts): Hub {
  const { plan, catalog, database, runner, rowsBefore, now } = parts
  const limiter = createLimiter(LOOKS_MAX)
  const tables = new Map<string, Watched>()
  const channels = createChannels(parts.openListener, { notification, gap })
  let closed = false

  // ---- listening ---------------------------------------------------------------------------------------------

  function notification(channel: string, payload: string): void {
    for (const watched of tables.values()) {
      if (watched.channel === channel) watched.feed.hear(payload)
      else if (watched.dependencies.includes(channel)) watched.feed.doubt('dependency')
    }
  }

  function gap(): void {
    for (const { feed } of tables.values()) feed.doubt('connection lost')
  }

  // ---- tables ------------------------------------------------------------------------------------------------

  function watchedOf(table: string): Watched {
    const known = tables.get(table)
    if (known !== undefined) {
      if (known.linger !== null) clearTimeout(known.linger)
      known.linger = null
      return known
    }
    const channel = channelOf(table)
    const listening = channels.hear(channel)
    listening.catch(() => {})
    const watched: Watched = {
      feed: createFeed({ table, origin: parts.origin, rowsBefore }),
      ...{ channel, listening, subscribers: new Set(), rules: null, known: null, dependencies: [] },
      ...{ pending: 0, linger: null, regrouping: false, outdated: false },
    }
    tables.set(table, watched)
    return watched
  }

  function releaseIfUnused(table: string, watched: Watched): void {
    if (watched.subscribers.size > 0 || watched.pending > 0 || watched.linger !== null || closed) return
    watched.linger = setTimeout(() => {
      tables.delete(table)
      for (const channel of [watched.channel, ...watched.dependencies]) channels.unhear(channel)
    }, LINGER_MS)
    watched.linger.unref()
  }

  function rulesOf(watched: Watched, table: Table): Promise<TableRules | null> {
    watched.rules ??= readRules(watched, table).catch(error => {
      watched.rules = null
      throw toGatewayError(error, { statements: [], access: 'read only' })
    })
    return watched.rules
  }

  async function readRules(watched: Watched, table: Table): Promise<TableRules | null> {
    const rules = await readTableRules(database, table)
    await within(depend(watched, rules?.dependsOn ?? []), LISTEN_MS_MAX)
    watched.known = rules
    return rules
  }

  function depend(watched: Watched, names: readonly string[]): Promise<unknown> {
    const resources = [...catalog().tables.values()].filter(({ schema, name }) => names.includes(`${schema}.${name}`))
    const before = watched.dependencies
    watched.dependencies = resources.map(({ resource }) => channelOf(resource))
    const listening = watched.dependencies.map(channels.hear)
    for (const channel of before) channels.unhear(channel)
    return Promise.all(listening)
  }

  // ---- groups ------------------------------------------------------------------------------------------------

  function join(watched: Watched, subscriber: Subscriber, watch: Watch, rules: TableRules): void {
    const settings = rules.settings === null ? null : [...rules.settings, ...watch.settings]
    const name = JSON.stringify([watch.name, contextOf(subscriber.identity, settings)])
    const before = subscriber.group
    const known = watched.feed.groups.get(name)
    if (known !== undefined && known === before) return
    const group = known ?? createGroup(watch, rules, groupParts(watched))
    watched.feed.groups.set(name, group)
    group.members.add(subscriber)
    subscriber.group = group
    if (before === null) return
    group.add(before.pending())
    leave(watched, subscriber, before)
  }

  function leave(watched: Watched, subscriber: Subscriber, group: Group): void {
    group.members.delete(subscriber)
    if (group.members.size > 0) return
    for (const [name, other] of watched.feed.groups) if (other === group) watched.feed.groups.delete(name)
  }

  function groupCount(): number {
    let count = 0
    for (const { feed } of tables.values()) count += feed.groups.size
    return count
  }

  function groupParts(watched: Watched) {
    return {
      ...{ runner, limiter, now },
      intervalMs: () => lookIntervalMs(groupCount()),
      onStale: () => void regroup(watched),
      onRefused: (members: readonly Member[]) => void checkMembers(watched, members),
      isPassing,
    }
  }

  function remove(table: string, watched: Watched, subscriber: Subscriber): void {
    watched.subscribers.delete(subscriber)
    if (subscriber.group !== null) leave(watched, subscriber, subscriber.group)
    subscriber.group = null
    releaseIfUnused(table, watched)
  }

  /** Of one group, whose look failed: nobody else's business. Never rejects. */
  async function checkMembers(watched: Watched, members: readonly Member[]): Promise<void> {
    for (const subscriber of [...watched.subscribers]) {
      if (members.includes(subscriber)) await checkAnew(watched, subscriber)
    }
  }

  /** Nothing is told by rules that may not hold any more; whoever remains is told to read again. */
  function suspend(watched: Watched): void {
    for (const subscriber of watched.subscribers) {
      if (subscriber.group !== null) leave(watched, subscriber, subscriber.group)
      subscriber.group = null
    }
  }

  /** Checks every subscription of a table anew, and has those that remain read again: what changed meanwhile nobody looked at. */
  async function regroup(watched: Watched): Promise<void> {
    watched.outdated = true
    if (watched.regrouping) return
    watched.regrouping = true
    let left = 0
    try {
      // Something else may change while it is looked at.
      while (watched.outdated) {
        watched.outdated = false
        watched.rules = null
        suspend(watched)
        left = 0
        for (const subscriber of [...watched.subscribers]) left += (await checkAnew(watched, subscriber)) ? 0 : 1
      }
    } finally {
      watched.regrouping = false
    }
    watched.feed.doubt('schema changed')
    if (left > 0) setTimeout(() => void regroup(watched), REGROUP_RETRY_MS).unref()
  }

  /** False: the database could not be asked. Never rejects. */
  async function checkAnew(watched: Watched, subscriber: Subscriber): Promise<boolean> {
    try {
      const { watch, rules } = await prepare(watched, subscriber.request, subscriber.identity)
      if (watched.subscribers.has(subscriber)) join(watched, subscriber, watch, rules)
    } catch (error) {
      if (!watched.subscribers.has(subscriber)) return true
      if (isPassing(error)) return false
      remove(subscriber.request.table, watched, subscriber)
      subscriber.refused(error)
    }
    return true
  }

  /** The read of a subscription, tried, with the rules that it was tried by. */
  async function prepare(watched: Watched, request: WatchRequest, identity: Identity) {
    for (let attempt = 0; attempt < RULES_ATTEMPTS; attempt++) {
      const watch = plan(request, identity)
      const rules = await rulesOf(watched, watch.table)
      if (rules === null) throw new GatewayError('NOT_FOUND', `table "${request.table}" is gone`)
      if ((await limiter.run(() => look(runner, identity, watch, rules, []))) !== null) return { watch, rules }
      watched.rules = null
    }
    throw new GatewayError('UNAVAILABLE', `the policies of "${request.table}" are changing; try again`)
  }

  return {
    async subscribe(request, identity, receiver) {
      // A name that means nothing is refused before anything is kept for it.
      plan(request, identity)
      const { table, since } = request
      const watched = watchedOf(table)
      watched.pending++
      const subscriber = createSubscriber(request, identity, receiver)
      const { history } = watched.feed
      try {
        await within(watched.listening, LISTEN_MS_MAX)
        const { watch, rules } = await prepare(watched, request, identity)
        watched.subscribers.add(subscriber)
        join(watched, subscriber, watch, rules)
        const missed = since === null ? [] : history.since(since)
        const seen = missed === null ? null : await limiter.run(() => look(runner, identity, watch, rules, missed))
        // In front of whatever the group has seen meanwhile.
        subscriber.held?.unshift(() => tell(receiver, missed === null ? null : seen))
      } catch (error) {
        remove(table, watched, subscriber)
        throw error
      } finally {
        watched.pending--
        releaseIfUnused(table, watched)
      }
      return {
        token: () => history.token(),
        tokenAt: seq => history.tokenAt(seq),
        start() {
          const held = subscriber.held ?? []
          subscriber.held = null
          for (const telling of held) telling()
        },
        renew(renewed) {
          subscriber.identity = renewed
          if (!watched.subscribers.has(subscriber) || watched.known === null) return
          join(watched, subscriber, plan(request, renewed), watched.known)
        },
        end: () => remove(table, watched, subscriber),
      }
    },
    refresh() {
      for (const watched of tables.values()) void regroup(watched)
    },
    wants(table) {
      const watched = tables.get(table)
      return watched !== undefined && watched.known?.condition != null
    },
    stats() {
      const all = [...tables.values()]
      return {
        tables: all.length,
        groups: groupCount(),
        subscriptions: all.reduce((sum, { subscribers }) => sum + subscribers.size, 0),
        listening: channels.connected,
        waiting: limiter.waiting,
      }
    },
    close() {
      closed = true
      for (const { linger } of tables.values()) if (linger !== null) clearTimeout(linger)
      tables.clear()
      channels.close()
      rowsBefore.close()
    },
  }
}

/** The database is away, or did not get to it: nothing about the subscription itself. */
function isPassing(error: unknown): boolean {
  return error instanceof GatewayError && (error.code === 'UNAVAILABLE' || error.code === 'TIMEOUT')
}

function createSubscriber(request: WatchRequest, identity: Identity, receiver: Receiver): Subscriber {
  const subscriber: Subscriber = {
    ...{ identity, request, receiver, group: null, held: [] },
    see: seen => inTurn(() => receiver.see(seen)),
    resync: reason => inTurn(() => receiver.resync(reason)),
    refused: error => inTurn(() => receiver.refused(error)),
  }
  const inTurn = (telling: () => void) => {
    if (subscriber.held === null) telling()
    else subscriber.held.push(telling)
  }
  return subscriber
}

/** What came of the changes since a token; null: nobody knows them. */
function tell(receiver: Receiver, seen: readonly Seen[] | null): void {
  if (seen === null || seen.some(({ outcome }) => outcome === 'unknown')) receiver.resync('token')
  const known = (seen ?? []).filter(({ outcome }) => outcome !== 'nothing' && outcome !== 'unknown')
  if (known.length > 0) receiver.see(known)
}

async function within(listening: Promise<unknown>, ms: number): Promise<void> {
  const unavailable = (cause?: unknown) =>
    new GatewayError('UNAVAILABLE', 'changes cannot be listened for at the moment; try again', { cause })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable()), ms)
  })
  try {
    await Promise.race([listening, late])
  } catch (error) {
    throw error instanceof GatewayError ? error : unavailable(error)
  } finally {
    clearTimeout(timer)
  }
}
