/**
 * A pending request of a connection: it ends with one Sync, and its response ends with ReadyForQuery. There
 * are three kinds: a `CommandBatch` (all results at once), a `Stream` (a portal, block by block) and a
 * `DescribeRequest`.
 */
import type { DatabaseError } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import type { PreparedStatements } from './prepared-statements.ts'
import type { Writer } from './protocol/writer.ts'
import type { Command, ServerTime } from './types.ts'

/** The empty list of owed commands, shared by all requests that owe none. */
export const NOTHING_OWED: readonly Command[] = []

/** The commands that must run even though their batch failed. */
export function owedOf(commands: readonly Command[]): readonly Command[] {
  return commands.some(({ always }) => always === true)
    ? commands.filter(({ always }) => always === true)
    : NOTHING_OWED
}

/** The connection as a request sees it. */
export interface RequestChannel {
  readonly writer: Writer
  readonly statements: PreparedStatements
  flushSoon(): void
  /** Stops reading from the socket. Only for a request that has the connection to itself. */
  pause(): void
  resume(): void
  /** A request was cancelled: it is stopped in the database as soon as that can affect nothing else. */
  cancel(): void
}

/** A request sent to the server or waiting for a connection. */
export interface PendingRequest {
  /** The flow it belongs to. */
  readonly flow: Flow
  /** The statement text by which its latency is estimated. */
  readonly latencyKey: string
  /** Server time of the whole client request. */
  readonly serverTime: ServerTime
  /** How long it is expected to occupy its connection; set when it is assigned to one. */
  expectedMs: number
  /** The end of its wait for a connection, on the pool's clock. */
  deadline: number
  /** True if nothing may be sent behind it. */
  readonly exclusive: boolean
  /** True if it changes nothing, so that it can be refused at any time. */
  readonly readsOnly: boolean
  /** True if the result is no longer needed, because the client has disconnected. */
  readonly cancelled: boolean
  /** After a failure: the commands that must run in any case and have not run. */
  readonly owed: readonly Command[]

  /**
   * How long the response has been due, if the request is at the head of its line since `headSince`; includes
   * the time the server has worked before. 0 when none is due.
   */
  unansweredMs(now: number, headSince: number): number
  /**
   * Encodes everything up to and including the first Sync or Flush. May be called again after `unsent` or
   * `finished`.
   */
  write(channel: RequestChannel): void
  parseComplete(): void
  /**
   * Called with the ParameterDescription of a statement, before `described` is called for the same statement.
   */
  parametersDescribed(bytes: Buffer, start: number, end: number): void
  described(fields: readonly FieldDescription[]): void
  dataRow(bytes: Buffer, start: number, end: number): void
  /** A large row of `bytes` bytes begins. Returns false to skip it. */
  rowBegins(bytes: number): boolean
  /** A row longer than the reader's limit was skipped. */
  rowTooLong(bytes: number): void
  /** True if the current command is a COPY whose input was sent. Without this method, COPY is an error. */
  readonly takesInput?: boolean
  complete(tag: string): void
  suspended(): void
  failed(error: DatabaseError): void
  /**
   * ReadyForQuery outside a transaction. Returns true if the batch was rolled back completely because of a
   * stale statement and must be sent again.
   */
  finished(): boolean
  /**
   * ReadyForQuery within a transaction block: the request ends the transaction and stays at the head. Without
   * this method, that is an error.
   */
  withinBlock?(): void
  /** The written bytes will not be sent; the request waits for another connection. */
  unsent(): void
  /** Ends the request: the connection broke, or none was available in time. */
  reject(error: Error): void
}
