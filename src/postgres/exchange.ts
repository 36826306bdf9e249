/**
 * What a connection carries: a question that ends with one Sync and the answer that ends with its ReadyForQuery.
 * There are three: a `Unit` (everything at once), a `Stream` (portal, batch by batch) and a `Probe` (describes only).
 */
import type { DatabaseError } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import type { Writer } from './protocol/writer.ts'
import type { Statements } from './statements.ts'
import type { Command, ServerTime } from './types.ts'

export const NOTHING_OWED: readonly Command[] = []

/** What is owed of `commands` by who failed. */
export function owedOf(commands: readonly Command[]): readonly Command[] {
  return commands.some(({ always }) => always === true)
    ? commands.filter(({ always }) => always === true)
    : NOTHING_OWED
}

/** The connection as an exchange sees it. */
export interface Channel {
  readonly writer: Writer
  readonly statements: Statements
  flushSoon(): void
  /** Stops reading from the socket. Only for an exchange that has the connection to itself. */
  pause(): void
  resume(): void
  /** An exchange that it carries has become `cancelled`: it is stopped in the database as soon as that can hit nothing else. */
  cancel(): void
}

export interface Exchange {
  /** On whose behalf it runs. */
  readonly flow: Flow
  /** The statement by whose text the cost is remembered. */
  readonly costKey: string
  /** Of the request that it is part of. */
  readonly worked: ServerTime
  /** How long it will probably keep its connection busy; set when it is given to one. */
  expectedMs: number
  /** On the pool's clock: until then it may wait for a connection. */
  deadline: number
  /** Nothing may be sent behind it while it lasts. */
  readonly exclusive: boolean
  /** It changes nothing, so it can be refused at any time. */
  readonly readsOnly: boolean
  /** The caller is gone; the answer interests nobody. */
  readonly cancelled: boolean
  /** Once it is finished: the commands that it had to run in any case, and did not because it failed. */
  readonly owed: readonly Command[]

  /**
   * How long the server has owed the request an answer, if this has been at the head of its line since `headSince`: what it has worked for the request
   * before is included. 0 when it owes none.
   */
  unansweredMs(now: number, headSince: number): number
  /** Encodes everything up to and including the first Sync or Flush. May be called again after `unsent` or `finished`. */
  write(channel: Channel): void
  parseComplete(): void
  /** A ParameterDescription; comes before what `described` reports of the same statement. */
  parametersDescribed(bytes: Buffer, start: number, end: number): void
  described(fields: readonly FieldDescription[]): void
  dataRow(bytes: Buffer, start: number, end: number): void
  /** A row of so many bytes, which are many, begins. False: it is skipped. */
  rowBegins(bytes: number): boolean
  /** A row that is longer than the reader's limit was skipped. */
  rowTooLong(bytes: number): void
  complete(tag: string): void
  suspended(): void
  failed(error: DatabaseError): void
  /** ReadyForQuery, outside of a transaction. True: it was rolled back whole for a stale statement, send it again. */
  finished(): boolean
  /** What was written will not be sent; it waits for another connection. */
  unsent(): void
  /** The end of it: the connection is gone, or there was none in time. */
  reject(error: Error): void
}
