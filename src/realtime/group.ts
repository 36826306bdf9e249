/**
 * Subscriptions that see the same – the same filters and columns, callers whom the table's policies cannot tell apart – and for whom the database is asked
 * once. A group looks again at most every so often; what changes meanwhile waits for it, up to a limit.
 */
import type { Identity } from '../identity/identity.ts'
import type { Runner } from '../run/run.ts'
import type { Change } from './change.ts'
import type { Limiter } from './limiter.ts'
import { look, type Told, toldOf } from './look.ts'
import { isAway, isPassing } from './passing.ts'
import { concerns, type RouteValue } from './route.ts'
import type { TableRules } from './table-rules.ts'
import type { Watch } from './watch.ts'

/** Between two looks of a group at least: many changes are one statement, and nobody notices the wait. */
const LOOK_INTERVAL_MS_MIN = 25

/** Looks of all groups together. Where a change is a matter of many groups each looks less often, and the database has an end. */
const LOOKS_PER_SECOND_MAX = 1_000

/** `busy`: how many groups have something to look at. */
export function lookIntervalMs(busy: number): number {
  return Math.max(LOOK_INTERVAL_MS_MIN, (busy / LOOKS_PER_SECOND_MAX) * 1_000)
}

/** Changes that wait for a look; more, and the subscribers read again themselves. */
const WAITING_MAX = 10_000

/** Until a look is tried again that found no database. */
const RETRY_MS = 250

/** Rows that one statement looks at. */
const LOOK_ROWS_MAX = 500

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
  /** Groups that have something to look at, of all tables. */
  readonly crowd: { busy: number }
  /** The rules are not those of the table any more: members have to be grouped anew. */
  readonly onStale: () => void
  /** A look of these failed, and not because the database is away. */
  readonly onRefused: (members: readonly Member[]) => void
}

export interface Group {
  readonly watch: Watch
  readonly members: Set<Member>
  /** What all rows have that it sees; null while nobody knows. */
  route: RouteValue | null
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
  const { runner, limiter, now, crowd, onStale, onRefused } = parts
  const members = new Set<Member>()
  let waiting: Change[] = []
  let looking: readonly Change[] = []
  let busy = false
  let lookedAt = Number.NEGATIVE_INFINITY

  function schedule(): void {
    if (busy || waiting.length === 0) return
    busy = true
    crowd.busy++
    const dueAt = lookedAt + lookIntervalMs(crowd.busy)
    setTimeout(() => void limiter.run(lookAround).finally(again), Math.max(0, dueAt - now()))
  }

  function again(): void {
    busy = false
    crowd.busy--
    schedule()
  }

  /** Never rejects. */
  async function lookAround(): Promise<void> {
    lookedAt = now()
    const changes = waiting.slice(0, LOOK_ROWS_MAX)
    const [first] = members
    waiting = first === undefined ? [] : waiting.slice(LOOK_ROWS_MAX)
    if (first === undefined || changes.length === 0) return
    looking = changes
    const present = [...members]
    try {
      const seen = await look(runner, first.identity, watch, rules, changes)
      if (seen === null) {
        resync('schema changed')
        onStale()
        return
      }
      if (seen.some(({ steps }) => steps === null)) resyncAll([...members], 'unknown before')
      const told = toldOf(seen, changes)
      // Who has left meanwhile may have other rights by now.
      if (told.length > 0) for (const member of present) if (members.has(member)) member.see(told)
    } catch (error) {
      if (isAway(error)) {
        waiting = [...changes, ...waiting]
        lookedAt = now() + RETRY_MS
        return
      }
      resync('unavailable')
      if (!isPassing(error)) onRefused([...members])
    } finally {
      looking = []
    }
  }

  function add(changes: readonly Change[]): void {
    if (members.size === 0) return
    if (waiting.length + changes.length > WAITING_MAX) {
      resync('too many changes')
      return
    }
    waiting.push(...changes)
    schedule()
  }

  function resync(reason: ResyncReason): void {
    waiting = []
    resyncAll([...members], reason)
  }

  return {
    watch,
    members,
    route: null,
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

function resyncAll(members: readonly Member[], reason: ResyncReason): void {
  for (const member of members) member.resync(reason)
}

/**
 * Gives changes to the groups that they may concern, and to one at least: whoever looks notices that the policies are others than those that this was decided by.
 */
export function distribute(changes: readonly Change[], groups: Iterable<Group>): void {
  const all = [...groups]
  const to = changes.at(-1)?.to ?? ''
  let looking = 0
  for (const group of all) {
    const own = changes.filter(({ routes }) => concerns(routes, group.route))
    if (own.length === 0) continue
    looking++
    // What comes after it is nothing to this group.
    group.add(own.map((change, index) => (index === own.length - 1 ? { ...change, to } : change)))
  }
  if (looking === 0) all[0]?.add(changes)
}
