/** The types of the pool's interface, used by `run/` and `catalog/`. */

/** A parameter in text format; null is SQL NULL. */
export type ParameterValue = string | Buffer | null

/** The parameters of a Bind message in wire form; encoded once by `encodeParameters`, sent many times. */
export interface EncodedParameters {
  readonly bytes: Buffer
}

/**
 * One Bind and Execute. The text is prepared once per connection and reused, so it must depend only on the
 * shape of a request.
 */
export interface Command {
  readonly text: string
  readonly parameters: readonly ParameterValue[] | EncodedParameters
  /** The format of the result's columns; text by default. It belongs to the use, not to the statement. */
  readonly resultFormat?: ResultFormat
  /**
   * True if the command runs even if the batch fails: then in a separate transaction, before the connection
   * is given anything new. For what a rollback does not undo, which are session-level locks.
   */
  readonly always?: true
  /**
   * On the first command of a transaction: the flow it belongs to, such as a tenant. Flows share connections
   * fairly, and none waits behind another's statement. The gateway's own transactions have none.
   */
  readonly flow?: string
  /** True if the command is irrelevant for the latency estimate of its batch, however long its text is. */
  readonly upkeep?: true
  /**
   * On the first command of a transaction: it changes nothing, so its result can be refused while it is read.
   */
  readonly readsOnly?: true
  /** What `COPY … FROM STDIN` reads. Only within an open transaction. */
  readonly input?: Buffer
  /** True if the command is only parsed and described, without a result. Only within an open transaction. */
  readonly parsesOnly?: true
}

/** The format of values. */
export type ResultFormat = 'text' | 'binary'

/** A row as received: one Buffer per column, in the requested format; null for NULL. */
export type ResultRow = readonly (Buffer | null)[]

/** A column of a result. */
export interface FieldDescription {
  readonly name: string
  readonly typeOid: number
}

/** The result of a command. */
export interface Result {
  readonly fields: readonly FieldDescription[]
  readonly rows: readonly ResultRow[]
  /** The command tag, such as `SELECT 25`, `INSERT 0 1`. */
  readonly tag: string
}

/** PostgreSQL's analysis of a statement that was not run. */
export interface StatementDescription {
  /** In the order of `$1`, `$2`, …; inferred where the text does not specify them. */
  readonly parameterTypeOids: readonly number[]
  /** Empty for a statement that returns no rows. */
  readonly fields: readonly FieldDescription[]
}

/** A request that was submitted to the pool. */
export interface RunningRequest<T> {
  readonly result: Promise<T>
  /**
   * Cancels a request whose client has disconnected: it is dropped if it waits, and cancelled in the database
   * if that can affect nothing else. `result` is then rejected with a `CancelledError`, at the latest when
   * the response would have arrived.
   */
  cancel(): void
}

/**
 * Server time of one client request, in milliseconds: from the moment a transaction is next on its connection
 * to its end, without waiting for a connection. The pool adds to it.
 */
export interface ServerTime {
  ms: number
}

/**
 * The pool as its users see it. All commands of one call run as one transaction, sent in one packet before
 * one Sync. `worked` is the client request's server time; the pool's own limits apply to all its transactions
 * together.
 */
export interface Database {
  /**
   * Runs commands. Rejects with `DatabaseError` (refused by the server), `UnavailableError` (no connection in
   * time, or it broke), or `CancelledError`.
   */
  run(commands: readonly Command[], worked?: ServerTime): RunningRequest<readonly Result[]>
  /**
   * Runs `before`, then parses and describes `text` without running it, in the same transaction: names are
   * resolved, and locks are waited for, under the settings that `before` makes. A refusal is a
   * `DatabaseError`.
   */
  describe(before: readonly Command[], text: string, worked?: ServerTime): RunningRequest<StatementDescription>
  /**
   * Runs `before`, then streams the rows of `command` through a portal, up to `batchRows` at a time; the
   * connection is exclusive until the iterator has finished, thrown or returned. Backpressure: `next()`
   * requests the next block. `after` runs at the end of the same transaction, however many rows were taken.
   */
  stream(
    before: readonly Command[],
    command: Command,
    batchRows: number,
    after?: readonly Command[],
    worked?: ServerTime,
  ): AsyncIterableIterator<readonly ResultRow[]>
  /**
   * Begins a transaction whose commands are not all known yet. Its connection is exclusive until the end, as
   * for a stream. `flow` as in the first command of other transactions; null for the default `isolation`.
   */
  begin(flow: string | undefined, isolation: Isolation | null, worked?: ServerTime): OpenTransaction
}

/** An isolation level that a transaction can request. */
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

/**
 * An open transaction. When a command fails, PostgreSQL has ended the transaction: everything after it is
 * rejected with a `SkippedError`.
 */
export interface OpenTransaction {
  /** Adds commands, which are sent without waiting for the results of earlier ones. */
  run(commands: readonly Command[]): Promise<readonly Result[]>
  /**
   * Runs commands within a savepoint: a command that fails undoes only these. Nothing else may be added until
   * the result is there.
   */
  attempt(commands: readonly Command[]): Promise<readonly Result[]>
  /** Runs the last commands and COMMIT, in one packet. */
  commit(commands: readonly Command[]): Promise<readonly Result[]>
  /** Undoes everything. Resolves when the connection is free. */
  rollback(): Promise<void>
  /** Rolls back because the client has disconnected; a running command is cancelled. */
  cancel(): void
  /** Resolves when the transaction has ended in any way. */
  readonly ended: Promise<void>
}
