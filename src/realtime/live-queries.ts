/**
 * Live queries (docs/guides/realtime.md#a-live-query): a read that is run again and again, and whose rows are sent whenever they have changed. Whoever asks
 * the same as somebody whom the database cannot tell from them shares the run; the database itself says whether anything changed, so what stays the same
 * costs a digest on the way and not the rows. Where triggers capture everything that a query reads, it is run only when some of that has changed.
 */

import { ifChanged } from '../compile/derive.ts'
import type { BoundStatement, ReadStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import type { Runner } from '../run/run.ts'
import { contextOf } from './context.ts'
import type { Follow } from './follow.ts'
import type { Limiter } from './limiter.ts'
import { isPassing } from './passing.ts'
import type { Beyond, Quotas, Release } from './quotas.ts'

/** Of one answer: it has to go through the queue of a socket. */
export const ANSWER_BYTES_MAX: number = 1024 * 1024

export interface LiveRequest {
  /** The query as it is now, for somebody: planned anew whenever the schema has changed. Throws as `POST /api/_query` answers. */
  prepare(identity: Identity): BoundStatement<ReadStatement>
  readonly intervalMs: number
}

export interface LiveReceiver {
  /** `rows`: a JSON array. */
  changed(rows: string, count: number): void
  /** `over`: it will not be run again. */
  failed(error: unknown, over: boolean): void
}

export interface LiveQuery {
  renew(identity: Identity): void
  /** The last answer was lost on the way: the next is sent whatever it is. */
  repeat(): void
  stop(): void
}

export interface LiveQueries {
  start(request: LiveRequest, identity: Identity, receiver: LiveReceiver): LiveQuery
  /** Every query is planned anew and runs again. */
  refresh(): void
  stats(): LiveStats
  close(): void
}

export interface LiveStats {
  readonly queries: number
  /** Those of them that are run when something has changed, and not every time. */
  readonly driven: number
  readonly subscriptions: number
  /** How often the database was asked. */
  readonly runs: number
}

export interface LiveQueriesParts {
  /** Hears of changes of whatever the answer of a statement depends on; null where not all of that is heard of. */
  readonly follow: (statement: BoundStatement<ReadStatement>, onChange: () => void) => Follow | null
  /** With the tenant's gate and the cost guard, as for `POST /api/_query`. */
  readonly runner: Pick<Runner, 'read'>
  readonly limiter: Limiter
  readonly quotas: Pick<Quotas, 'subscription' | 'liveQuery'>
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

interface Watcher {
  /** Give back what it counts. */
  leaveGroup: Release
  readonly release: Release
  readonly request: LiveRequest
  readonly receiver: LiveReceiver
  identity: Identity
  dueAt: number
  /** Something may have changed since its last answer. */
  stale: boolean
  /** Of the rows that it has; null before the first. */
  digest: string | null
  /** Has been told that it fails, and not yet that it works again. */
  failing: boolean
}

/** What is run once for all of its watchers. */
interface Shared {
  readonly name: string
  /** Whose turns its runs take. */
  readonly owner: string
  readonly watchers: Set<Watcher>
  statement: BoundStatement<ReadStatement> | null
  /** Null: nobody tells when it would answer something else. */
  follow: Follow | null
  /** Every change is heard of. */
  driven: boolean
  timer: NodeJS.Timeout | null
  running: boolean
}

export function createLiveQueries({ runner, limiter, now, follow, quotas }: LiveQueriesParts): LiveQueries {
  const all = new Map<string, Shared>()
  let runs = 0

  function join(watcher: Watcher, beyond: Beyond): Shared {
    const statement = watcher.request.prepare(watcher.identity)
    const values = statement.values.map(value => value?.toString('latin1') ?? null)
    const name = JSON.stringify([statement.statement.text, values, contextOf(watcher.identity, null)])
    const known = all.get(name)
    const owner = callerKey(watcher.identity)
    watcher.leaveGroup = quotas.liveQuery(watcher.identity, name, beyond)
    const shared: Shared = known ?? {
      ...{ name, owner, watchers: new Set(), statement },
      ...{ follow: null, driven: false, timer: null, running: false },
    }
    all.set(name, shared)
    shared.watchers.add(watcher)
    if (known === undefined) attend(shared, statement)
    schedule(shared)
    return shared
  }

  function attend(shared: Shared, statement: BoundStatement<ReadStatement>): void {
    const mine = follow(statement, () => wake(shared))
    shared.follow = mine
    if (mine === null) return
    const begin = () => {
      if (shared.follow !== mine) return
      shared.driven = true
      // What has changed before it was heard of.
      wake(shared)
    }
    mine.ready.then(begin, () => {})
  }

  function forget(shared: Shared): void {
    shared.follow?.close()
    shared.follow = null
    shared.driven = false
    shared.statement = null
  }

  function wake(shared: Shared): void {
    const fresh = [...shared.watchers].filter(watcher => !watcher.stale)
    for (const watcher of fresh) watcher.stale = true
    // The others wait for their turn already.
    if (fresh.length > 0) schedule(shared)
  }

  function leave(shared: Shared, watcher: Watcher): void {
    if (!shared.watchers.delete(watcher)) return
    watcher.leaveGroup()
    if (shared.watchers.size > 0) return
    if (shared.timer !== null) clearTimeout(shared.timer)
    forget(shared)
    all.delete(shared.name)
  }

  function schedule(shared: Shared): void {
    if (shared.timer !== null) clearTimeout(shared.timer)
    shared.timer = null
    const waiting = [...shared.watchers].filter(watcher => watcher.stale || !shared.driven)
    if (shared.running || waiting.length === 0) return
    const dueAt = Math.min(...waiting.map(watcher => watcher.dueAt))
    shared.timer = setTimeout(
      () => {
        shared.running = true
        void limiter
          .run(shared.owner, () => runOnce(shared))
          .finally(() => {
            shared.running = false
            schedule(shared)
          })
      },
      Math.max(0, dueAt - now()),
    )
  }

  /** Never rejects. */
  async function runOnce(shared: Shared): Promise<void> {
    const due = [...shared.watchers].filter(({ dueAt, stale }) => dueAt <= now() && (stale || !shared.driven))
    const [first] = due
    if (first === undefined) return
    // What changes from here on is heard of again.
    for (const watcher of due) watcher.stale = false
    try {
      const statement = shared.statement ?? first.request.prepare(first.identity)
      if (shared.statement === null) attend(shared, statement)
      shared.statement = statement
      runs++
      const digest = due.every(watcher => watcher.digest === first.digest) ? first.digest : null
      const [rows] = await runner.read(first.identity, [ifChanged(statement, digest, ANSWER_BYTES_MAX)], { ms: 0 })
        .result
      if (shared.statement !== statement) {
        // The rules have changed while it ran.
        for (const watcher of due) watcher.stale = true
        return
      }
      const [found, count, bytes, list] = rows?.[0] ?? []
      if (Number(bytes?.toString()) > ANSWER_BYTES_MAX) throw tooLarge()
      for (const watcher of due) {
        if (!shared.watchers.has(watcher)) continue
        watcher.failing = false
        const current = found?.toString() ?? ''
        if (watcher.digest === current || list == null) continue
        watcher.digest = current
        watcher.receiver.changed(`[${list.toString()}]`, Number(count?.toString()))
      }
    } catch (error) {
      const over = !isPassingNow(error)
      for (const watcher of due) {
        if (!shared.watchers.has(watcher)) continue
        watcher.stale = true
        if (over) {
          leave(shared, watcher)
          watcher.release()
        }
        if (over || !watcher.failing) watcher.receiver.failed(error, over)
        watcher.failing = true
      }
    } finally {
      for (const watcher of due) watcher.dueAt = now() + watcher.request.intervalMs
    }
  }

  return {
    start(request, identity, receiver) {
      const release = quotas.subscription(identity)
      const watcher: Watcher = {
        ...{ request, receiver, identity, release, leaveGroup: () => {} },
        ...{ dueAt: now(), stale: true, digest: null, failing: false },
      }
      let shared: Shared
      try {
        shared = join(watcher, 'refuse')
      } catch (error) {
        release()
        throw error
      }
      return {
        renew(renewed) {
          watcher.identity = renewed
          watcher.stale = true
          leave(shared, watcher)
          shared = join(watcher, 'count')
        },
        repeat() {
          watcher.digest = null
          wake(shared)
        },
        stop() {
          leave(shared, watcher)
          release()
        },
      }
    },
    refresh() {
      for (const shared of all.values()) {
        forget(shared)
        wake(shared)
      }
    },
    stats: () => ({
      queries: all.size,
      driven: [...all.values()].filter(({ driven }) => driven).length,
      subscriptions: [...all.values()].reduce((sum, { watchers }) => sum + watchers.size, 0),
      runs,
    }),
    close() {
      for (const shared of all.values()) {
        if (shared.timer !== null) clearTimeout(shared.timer)
        forget(shared)
      }
      all.clear()
    },
  }
}

/** Or the tenant is busy, or the answer is too large today. */
function isPassingNow(error: unknown): boolean {
  if (isPassing(error)) return true
  return error instanceof GatewayError && (error.status === 429 || error.code === 'PAYLOAD_TOO_LARGE')
}

function tooLarge(): GatewayError {
  return new GatewayError(
    'PAYLOAD_TOO_LARGE',
    `the rows of this live query are more than ${ANSWER_BYTES_MAX} bytes; ask for fewer rows or columns`,
  )
}
