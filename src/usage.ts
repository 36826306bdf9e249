import type { TraceContext } from './trace-context.ts'

/** The database work of a request. */
export interface TracedWork {
  /** The time for which the database has worked, in milliseconds. */
  ms: number
  /** The trace that the work belongs to; undefined without one. */
  readonly trace?: TraceContext | undefined
  /** Required of its reads if they can run on a replica; undefined: they run on the primary. */
  consistency?: Consistency | undefined
  /** The position in the primary's write-ahead log after its last write, such as `16/B374D848`. */
  wrote?: string
}

/** Requirements of a read on a replica, in addition to what its caller has written. */
export interface Consistency {
  /** True if the read runs on the primary. */
  readonly isStrong: boolean
  /** A position in the primary's write-ahead log; 0 for none. */
  readonly after: bigint
  /** Everything that was committed before this time, in milliseconds of the monotonic clock. */
  readonly since?: number
}

/**
 * The usage of a request so far, for the access log. It is filled in by the code that waits for the database
 * and creates the response.
 */
export class Usage {
  /**
   * Time that the database has worked for the request, without waiting for connections; the pool adds to it.
   * Limited by `statement_timeout_ms`. While the request runs in a transaction, it names its part of it.
   */
  worked: TracedWork
  /** The number of rows returned or written; null until known. */
  rows: number | null = null
  /** Resource name of the first table that a query text reads or writes. */
  table: string | null = null
  #databaseMs = 0
  #since: number | null = null
  #used = false

  constructor(worked: TracedWork = { ms: 0 }) {
    this.worked = worked
  }

  /**
   * Starts the time when something is sent to the database or begins to wait for a connection. No effect if
   * it is running.
   */
  waits(): void {
    this.#used = true
    this.#since ??= performance.now()
  }

  answered(): void {
    if (this.#since === null) return
    this.#databaseMs += performance.now() - this.#since
    this.#since = null
  }

  /**
   * Milliseconds from sending to the response, including the wait for a connection; null if nothing was sent.
   * Stops a running time.
   */
  databaseMs(): number | null {
    this.answered()
    return this.#used ? this.#databaseMs : null
  }
}
