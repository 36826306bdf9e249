/**
 * Subscriptions that see the same rows but for their filters and columns – those of callers with the same rights whom the table's policies cannot tell apart –
 * and for whom the database is asked in one transaction. A group looks again at most every so often; what changes in between waits for it, up to a limit.
 */
import type { Table } from '../catalog/model.ts'
import type { Identity } from '../identity/identity.ts'
import type { Runner } from '../run/run.ts'
import type { Allowance } from './allowance.ts'
import { createArrangement } from './arrangement.ts'
import type { Change } from './change.ts'
import type { Crowd } from './crowd.ts'
import type { Limiter } from './limiter.ts'
import { look, type Part, type Told, toldOf } from './look.ts'
import { isAway, isPassing, isSlow } from './passing.ts'
import type { TableRules } from './table-rules.ts'
import type { Watch } from './watch.ts'

/** Changes that wait for a look; more, and the subscribers read again themselves. */
const WAITING_MAX = 10_000

/** Until a look is tried again that found no database. */
const RETRY_MS = 250

/** Rows that one statement looks at, and rows times the filters that it evaluates for each. */
const LOOK_ROWS_MAX = 500
const LOOK_PAIRS_MAX = 50_000

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

export interface Member {
  readonly identity: Identity
  /** Counts those who subscribe. */
  readonly number: number
  see(told: readonly Told[]): void
  resync(reason: ResyncReason): void
}

export interface LookCounts {
  look(whose: Whose): void
  /** One has to wait for the allowance. */
  delayed(): void
}

export interface GroupParts {
  readonly runner: Pick<Runner, 'read'>
  readonly limiter: Limiter
  readonly now: () => number
  readonly crowd: Crowd
  /** Whose turns its looks take. */
  readonly owner: string
  /** For looks at changes of which nobody knows whether they concern the owner. */
  readonly allowance: Allowance
  readonly count: LookCounts
  /** The rules are not those of the table any more: members have to be grouped anew. */
  readonly onStale: () => void
  /** A look of these failed, and not because the database is away. */
  readonly onRefused: (members: readonly Member[]) => void
  /** A look of these took too long, and it was of several filters. */
  readonly onSlow: (members: readonly Member[]) => void
}

/** What is known of whom changes concern. */
export type Whose = 'its own' | 'perhaps its own'

export interface Group {
  join(member: Member, watch: Watch): void
  leave(member: Member): void
  readonly isEmpty: boolean
  /** To be looked at soon. Those that are only perhaps its own are charged to an allowance. */
  add(changes: readonly Change[], whose: Whose): void
  /** What another group still had to look at, for somebody who has come from there. */
  adopt(changes: readonly Change[]): void
  /** What nobody has been told of yet. */
  pending(): readonly Change[]
  /** What waits is forgotten: everybody reads again. */
  resync(reason: ResyncReason): void
  /** Those who subscribed before read again; what waits stays for the others. */
  remind(reason: ResyncReason, before: number): void
}

