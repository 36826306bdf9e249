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
import type { Row, Runner } from '../run/run.ts'
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

export class LiveQueries {
  readonly #parts: LiveQueriesParts
  readonly #all = new Map<string, Shared>()
  #runs = 0

  constructor(parts: LiveQueriesParts) {
    this.#parts = parts
  }

  start(request: LiveRequest, identity: Identity, receiver: LiveReceiver): LiveQuery {
    const release = this.#parts.quotas.subscription(identity)
    const watcher: Watcher = {
      ...{ request, receiver, identity, release, leaveGroup: () => {} },
      ...{ dueAt: this.#parts.now(), stale: true, digest: null, failing: false },
    }
    try {
      return this.#liveQueryOf(watcher, this.#join(watcher, 'refuse'))
    } catch (error) {
      release()
      throw error
    }
  }

  /** Every query is planned anew and runs again. */
  refresh(): void {
    for (const shared of this.#all.values()) {
      forget(shared)
      this.#wake(shared)
    }
  }

  stats(): LiveStats {
    const all = [...this.#all.values()]
    return {
      queries: all.length,
      driven: all.filter(({ driven }) => driven).length,
      subscriptions: all.reduce((sum, { watchers }) => sum + watchers.size, 0),
      runs: this.#runs,
    }
  }

  close(): void {
    for (const shared of this.#all.values()) {
      if (shared.timer !== null) clearTimeout(shared.timer)
      forget(shared)
    }
    this.#all.clear()
  }

  #liveQueryOf(watcher: Watcher, joined: Shared): LiveQuery {
    let shared = joined
    return {
      renew: identity => {
        watcher.identity = identity
        watcher.stale = true
        this.#leave(shared, watcher)
        shared = this.#join(watcher, 'count')
      },
      repeat: () => {
        watcher.digest = null
        this.#wake(shared)
      },
      stop: () => {
        this.#leave(shared, watcher)
        watcher.release()
      },
    }
  }

  // --- who watches what ---

  #join(watcher: Watcher, beyond: Beyond): Shared {
    const { request, identity } = watcher
    const statement = request.prepare(identity)
    const values = statement.values.map(value => value?.toString('latin1') ?? null)
    const name = JSON.stringify([statement.statement.text, values, contextOf(identity, null)])
    const known = this.#all.get(name)
    watcher.leaveGroup = this.#parts.quotas.liveQuery(identity, name, beyond)
    const shared: Shared = known ?? {
      ...{ name, owner: callerKey(identity), watchers: new Set(), statement },
      ...{ follow: null, driven: false, timer: null, running: false },
    }
    this.#all.set(name, shared)
    shared.watchers.add(watcher)
    if (known === undefined) this.#attend(shared, statement)
    this.#schedule(shared)
    return shared
  }

  #attend(shared: Shared, statement: BoundStatement<ReadStatement>): void {
    const mine = this.#parts.follow(statement, () => this.#wake(shared))
    shared.follow = mine
    if (mine === null) return
    const begin = () => {
      if (shared.follow !== mine) return
      shared.driven = true
      // What has changed before it was heard of.
      this.#wake(shared)
    }
    mine.ready.then(begin, () => {})
  }

  #wake(shared: Shared): void {
    const fresh = [...shared.watchers].filter(watcher => !watcher.stale)
    for (const watcher of fresh) watcher.stale = true
    // The others wait for their turn already.
    if (fresh.length > 0) this.#schedule(shared)
  }

  #leave(shared: Shared, watcher: Watcher): void {
    if (!shared.watchers.delete(watcher)) return
    watcher.leaveGroup()
    if (shared.watchers.size > 0) return
    if (shared.timer !== null) clearTimeout(shared.timer)
    forget(shared)
    this.#all.delete(shared.name)
  }

  // --- running ---

  #schedule(shared: Shared): void {
    if (shared.timer !== null) clearTimeout(shared.timer)
    shared.timer = null
    const waiting = [...shared.watchers].filter(watcher => watcher.stale || !shared.driven)
    if (shared.running || waiting.length === 0) return
    const dueAt = Math.min(...waiting.map(watcher => watcher.dueAt))
    shared.timer = setTimeout(() => this.#runInTurn(shared), Math.max(0, dueAt - this.#parts.now()))
  }

  #runInTurn(shared: Shared): void {
    shared.running = true
    void this.#parts.limiter
      .run(shared.owner, () => this.#run(shared))
      .finally(() => {
        shared.running = false
        this.#schedule(shared)
      })
  }

  /** Never rejects. */
  async #run(shared: Shared): Promise<void> {
    const { now } = this.#parts
    const due = [...shared.watchers].filter(({ dueAt, stale }) => dueAt <= now() && (stale || !shared.driven))
    const [first] = due
    if (first === undefined) return
    // What changes from here on is heard of again.
    for (const watcher of due) watcher.stale = false
    try {
      await this.#ask(shared, due, first)
    } catch (error) {
      this.#fail(shared, due, error)
    } finally {
      for (const watcher of due) watcher.dueAt = now() + watcher.request.intervalMs
    }
  }

  async #ask(shared: Shared, due: readonly Watcher[], { request, identity, digest }: Watcher): Promise<void> {
    const statement = shared.statement ?? request.prepare(identity)
    if (shared.statement === null) this.#attend(shared, statement)
    shared.statement = statement
    this.#runs++
    const common = due.every(watcher => watcher.digest === digest) ? digest : null
    const question = ifChanged(statement, common, ANSWER_BYTES_MAX)
    const [rows] = await this.#parts.runner.read(identity, [question], { ms: 0 }).result
    if (shared.statement === statement) tell(shared, due, rows?.[0] ?? [])
    // The rules have changed while it ran.
    else for (const watcher of due) watcher.stale = true
  }

  #fail(shared: Shared, due: readonly Watcher[], error: unknown): void {
    const over = !isPassingNow(error)
    for (const watcher of due) {
      if (!shared.watchers.has(watcher)) continue
      watcher.stale = true
      if (over) {
        this.#leave(shared, watcher)
        watcher.release()
      }
      if (over || !watcher.failing) watcher.receiver.failed(error, over)
      watcher.failing = true
    }
  }
}

function forget(shared: Shared): void {
  shared.follow?.close()
  shared.follow = null
  shared.driven = false
  shared.statement = null
}

/** Those for whom the answer is another than their last; `row` as `ifChanged` asks for it. */
function tell({ watchers }: Shared, due: readonly Watcher[], [found, count, bytes, list]: Row): void {
  if (Number(bytes?.toString()) > ANSWER_BYTES_MAX) throw tooLarge()
  for (const watcher of due) {
    if (!watchers.has(watcher)) continue
    watcher.failing = false
    const current = found?.toString() ?? ''
    if (watcher.digest === current || list == null) continue
    watcher.digest = current
    watcher.receiver.changed(`[${list.toString()}]`, Number(count?.toString()))
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
