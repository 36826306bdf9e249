/**
 * Live queries (docs/guides/realtime.md#a-live-query): reads that are run repeatedly and whose rows are sent
 * whenever they have changed. Callers with the same query and the same session settings share each run. The
 * database compares a digest, so an unchanged result costs no transfer of rows. If every table that a query
 * reads is captured, it is run only after a change that may concern the caller (`query-routes.ts`).
 */

import { ifChanged } from '../compile/derive.ts'
import type { BoundStatement, ReadStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import type { ResultRow, Runner } from '../run/run.ts'
import type { DependencyListener } from './dependency-listener.ts'
import type { Limiter } from './limiter.ts'
import type { OverLimit, Quotas, Release } from './quotas.ts'
import { settingsKey } from './settings-key.ts'
import { isTransient } from './transient-errors.ts'

/** Limit on the bytes of one result, which has to fit into a socket's queue. */
export const LIVE_RESULT_BYTES_MAX: number = 1024 * 1024

/** A live query as requested. */
export interface LiveRequest {
  /**
   * Plans the query for a caller; called again after the schema has changed.
   * @throws GatewayError as `POST /api/_query` responds.
   */
  prepare(identity: Identity): BoundStatement<ReadStatement>
  readonly intervalMs: number
}

/** Receives the results of a live query. */
export interface LiveReceiver {
  /** `rows` is a JSON array. */
  changed(rows: string, count: number): void
  /** `over`: whether the query has ended. */
  failed(error: unknown, over: boolean): void
}

/** A running live query. */
export interface LiveQuery {
  renew(identity: Identity): void
  /** Sends the next result even if it is unchanged, because the last one was not delivered. */
  repeat(): void
  stop(): void
}

/** Figures of live queries. */
export interface LiveStats {
  readonly queries: number
  /** Queries that run only when a table has changed. */
  readonly driven: number
  readonly subscriptions: number
  /** How often a query was run. */
  readonly runs: number
}

/** The dependencies of live queries. */
export interface LiveQueriesParts {
  /** Listens for changes that may concern a caller's result; null if that is not possible. */
  readonly listen: (
    statement: BoundStatement<ReadStatement>,
    identity: Identity,
    onChange: () => void,
  ) => DependencyListener | null
  /** The runner with the tenant's concurrency limit and the cost guard, as for `POST /api/_query`. */
  readonly runner: Pick<Runner, 'read'>
  readonly limiter: Limiter
  readonly quotas: Pick<Quotas, 'subscription' | 'liveQuery'>
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** One client's live query. */
interface LiveClient {
  /** `leaveGroup` and `release` give back what the quotas counted. */
  leaveGroup: Release
  readonly release: Release
  readonly request: LiveRequest
  readonly receiver: LiveReceiver
  identity: Identity
  dueAt: number
  /** True if the result may have changed since the last run. */
  stale: boolean
  /** The digest of the rows that the client has; null before the first result. */
  digest: string | null
  /** True if the last thing sent to the client was an error. */
  failing: boolean
}

/** A query run once for all of its clients. */
interface SharedQuery {
  readonly name: string
  /** The owner whose share of runs it uses. */
  readonly owner: string
  readonly clients: Set<LiveClient>
  statement: BoundStatement<ReadStatement> | null
  /** The listener for the query's tables; null if the query must be polled. */
  listener: DependencyListener | null
  /** True if every change is reported. */
  driven: boolean
  timer: NodeJS.Timeout | null
  running: boolean
}

/** Runs the live queries of all clients. */
export class LiveQueries {
  readonly #parts: LiveQueriesParts
  readonly #all = new Map<string, SharedQuery>()
  #runs = 0

  constructor(parts: LiveQueriesParts) {
    this.#parts = parts
  }

  start(request: LiveRequest, identity: Identity, receiver: LiveReceiver): LiveQuery {
    const release = this.#parts.quotas.subscription(identity)
    const client: LiveClient = {
      ...{ request, receiver, identity, release, leaveGroup: () => {} },
      ...{ dueAt: this.#parts.now(), stale: true, digest: null, failing: false },
    }
    try {
      return this.#liveQueryOf(client, this.#join(client, 'refuse'))
    } catch (error) {
      release()
      throw error
    }
  }

  /** Plans every query again and runs it. */
  refresh(): void {
    for (const shared of this.#all.values()) {
      reset(shared)
      this.#wake(shared)
    }
  }

  stats(): LiveStats {
    const all = [...this.#all.values()]
    return {
      queries: all.length,
      driven: all.filter(({ driven }) => driven).length,
      subscriptions: all.reduce((sum, { clients }) => sum + clients.size, 0),
      runs: this.#runs,
    }
  }

  close(): void {
    for (const shared of this.#all.values()) {
      if (shared.timer !== null) clearTimeout(shared.timer)
      reset(shared)
    }
    this.#all.clear()
  }

  #liveQueryOf(client: LiveClient, joined: SharedQuery): LiveQuery {
    let shared = joined
    return {
      renew: identity => {
        client.identity = identity
        client.stale = true
        this.#leave(shared, client)
        shared = this.#join(client, 'count')
      },
      repeat: () => {
        client.digest = null
        this.#wake(shared)
      },
      stop: () => {
        this.#leave(shared, client)
        client.release()
      },
    }
  }

  // // --- sharing ---

  #join(client: LiveClient, beyond: OverLimit): SharedQuery {
    const { request, identity } = client
    const statement = request.prepare(identity)
    const values = statement.values.map(value => value?.toString('latin1') ?? null)
    const name = JSON.stringify([statement.statement.text, values, settingsKey(identity, null)])
    const known = this.#all.get(name)
    client.leaveGroup = this.#parts.quotas.liveQuery(identity, name, beyond)
    const shared: SharedQuery = known ?? {
      ...{ name, owner: callerKey(identity), clients: new Set(), statement },
      ...{ listener: null, driven: false, timer: null, running: false },
    }
    this.#all.set(name, shared)
    shared.clients.add(client)
    if (known === undefined) this.#listen(shared, statement, identity)
    this.#schedule(shared)
    return shared
  }

  #listen(shared: SharedQuery, statement: BoundStatement<ReadStatement>, identity: Identity): void {
    const listener = this.#parts.listen(statement, identity, () => this.#wake(shared))
    shared.listener = listener
    if (listener === null) return
    const begin = () => {
      if (shared.listener !== listener) return
      shared.driven = true
      // Changes before listening began were not reported.
      this.#wake(shared)
    }
    listener.ready.then(begin, () => {})
  }

  #wake(shared: SharedQuery): void {
    const fresh = [...shared.clients].filter(client => !client.stale)
    for (const client of fresh) client.stale = true
    // The others are already waiting for a run.
    if (fresh.length > 0) this.#schedule(shared)
  }

  #leave(shared: SharedQuery, client: LiveClient): void {
    if (!shared.clients.delete(client)) return
    client.leaveGroup()
    if (shared.clients.size > 0) return
    if (shared.timer !== null) clearTimeout(shared.timer)
    reset(shared)
    this.#all.delete(shared.name)
  }

  // --- running ---

  #schedule(shared: SharedQuery): void {
    if (shared.timer !== null) clearTimeout(shared.timer)
    shared.timer = null
    const waiting = [...shared.clients].filter(client => client.stale || !shared.driven)
    if (shared.running || waiting.length === 0) return
    const dueAt = Math.min(...waiting.map(client => client.dueAt))
    shared.timer = setTimeout(() => this.#runInTurn(shared), Math.max(0, dueAt - this.#parts.now()))
  }

  #runInTurn(shared: SharedQuery): void {
    shared.running = true
    void this.#parts.limiter
      .run(shared.owner, () => this.#run(shared))
      .finally(() => {
        shared.running = false
        this.#schedule(shared)
      })
  }

  /** Runs a query once. Never rejects. */
  async #run(shared: SharedQuery): Promise<void> {
    const { now } = this.#parts
    const due = [...shared.clients].filter(({ dueAt, stale }) => dueAt <= now() && (stale || !shared.driven))
    const [first] = due
    if (first === undefined) return
    // Later changes mark them as stale again.
    for (const client of due) client.stale = false
    try {
      await this.#query(shared, due, first)
    } catch (error) {
      this.#fail(shared, due, error)
    } finally {
      for (const client of due) client.dueAt = now() + client.request.intervalMs
    }
  }

  async #query(
    shared: SharedQuery,
    due: readonly LiveClient[],
    { request, identity, digest }: LiveClient,
  ): Promise<void> {
    const statement = shared.statement ?? request.prepare(identity)
    if (shared.statement === null) this.#listen(shared, statement, identity)
    shared.statement = statement
    this.#runs++
    const common = due.every(client => client.digest === digest) ? digest : null
    const conditional = ifChanged(statement, common, LIVE_RESULT_BYTES_MAX)
    const [rows] = await this.#parts.runner.read(identity, [conditional], { ms: 0 }).result
    if (shared.statement === statement) deliver(shared, due, rows?.[0] ?? [])
    // The rules have changed during the run.
    else for (const client of due) client.stale = true
  }

  #fail(shared: SharedQuery, due: readonly LiveClient[], error: unknown): void {
    const over = !isTransientForLiveQuery(error)
    for (const client of due) {
      if (!shared.clients.has(client)) continue
      client.stale = true
      if (over) {
        this.#leave(shared, client)
        client.release()
      }
      if (over || !client.failing) client.receiver.failed(error, over)
      client.failing = true
    }
  }
}

