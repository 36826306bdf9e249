/**
 * Subscriptions that see the same but for the values of their filters – the same conditions and columns, callers whom the table's policies cannot tell apart –
 * and for whom the database is asked once. A group looks again at most every so often; what changes in between waits for it, up to a limit.
 */
import type { Identity } from '../identity/identity.ts'
import type { Runner } from '../run/run.ts'
import type { Change } from './change.ts'
import type { Crowd } from './crowd.ts'
import type { Limiter } from './limiter.ts'
import { look, type Told, toldOf } from './look.ts'
import { isAway, isPassing } from './passing.ts'
import type { TableRules } from './table-rules.ts'
import type { Variant, Watch } from './watch.ts'

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
  see(told: readonly Told[]): void
  resync(reason: ResyncReason): void
}

export interface GroupParts {
  readonly runner: Pick<Runner, 'read'>
  readonly limiter: Limiter
  readonly now: () => number
  readonly crowd: Crowd
  /** Whose turns its looks take. */
  readonly owner: string
  /** The rules are not those of the table any more: members have to be grouped anew. */
  readonly onStale: () => void
  /** A look of these failed, and not because the database is away. */
  readonly onRefused: (members: readonly Member[]) => void
}

export interface Group {
  readonly watch: Watch
  join(member: Member, variant: Variant): void
  leave(member: Member): void
  readonly isEmpty: boolean
  /** To be looked at soon. */
  add(changes: readonly Change[]): void
  /** What another group still had to look at, for somebody who has come from there. */
  adopt(changes: readonly Change[]): void
  /** What nobody has been told of yet. */
  pending(): readonly Change[]
  /** What waits is forgotten: everybody reads again. */
  resync(reason: ResyncReason): void
}

export function createGroup(watch: Watch, rules: TableRules, parts: GroupParts): Group {
  const { runner, limiter, now, crowd, owner, onStale, onRefused } = parts
  /** By the names of their variants. */
  const audiences = new Map<string, Audience>()
  const variantOf = new Map<Member, string>()
  let waiting: Change[] = []
  let looking: readonly Change[] = []
  let busy = false
  let lookedAt = Number.NEGATIVE_INFINITY

  function schedule(): void {
    if (busy || waiting.length === 0) return
    busy = true
    const dueAt = lookedAt + crowd.enter(owner)
    setTimeout(() => void limiter.run(owner, lookAround).finally(again), Math.max(0, dueAt - now()))
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
    if (present.length === 0 || changes.length === 0) return
    looking = changes
    try {
      await lookFor(present, changes)
    } catch (error) {
      if (isAway(error)) {
        waiting = [...changes, ...waiting]
        lookedAt = now() + RETRY_MS
        return
      }
      resync('unavailable')
      if (!isPassing(error)) onRefused([...variantOf.keys()])
    } finally {
      looking = []
    }
  }

  async function lookFor(those: readonly Audience[], changes: readonly Change[]): Promise<void> {
    const [first] = those.flatMap(({ members }) => [...members])
    if (first === undefined) return
    const present = those.map(({ members }) => [...members])
    const variants = those.map(({ variant }) => variant)
    try {
      const seen = await look(runner, first.identity, { watch, rules, variants }, changes)
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

  function add(changes: readonly Change[]): void {
    if (variantOf.size === 0) return
    if (waiting.length + changes.length > WAITING_MAX) {
      resync('too many changes')
      return
    }
    waiting.push(...changes)
    schedule()
  }

  function resync(reason: ResyncReason): void {
    waiting = []
    resyncAll([...variantOf.keys()], reason)
  }

  return {
    watch,
    join(member, variant) {
      const audience = audiences.get(variant.name) ?? { variant, members: new Set() }
      audiences.set(variant.name, audience)
      audience.members.add(member)
      variantOf.set(member, variant.name)
    },
    leave(member) {
      const name = variantOf.get(member)
      const audience = name === undefined ? undefined : audiences.get(name)
      variantOf.delete(member)
      audience?.members.delete(member)
      if (name !== undefined && audience?.members.size === 0) audiences.delete(name)
    },
    get isEmpty() {
      return variantOf.size === 0
    },
    add,
    adopt(changes) {
      const known = new Set(waiting.map(({ seq }) => seq))
      add(changes.filter(({ seq }) => !known.has(seq)))
      waiting = waiting.toSorted((one, other) => one.seq - other.seq)
    },
    pending: () => [...looking, ...waiting],
    resync,
  }
}

/** Members whose filters have the same values. */
interface Audience {
  readonly variant: Variant
  readonly members: Set<Member>
}

function resyncAll(members: readonly Member[], reason: ResyncReason): void {
  for (const member of members) member.resync(reason)
}
