/**
 * A visibility group: subscriptions that see the same rows apart from their filters and columns, because
 * their callers have the same rights and the table's policies cannot distinguish them. The database is
 * queried for all of them in one transaction, at most once per interval; changes in between are queued up to
 * a limit.
 */
import type { Table } from '../catalog/model.ts'
import type { Identity } from '../identity/identity.ts'
import type { Runner } from '../run/run.ts'
import type { Allowance } from './allowance.ts'
import type { ChangeEvent } from './change-event.ts'
import { createFilterBatches } from './filter-batches.ts'
import type { Limiter } from './limiter.ts'
import type { QueryPacing } from './query-pacing.ts'
import type { SubscriptionPlan } from './subscription-plan.ts'
import type { TableRules } from './table-rules.ts'
import { isTimeout, isTransient, isUnavailable } from './transient-errors.ts'
import { type AudiencePart, type ChangeNotification, notificationsOf, queryVisibility } from './visibility-query.ts'

/** Limit on queued changes. Beyond it, subscribers are asked to resync. */
const QUEUED_CHANGES_MAX = 10_000

/** Delay before a visibility query is repeated after the database was unavailable. */
const RETRY_MS = 250

/** Limits on the rows of one visibility query, and on rows times filters. */
const QUERY_ROWS_MAX = 500
const QUERY_PAIRS_MAX = 50_000

/** Why a client must read its rows again. */
export type ResyncReason =
  | 'bulk'
  | 'connection lost'
  | 'dependency'
  | 'epoch'
  | 'schema changed'
  | 'token'
  | 'too many changes'
  | 'unavailable'
  | 'unknown before'
  | 'slow reader'

/** A subscription as its group sees it. */
export interface GroupMember {
  readonly identity: Identity
  /** The sequence number of the subscription. */
  readonly number: number
  notify(notifications: readonly ChangeNotification[]): void
  resync(reason: ResyncReason): void
}

/** Counts visibility queries. */
export interface QueryCounts {
  queried(relevance: Relevance): void
  /** A query has to wait for the allowance. */
  delayed(): void
}

/** The dependencies of a visibility group. */
export interface VisibilityGroupParts {
  readonly runner: Pick<Runner, 'read'>
  readonly limiter: Limiter
  readonly now: () => number
  readonly crowd: QueryPacing
  /** The owner whose share of queries the group uses. */
  readonly owner: string
  /** The allowance for queries about unrouted changes. */
  readonly allowance: Allowance
  readonly count: QueryCounts
  /** Called when the table's rules have changed and members must be grouped again. */
  readonly onStale: () => void
  /** Called when the query for these members failed for another reason than an unavailable database. */
  readonly onRefused: (members: readonly GroupMember[]) => void
  /** Called when the query for these members took too long and evaluated several filters. */
  readonly onSlow: (members: readonly GroupMember[]) => void
}

/** True if changes are known to concern the group. */
export type Relevance = 'its own' | 'perhaps its own'

/** A group of subscriptions that share visibility queries. */
export interface VisibilityGroup {
  join(member: GroupMember, watch: SubscriptionPlan): void
  leave(member: GroupMember): void
  readonly isEmpty: boolean
  /**
   * Queues changes for a visibility query. Changes that only possibly concern the group are charged to the
   * allowance.
   */
  add(changes: readonly ChangeEvent[], relevance: Relevance): void
  /** Queues the changes that another group had still pending for a member that came from there. */
  adopt(changes: readonly ChangeEvent[]): void
  /** Changes that no member has been notified of. */
  pending(): readonly ChangeEvent[]
  /** Discards queued changes and asks all members to resync. */
  resync(reason: ResyncReason): void
  /** Asks members that subscribed before `before` to resync; queued changes remain for the others. */
  resyncEarlier(reason: ResyncReason, before: number): void
}

