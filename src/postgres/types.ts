/** What the pool takes and gives: the vocabulary between `run/` (and `catalog/`) and the wire. */

/** A parameter in text format; null is SQL NULL. */
export type ParameterValue = string | Buffer | null

/** The parameters of a Bind message already in wire form; made once by `encodeParameters`, sent many times. */
export interface EncodedParameters {
  readonly bytes: Buffer
}

/** One Bind and Execute. The text is prepared once per connection and reused; it must depend on the shape only. */
export interface Command {
  readonly text: string
  readonly parameters: readonly ParameterValue[] | EncodedParameters
}

/** A row as it came: one Buffer per column (text format unless asked otherwise), null for NULL. */
export type Row = readonly (Buffer | null)[]

export interface FieldDescription {
  readonly name: string
  readonly typeOid: number
}

export interface Result {
  readonly fields: readonly FieldDescription[]
  readonly rows: readonly Row[]
  /** The command tag, e.g. `SELECT 25`, `INSERT 0 1`. */
  readonly tag: string
}

/** Something that was handed to the pool. */
export interface Running<T> {
  readonly result: Promise<T>
  /**
   * The caller is gone: what waits is dropped, what runs is cancelled in the database where that can hit nothing
   * else. `result` is then rejected with a `CancelledError`, at the latest when the answer would have come.
   */
  cancel(): void
}

/** The pool as its users see it. All commands of one call run as one transaction, in one packet, before one Sync. */
export interface Database {
  /** Rejects with `DatabaseError` (the server refused), `UnavailableError` (no connection in time, or it broke), `CancelledError`. */
  run(commands: readonly Command[]): Running<readonly Result[]>
  /**
   * Runs `before`, then streams the rows of `command` through a portal, up to `batchRows` at a time; the connection is
   * exclusive until the iterator is finished, thrown or returned. Back-pressure: the next batch is asked for by `next()`.
   */
  stream(before: readonly Command[], command: Command, batchRows: number): AsyncIterableIterator<readonly Row[]>
}
