/** What a request has used so far, for the access log. The parts that wait for the database and make the answer write it down. */
export class Usage {
  /** How long the database has worked for the request, without waiting for connections; the pool adds to it. `statement_timeout_ms` bounds it. */
  readonly worked = { ms: 0 }
  /** Rows that were answered or written; null until known. */
  rows: number | null = null
  /** Resource name of the first table that a query text reads or writes. */
  table: string | null = null
  #databaseMs = 0
  #since: number | null = null
  #used = false

  /** Something was sent to the database, or is about to wait for a connection. Does nothing while the time is running. */
  waits(): void {
    this.#used = true
    this.#since ??= performance.now()
  }

  answered(): void {
    if (this.#since === null) return
    this.#databaseMs += performance.now() - this.#since
    this.#since = null
  }

  /** Milliseconds from sending to the answer, waiting for a connection included; null if nothing was sent. Ends what is still running. */
  databaseMs(): number | null {
    this.answered()
    return this.#used ? this.#databaseMs : null
  }
}