/** Creates a group without members. */
export function createVisibilityGroup(table: Table, rules: TableRules, parts: VisibilityGroupParts): VisibilityGroup {
  const { runner, limiter, now, crowd, owner, allowance, count, onStale, onRefused, onSlow } = parts
  const batches = createFilterBatches()
  /** By the names of plan and variant. */
  const audiences = new Map<string, VariantMembers>()
  const audienceOf = new Map<GroupMember, VariantMembers>()
  let queued: ChangeEvent[] = []
  let inProgress: readonly ChangeEvent[] = []
  /** True if some queued change certainly concerns the group. */
  let hasCertain = false
  let busy = false
  /** The timer of a query that has not begun. */
  let timer: NodeJS.Timeout | null = null
  let intervalMs = 0
  let queriedAt = Number.NEGATIVE_INFINITY

  function schedule(): void {
    if (queued.length === 0) return
    if (!busy) {
      busy = true
      intervalMs = crowd.enter(owner)
      const delayMs = hasCertain ? 0 : allowance.take(owner)
      if (delayMs > 0) count.delayed()
      startTimer(Math.max(queriedAt + intervalMs, now() + delayMs))
    } else if (timer !== null && hasCertain) {
      // A change that certainly concerns the group does not wait for the allowance.
      clearTimeout(timer)
      startTimer(queriedAt + intervalMs)
    }
  }

  function startTimer(dueAt: number): void {
    const run = () => {
      timer = null
      void limiter.run(owner, runQuery).finally(reschedule)
    }
    timer = setTimeout(run, Math.max(0, dueAt - now()))
  }

  function reschedule(): void {
    busy = false
    crowd.leave(owner)
    schedule()
  }

  /** Runs one visibility query. Never rejects. */
  async function runQuery(): Promise<void> {
    queriedAt = now()
    const present = [...audiences.values()]
    const rowsMax = Math.max(1, Math.min(QUERY_ROWS_MAX, Math.floor(QUERY_PAIRS_MAX / Math.max(1, present.length))))
    const changes = queued.slice(0, rowsMax)
    queued = present.length === 0 ? [] : queued.slice(rowsMax)
    const relevance = hasCertain ? 'its own' : 'perhaps its own'
    hasCertain = hasCertain && queued.length > 0
    if (present.length === 0 || changes.length === 0) return
    inProgress = changes
    count.queried(relevance)
    try {
      await queryFor(present, changes)
    } catch (error) {
      if (isUnavailable(error)) {
        queued = [...changes, ...queued]
        hasCertain ||= relevance === 'its own'
        queriedAt = now() + RETRY_MS
        return
      }
      resync('unavailable')
      inProgress = []
      const members = [...audienceOf.keys()]
      if (!isTransient(error)) onRefused(members)
      else if (isTimeout(error) && new Set(present.map(({ watch }) => watch.name)).size > 1) onSlow(members)
    } finally {
      inProgress = []
    }
  }

  async function queryFor(audience: readonly VariantMembers[], changes: readonly ChangeEvent[]): Promise<void> {
    const [first] = audience.flatMap(({ members }) => [...members])
    if (first === undefined) return
    const present = audience.map(({ members }) => [...members])
    try {
      const evaluated = batches.evaluated(new Set(audience.map(({ watch }) => watch.name)))
      const visible = await queryVisibility(
        runner,
        first.identity,
        { table, rules, parts: audience, evaluated },
        changes,
      )
      if (visible === null) {
        resync('schema changed')
        onStale()
        return
      }
      for (const [index, { members }] of audience.entries()) {
        const ofVariant = visible[index] ?? []
        if (ofVariant.length === 0) continue
        if (ofVariant.some(({ steps }) => steps === null)) resyncAll([...members], 'unknown before')
        const notifications = notificationsOf(ofVariant, changes)
        if (notifications.length === 0) continue
        // A member that left while the query ran may have different rights by now.
        for (const member of present[index] ?? []) if (members.has(member)) member.notify(notifications)
      }
    } catch (error) {
      if (isTransient(error)) throw error
      if (audience.length > 1) {
        // Isolate the failing filter, so that the others continue.
        const half = Math.ceil(audience.length / 2)
        await queryFor(audience.slice(0, half), changes)
        await queryFor(audience.slice(half), changes)
        return
      }
      const members = present.flat()
      resyncAll(members, 'unavailable')
      onRefused(members)
    }
  }

  function add(changes: readonly ChangeEvent[], relevance: Relevance): void {
    if (audienceOf.size === 0) return
    if (queued.length + changes.length > QUEUED_CHANGES_MAX) {
      resync('too many changes')
      return
    }
    queued.push(...changes)
    hasCertain ||= relevance === 'its own' && changes.length > 0
    schedule()
  }

  function resync(reason: ResyncReason): void {
    queued = []
    hasCertain = false
    resyncAll([...audienceOf.keys()], reason)
  }

  return {
    join(member, watch) {
      const { variant } = watch
      const name = JSON.stringify([watch.name, variant.name])
      const audience = audiences.get(name) ?? { name, watch, variant, members: new Set() }
      if (!audiences.has(name)) batches.add(watch)
      audiences.set(name, audience)
      audience.members.add(member)
      audienceOf.set(member, audience)
    },
    leave(member) {
      const audience = audienceOf.get(member)
      audienceOf.delete(member)
      audience?.members.delete(member)
      if (audience === undefined || audience.members.size > 0) return
      audiences.delete(audience.name)
      batches.delete(audience.watch)
    },
    get isEmpty() {
      return audienceOf.size === 0
    },
    add,
    adopt(changes) {
      const known = new Set(queued.map(({ seq }) => seq))
      add(
        changes.filter(({ seq }) => !known.has(seq)),
        'perhaps its own',
      )
      queued = queued.toSorted((one, other) => one.seq - other.seq)
    },
    pending: () => [...inProgress, ...queued],
    resync,
    resyncEarlier(reason, before) {
      resyncAll(
        [...audienceOf.keys()].filter(({ number }) => number <= before),
        reason,
      )
    },
  }
}

/** Members with the same columns and filter, and the same filter values. */
interface VariantMembers extends AudiencePart {
  readonly name: string
  readonly members: Set<GroupMember>
}

function resyncAll(members: readonly GroupMember[], reason: ResyncReason): void {
  for (const member of members) member.resync(reason)
}