function reset(shared: SharedQuery): void {
  shared.listener?.close()
  shared.listener = null
  shared.driven = false
  shared.statement = null
}

/** Sends the result to clients whose last one differs; `row` as selected by `ifChanged`. */
function deliver({ clients }: SharedQuery, due: readonly LiveClient[], [digest, count, bytes, list]: ResultRow): void {
  if (Number(bytes?.toString()) > LIVE_RESULT_BYTES_MAX) throw tooLarge()
  for (const client of due) {
    if (!clients.has(client)) continue
    client.failing = false
    const currentDigest = digest?.toString() ?? ''
    if (client.digest === currentDigest || list == null) continue
    client.digest = currentDigest
    client.receiver.changed(`[${list.toString()}]`, Number(count?.toString()))
  }
}

/**
 * True if a live query can succeed later. This includes a failure because the tenant is busy, or because the
 * result is too large at present.
 */
function isTransientForLiveQuery(error: unknown): boolean {
  if (isTransient(error)) return true
  return error instanceof GatewayError && (error.status === 429 || error.code === 'PAYLOAD_TOO_LARGE')
}

function tooLarge(): GatewayError {
  return new GatewayError(
    'PAYLOAD_TOO_LARGE',
    `the rows of this live query are more than ${LIVE_RESULT_BYTES_MAX} bytes; request fewer rows or columns`,
  )
}