export function createGroup(table: Table, rules: TableRules, parts: GroupParts): Group {
  const { runner, limiter, now, crowd, owner, allowance, count, onStale, onRefused, onSlow } = parts
  const arrangement = createArrangement()
  /** By the names of their watches and variants. */
  const audiences = new Map<string, Audience>()
  const audienceOf = new Map<Member, Audience>()
  let waiting: Change[] = []
  let looking: readonly Change[] = []
  /** Some of what waits is surely its own. */
  let hasOwn = false
  let busy = false
  /** Of a look that has not begun. */
  let timer: NodeJS.Timeout | null = null
  let intervalMs = 0
  let lookedAt = Number.NEGATIVE_INFINITY

  function schedule(): void {
    if (waiting.length === 0) return
    if (!busy) {
      busy = true
      intervalMs = crowd.enter(owner)
      const delayMs = hasOwn ? 0 : allowance.take(owner)
      if (delayMs > 0) count.delayed()
      begin(Math.max(lookedAt + intervalMs, now() + delayMs))
    } else if (timer !== null && hasOwn) {
      // What is its own does not wait for the allowance.
      clearTimeout(timer)
      begin(lookedAt + intervalMs)
    }
  }

  function begin(dueAt: number): void {
    const run = () => {
      timer = null
      void limiter.run(owner, lookAround).finally(again)
    }
    timer = setTimeout(run, Math.max(0, dueAt - now()))
  }

  function again(): void {
    busy = false
    crowd.leave(owner)
    schedule()
  }

  /** Never rejects. */
  async function lookAround(): Promise<void> {
    lookedAt = now()
    const present = [...audiences.values()]
    const rowsMax = Math.max(1, Math.min(LOOK_ROWS_MAX, Math.floor(LOOK_PAIRS_MAX / Math.max(1, present.length))))
    const changes = waiting.slice(0, rowsMax)
    waiting = present.length === 0 ? [] : waiting.slice(rowsMax)
    const whose = hasOwn ? 'its own' : 'perhaps its own'
    hasOwn = hasOwn && waiting.length > 0
    if (present.length === 0 || changes.length === 0) return
    looking = changes
    count.look(whose)
    try {
      await lookFor(present, changes)
    } catch (error) {
      if (isAway(error)) {
        waiting = [...changes, ...waiting]
        hasOwn ||= whose === 'its own'
        lookedAt = now() + RETRY_MS
        return
      }
      resync('unavailable')
      looking = []
      const members = [...audienceOf.keys()]
      if (!isPassing(error)) onRefused(members)
      else if (isSlow(error) && new Set(present.map(({ watch }) => watch.name)).size > 1) onSlow(members)
    } finally {
      looking = []
    }
  }

  async function lookFor(those: readonly Audience[], changes: readonly Change[]): Promise<void> {
    const [first] = those.flatMap(({ members }) => [...members])
    if (first === undefined) return
    const present = those.map(({ members }) => [...members])
    try {
      const evaluated = arrangement.evaluated(new Set(those.map(({ watch }) => watch.name)))
      const seen = await look(runner, first.identity, { table, rules, parts: those, evaluated }, changes)
      if (seen === null) {
        resync('schema changed')
        onStale()
        return
      }
      for (const [index, { members }] of those.entries()) {
        const ofVariant = seen[index] ?? []
        if (ofVariant.length === 0) continue
        if (ofVariant.some(({ steps }) => steps === null)) resyncAll([...members], 'unknown before')
        const told = toldOf(ofVariant, changes)
        if (told.length === 0) continue
        // Who has left in the meantime may have other rights by now.
        for (const member of present[index] ?? []) if (members.has(member)) member.see(told)
      }
    } catch (error) {
      if (isPassing(error)) throw error
      if (those.length > 1) {
        // The filter that fails, on its own: the others go on.
        const half = Math.ceil(those.length / 2)
        await lookFor(those.slice(0, half), changes)
        await lookFor(those.slice(half), changes)
        return
      }
      const members = present.flat()
      resyncAll(members, 'unavailable')
      onRefused(members)
    }
  }

  function add(changes: readonly Change[], whose: Whose): void {
    if (audienceOf.size === 0) return
    if (waiting.length + changes.length > WAITING_MAX) {
      resync('too many changes')
      return
    }
    waiting.push(...changes)
    hasOwn ||= whose === 'its own' && changes.length > 0
    schedule()
  }

  function resync(reason: ResyncReason): void {
    waiting = []
    hasOwn = false
    resyncAll([...audienceOf.keys()], reason)
  }

  return {
    join(member, watch) {
      const { variant } = watch
      const name = JSON.stringify([watch.name, variant.name])
      const audience = audiences.get(name) ?? { name, watch, variant, members: new Set() }
      if (!audiences.has(name)) arrangement.add(watch)
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
      arrangement.delete(audience.watch)
    },
    get isEmpty() {
      return audienceOf.size === 0
    },
    add,
    adopt(changes) {
      const known = new Set(waiting.map(({ seq }) => seq))
      add(
        changes.filter(({ seq }) => !known.has(seq)),
        'perhaps its own',
      )
      waiting = waiting.toSorted((one, other) => one.seq - other.seq)
    },
    pending: () => [...looking, ...waiting],
    resync,
    remind(reason, before) {
      resyncAll(
        [...audienceOf.keys()].filter(({ number }) => number <= before),
        reason,
      )
    },
  }
}

/** Members with the same columns and filter, and the same values in it. */
interface Audience extends Part {
  readonly name: string
  readonly members: Set<Member>
}

function resyncAll(members: readonly Member[], reason: ResyncReason): void {
  for (const member of members) member.resync(reason)
}
