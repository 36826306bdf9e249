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
  /** How all columns of its rows arrive; text unless given. It belongs to the use, not to the statement. */
  readonly resultFormat?: ResultFormat
  /**
   * Runs even if the unit fails: then in a separate transaction, before the connection is given anything new. For what a rollback does not undo,
   * which are session-level locks.
   */
  readonly always?: true
  /**
   * Of the first command of a transaction: on whose behalf it runs, such as a tenant. Flows share the connections fairly, and none waits behind another's
   * statement. The gateway's own transactions have none.
   */
  readonly flow?: string
  /** Says nothing of how long its unit takes, however long its text is. */
  readonly upkeep?: true
  /** Of the first command of a transaction: nothing is changed by it, so its result can be refused while it is read. */
  readonly readsOnly?: true
}

export type ResultFormat = 'text' | 'binary'

/** A row as it came: one Buffer per column, in the format that its command asked for; null for NULL. */
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

/** What PostgreSQL makes of a statement's text without running it. */
export interface StatementDescription {
  /** In the order of `$1`, `$2`, …; inferred where the text does not say. */
  readonly parameterTypeOids: readonly number[]
  /** Empty for a statement that returns no rows. */
  readonly fields: readonly FieldDescription[]
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

/**
 * How long the server has worked for one request, in milliseconds: from the moment a transaction is next on its connection to its end. Waiting for a
 * connection is not part of it. The pool adds to it.
 */
export interface ServerTime {
  ms: number
}

/**
 * The pool as its users see it. All commands of one call run as one transaction, in one packet, before one Sync.
 * `worked`: of the request that a call is part of; the pool's own limits bound all of its transactions together.
 */
export interface Database {
  /** Rejects with `DatabaseError` (the server refused), `UnavailableError` (no connection in time, or it broke), `CancelledError`. */
  run(commands: readonly Command[], worked?: ServerTime): Running<readonly Result[]>
  /**
   * Runs `before`, then has PostgreSQL parse and describe `text` without running it, in the same transaction: names are
   * looked up, and locks waited for, under the settings that `before` makes. A refusal is a `DatabaseError` like any other.
   */
  describe(before: readonly Command[], text: string, worked?: ServerTime): Running<StatementDescription>
  /**
   * Runs `before`, then streams the rows of `command` through a portal, up to `batchRows` at a time; the connection is
   * exclusive until the iterator is finished, thrown or returned. Back-pressure: the next batch is asked for by `next()`.
   * `after` runs at the end of the same transaction, however many of the rows were taken.
   */
  stream(
    before: readonly Command[],
    command: Command,
    batchRows: number,
    after?: readonly Command[],
    worked?: ServerTime,
  ): AsyncIterableIterator<readonly Row[]>
}
