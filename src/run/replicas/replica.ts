/**
 * A read replica: a pool for reads, and a check that reads how far the server has replayed the write-ahead
 * log. A replica that does not answer gets no reads until it does.
 */
import { type Lsn, parseLsn } from '../../postgres/replication/lsn.ts'
import type { Command, Database } from '../../postgres/types.ts'

/** The state of a replica. */
export type ReplicaState = 'unknown' | 'available' | 'unreachable' | 'not a standby' | 'another database'

/** A pool as a replica uses it. */
export interface ReplicaPool extends Pick<Database, 'run' | 'stream'> {
  /** Replaces the open connections, each when its requests are finished. */
  renew(): void
  close(options: { readonly deadlineMs: number }): Promise<void>
}

/** The dependencies of a replica. */
export interface ReplicaParts {
  /** Host and port. */
  readonly name: string
  readonly maxConnections: number
  /** Opens a pool for reads. `onFailed` is called when a connection cannot be made. */
  readonly openPool: (onFailed: (error: Error) => void) => ReplicaPool
  /** Opens a pool of one connection for the checks, whose answers have a time limit. */
  readonly openChecks: () => ReplicaPool
  /** Identifies the database of the primary, by the same text as `CHECK`. */
  readonly primaryIdentity: () => Promise<string>
  readonly onState: (state: ReplicaState, reason: string | null) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** A physical copy has the same system identifier, and its databases the same OIDs. */
export const IDENTITY: string =
  "(SELECT system_identifier || ' ' || d.oid FROM pg_catalog.pg_control_system(), pg_catalog.pg_database d " +
  'WHERE d.datname = pg_catalog.current_database())'

const CHECK: Command = {
  text: `SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_wal_replay_lsn(), ${IDENTITY}`,
  parameters: [],
}

/** Limit on how often reads that need a newer position cause a check. */
const CHECK_GAP_MS = 20

/** Failed checks in a row after which reads in progress are ended, so that the primary answers them. */
const FAILURES_MAX = 2

/** A read replica. */
export class Replica {
  readonly name: string
  /** Reads in progress. */
  running = 0
  /** Since the start: reads that it has answered. */
  reads = 0
  readonly #parts: ReplicaParts
  readonly #checks: ReplicaPool
  #pool: ReplicaPool | null = null
  #state: ReplicaState = 'unknown'
  #replayed: Lsn = 0n
  #failures = 0
  #checking: Promise<void> | null = null
  #checkedAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(parts: ReplicaParts) {
    this.#parts = parts
    this.name = parts.name
    this.#checks = parts.openChecks()
  }

  get state(): ReplicaState {
    return this.#state
  }

  /** The position that it had replayed at the last check. */
  get replayed(): Lsn {
    return this.#replayed
  }

  /** Reads in progress for each connection. */
  get load(): number {
    return this.running / this.#parts.maxConnections
  }

  /** The pool for reads; only while the replica is available. */
  get pool(): ReplicaPool {
    this.#pool ??= this.#parts.openPool(error => this.#failed(error))
    return this.#pool
  }

  /** Checks the replica. Never rejects; concurrent callers share a check. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null
    })
    return this.#checking
  }

  /** Checks the replica unless that has just happened. */
  checkSoon(): void {
    if (this.#parts.now() - this.#checkedAt >= CHECK_GAP_MS) void this.check()
  }

  /** A read could not be answered, because a connection was not available or broke. */
  failedRead(error: Error): void {
    this.#failed(error)
    this.checkSoon()
  }

  /** Replaces the connections for reads. */
  renew(): void {
    this.#pool?.renew()
  }

  async close(options: { readonly deadlineMs: number }): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#pool?.close(options), this.#checks.close({ deadlineMs: 0 })])
  }

  async #check(): Promise<void> {
    this.#checkedAt = this.#parts.now()
    try {
      const [result] = await this.#checks.run([CHECK]).result
      const [recovers, replayed, identity] = (result?.rows[0] ?? []).map(value => value?.toString() ?? null)
      if (this.#isClosed) return
      if (recovers !== 't' || replayed == null) {
        this.#stop('not a standby', 'it accepts writes')
        return
      }
      if (this.#state !== 'available' && identity !== (await this.#parts.primaryIdentity())) {
        this.#stop('another database', 'it is not a copy of the primary')
        return
      }
      this.#failures = 0
      this.#replayed = parseLsn(replayed)
      this.#turn('available', null)
    } catch (error) {
      this.#failed(error as Error)
      this.#failures += 1
      if (this.#failures >= FAILURES_MAX) this.#leave()
    }
  }

  /** Stops new reads until the next check that succeeds. Reads in progress may still be answered. */
  #failed(error: Error): void {
    if (!this.#isClosed) this.#turn('unreachable', error.message)
  }

  #stop(state: ReplicaState, reason: string): void {
    this.#turn(state, reason)
    this.#leave()
  }

  /** Ends all reads, which the primary answers instead. */
  #leave(): void {
    const pool = this.#pool
    this.#pool = null
    // Closing a pool does not fail.
    void pool?.close({ deadlineMs: 0 })
  }

  #turn(state: ReplicaState, reason: string | null): void {
    if (state === this.#state) return
    this.#state = state
    this.#parts.onState(state, reason)
  }
}
