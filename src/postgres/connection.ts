/**
 * A session in use: pending requests are sent in a row, and responses arrive in that order. A state machine
 * over two facts: which request is at the head, and whether anything unexpected has happened, which closes
 * the connection.
 */

import { CommandBatch } from './batch.ts'
import { type CancelOutcome, requestCancel } from './cancel.ts'
import { Canceller } from './canceller.ts'
import type { Carrier } from './dispatcher.ts'
import { DatabaseError, ProtocolError, refusal } from './errors.ts'
import { NO_FIELDS, readFields } from './fields.ts'
import { Fifo } from './fifo.ts'
import { type Flow, NO_FLOW } from './flow.ts'
import type { PendingRequest, RequestChannel } from './pending-request.ts'
import { PreparedStatements } from './prepared-statements.ts'
import {
  BACKEND,
  decodeBackend,
  decodeCommandTag,
  decodeErrorFields,
  decodeStatus,
  type ErrorFields,
} from './protocol/backend.ts'
import { writeClose, writeTerminate } from './protocol/frontend.ts'
import { describeType } from './protocol/reader.ts'
import type { Writer } from './protocol/writer.ts'
import { type Measured, ServiceTimes } from './service-times.ts'
import type { Connected } from './startup.ts'
import type { ServerSession } from './startup-conversation.ts'
import type { ConnectionTarget } from './target.ts'
import type { Command } from './types.ts'
import { connectionLost, type Wire, type WireSink } from './wire.ts'

/** A statement that has run longer than this is slow; nothing more is sent behind it. */
const SLOW_MS = 5

/** A change was attempted where only reads are possible. */
const READ_ONLY = '25006'
/**
 * A session with a read-only server is replaced after a refused change, because the next one may reach the
 * new primary: a DNS name or a proxy can change. The minimum age limits reconnections that clients can cause.
 */
const READ_ONLY_MS = 1_000

/** The options of a connection. */
export interface ConnectionOptions {
  readonly statementCacheSize: number
  readonly pipelineDepth: number
  readonly clock: () => number
}

/** Receives the events of a connection. */
export interface ConnectionListener {
  /**
   * The request is finished or, if `again`, must be sent once more. `ms`: how long it was the head of the
   * line.
   */
  finished(connection: Connection, exchange: PendingRequest, ms: number, again: boolean): void
  /** Reports how long the server took for finished requests. */
  measured(times: readonly Measured[]): void
  /** The connection can take work again. */
  available(connection: Connection): void
  /**
   * The connection is closed, in an orderly way if `reason` is null. Sent requests were rejected (`failed` of
   * them); `unsent` ones have certainly not run.
   */
  closed(connection: Connection, reason: Error | null, failed: number, unsent: readonly PendingRequest[]): void
  cancelRequested(outcome: CancelOutcome): void
  notification(channel: string, payload: string): void
}

/** A session with its pending requests. */
export class Connection implements WireSink, RequestChannel, Carrier {
  readonly session: ServerSession
  /** The target with the host of this session. */
  readonly target: ConnectionTarget
  owner: Flow | null = null
  readonly statements: PreparedStatements
  readonly #options: ConnectionOptions
  readonly #listener: ConnectionListener
  readonly #wire: Wire
  readonly #pending = new Fifo<PendingRequest>()
  /** How many of the last entries of `#pending` the server cannot have received. */
  #unsent = 0
  #expectedMs = 0
  readonly #openedAt: number
  /** The time at which the first pending request became the first in the queue or, if later, was sent. */
  #since: number
  readonly #serviceTimes = new ServiceTimes()
  #exclusive = false
  /** Batches that the connection sent by itself, to run the owed commands of failed requests. */
  readonly #own = new WeakSet<PendingRequest>()
  #cancelled = 0
  /** The request that was interrupted. */
  #overdue: PendingRequest | null = null
  readonly #canceller: Canceller
  #retired = false
  /**
   * Parameters whose value differs from the session's start, because a statement changed them for later
   * requests.
   */
  readonly #drifted = new Set<string>()

  constructor(connected: Connected, options: ConnectionOptions, listener: ConnectionListener) {
    this.session = connected.session
    this.target = connected.target
    this.#wire = connected.wire
    this.#options = options
    this.#listener = listener
    this.#since = options.clock()
    this.#openedAt = this.#since
    this.statements = new PreparedStatements(options.statementCacheSize)
    this.#canceller = new Canceller({
      target: this.target,
      session: this.session,
      canCancel: () => this.#mayCancel(),
      requested: outcome => this.#cancelRequested(outcome),
    })
    this.#wire.sink = this
  }

  get depth(): number {
    return this.#pending.length
  }

  get streaming(): boolean {
    return this.#exclusive
  }

  get isClosed(): boolean {
    return this.#wire.closed
  }

  /** False while a cancel request in progress could cancel whatever comes next. */
  get isFree(): boolean {
    return this.#pending.length === 0 && !this.#canceller.inFlight
  }

  /** True if the server reported that it is a standby, or that transactions are read-only by default. */
  get #isReadOnly(): boolean {
    const { parameters } = this.session
    return parameters.get('in_hot_standby') === 'on' || parameters.get('default_transaction_read_only') === 'on'
  }

  /** When it became idle; meaningful only while `depth` is 0. */
  get idleSince(): number {
    return this.#since
  }

  get accepting(): boolean {
    return (
      !this.#exclusive &&
      !this.#retired &&
      this.#cancelled === 0 &&
      !this.#canceller.inFlight &&
      this.#pending.length < this.#options.pipelineDepth &&
      !this.#wire.congested &&
      !this.#wire.closed
    )
  }

  /** The expected wait of something sent now; Infinity behind a slow statement. */
  waitMs(now: number): number {
    const head = this.#pending.peek()
    if (head === undefined) return 0
    const running = this.runningMs(now)
    if (running > SLOW_MS) return Infinity
    return Math.max(0, this.#expectedMs - Math.min(running, head.expectedMs))
  }

  /** How long the head of the line has been running. */
  runningMs(now: number): number {
    return this.#pending.length > this.#unsent ? now - this.#since : 0
  }

  /** How long the response to the head of the line has been due. */
  unansweredMs(now: number): number {
    return this.#pending.length > this.#unsent
      ? (this.#pending.peek() as PendingRequest).unansweredMs(now, this.#since)
      : 0
  }

  /**
   * Sends a request.
   * @throws RangeError or ProtocolError if encoding fails (a zero byte in text, too many parameters); nothing
   * was sent then.
   */
  send(exchange: PendingRequest): void {
    for (const name of this.statements.takeToClose()) writeClose(this.writer, 'statement', name)
    const mark = this.writer.length
    try {
      exchange.write(this)
    } catch (error) {
      this.writer.truncate(mark)
      throw error
    }
    this.#pending.push(exchange)
    this.#unsent++
    this.#expectedMs += exchange.expectedMs
    if (exchange.exclusive) this.#exclusive = true
    if (exchange.cancelled) this.#cancelled++
    this.#wire.flushSoon()
  }

  /** Takes nothing more, and closes when all pending requests are finished. */
  retire(): void {
    this.#retired = true
    this.#endIfDone()
  }

  destroy(reason: Error): void {
    this.#wire.destroy(reason)
  }

  /** True if `interrupt` was called for the running statement. */
  get isOverdue(): boolean {
    return this.#overdue !== null && this.#overdue === this.#pending.peek()
  }

  /**
   * Cancels the running statement although its caller is still waiting. Has no effect while others were sent
   * behind it.
   */
  interrupt(): void {
    this.#overdue = this.#pending.peek() ?? null
    this.#canceller.consider()
  }

  /**
   * Gives up a connection that does not respond. Its session gets nothing more, so the cancel request can
   * only hit what it was running.
   */
  abandon(reason: Error): void {
    const { session } = this
    this.destroy(reason)
    if (session.processId === 0) return
    void requestCancel(this.target, session).then(outcome => this.#listener.cancelRequested(outcome))
  }

  // --- Channel ---

  get writer(): Writer {
    return this.#wire.writer
  }

  flushSoon(): void {
    this.#wire.flushSoon()
  }

  pause(): void {
    this.#wire.pause()
  }

  resume(): void {
    this.#wire.resume()
  }

  cancel(): void {
    this.#cancelled++
    this.#canceller.consider()
  }

  // --- WireSink ---

  message(type: number, bytes: Buffer, start: number, end: number): void {
    switch (type) {
      case BACKEND.dataRow:
        this.#head(type).dataRow(bytes, start, end)
        break
      case BACKEND.bindComplete:
        this.#head(type)
        break
      case BACKEND.commandComplete:
        this.#head(type).complete(decodeCommandTag(bytes, start, end))
        break
      case BACKEND.readyForQuery:
        this.#ready(bytes, start, end)
        break
      case BACKEND.parseComplete:
        this.#head(type).parseComplete()
        break
      case BACKEND.parameterDescription:
        this.#head(type).parametersDescribed(bytes, start, end)
        break
      case BACKEND.rowDescription:
        this.#head(type).described(readFields(bytes, start, end))
        break
      case BACKEND.noData:
        this.#head(type).described(NO_FIELDS)
        break
      case BACKEND.emptyQuery:
        this.#head(type).complete('')
        break
      case BACKEND.portalSuspended:
        this.#head(type).suspended()
        break
      case BACKEND.error:
        this.#error(new DatabaseError(decodeErrorFields(bytes, start, end)))
        break
      case BACKEND.closeComplete:
        break
      case BACKEND.notice:
        this.#notice(decodeErrorFields(bytes, start, end))
        break
      case BACKEND.copyIn:
        if (this.#head(type).takesInput !== true) this.#copy(this.#head(type))
        break
      case BACKEND.copyOut:
      case BACKEND.copyBoth:
        this.#copy(this.#head(type))
        break
      default:
        this.#rare(type, bytes, start, end)
    }
  }

  tooLong(type: number, bodyBytes: number): void {
    if (type !== BACKEND.dataRow)
      throw new ProtocolError(`${describeType(type)} has ${bodyBytes} bytes, more than the limit`)
    this.#head(type).rowTooLong(bodyBytes)
  }

  begins(type: number, bodyBytes: number): boolean {
    return type !== BACKEND.dataRow || this.#head(type).rowBegins(bodyBytes)
  }

  flushed(): void {
    if (this.#unsent === this.#pending.length) {
      this.#since = this.#options.clock()
      this.#serviceTimes.begin(this.#since)
    }
    this.#unsent = 0
    if (this.#cancelled > 0) this.#canceller.consider()
  }

  chunkRead(): void {
    const measured = this.#serviceTimes.chunkRead(this.#pending.length === this.#unsent)
    if (measured.length > 0) this.#listener.measured(measured)
  }

  closed(reason: Error): void {
    this.#canceller.close()
    const pending = this.#pending.drain()
    const sent = pending.slice(0, pending.length - this.#unsent)
    const unsent = pending.slice(pending.length - this.#unsent)
    this.#unsent = 0
    const error = connectionLost(true, reason)
    for (const exchange of sent) exchange.reject(error)
    for (const exchange of unsent) exchange.unsent()
    const others = unsent.filter(exchange => !this.#own.has(exchange))
    this.#listener.closed(this, reason, sent.length, others)
  }

  #mayCancel(): boolean {
    if (this.#unsent > 0 || this.#pending.length === 0) return false
    return this.#cancelled === this.#pending.length || (this.#pending.length === 1 && this.isOverdue)
  }

  #head(type: number): PendingRequest {
    const head = this.#pending.length > this.#unsent ? this.#pending.peek() : undefined
    if (head === undefined) throw new ProtocolError(`the server sent ${describeType(type)} without a pending request`)
    return head
  }

  #ready(bytes: Buffer, start: number, end: number): void {
    const exchange = this.#head(BACKEND.readyForQuery)
    const status = decodeStatus(bytes, start, end)
    if (status !== 'idle' && exchange.withinBlock !== undefined) {
      exchange.withinBlock()
      return
    }
    if (status !== 'idle') {
      throw new ProtocolError(
        `a statement left its connection inside a transaction (${status}); a batch ` +
          'already is a transaction, so BEGIN must not be sent',
      )
    }
    const again = exchange.finished()
    this.#pending.shift()
    this.#overdue = null
    this.#expectedMs = this.#pending.length === 0 ? 0 : this.#expectedMs - exchange.expectedMs
    const now = this.#options.clock()
    const ms = now - this.#since
    this.#since = now
    if (exchange.exclusive) {
      this.#exclusive = false
      this.#serviceTimes.discard(now)
    } else {
      this.#serviceTimes.finished(exchange, now)
    }
    if (exchange.cancelled) this.#cancelled--
    if (this.#cancelled > 0) this.#canceller.consider()
    if (this.#drifted.size > 0) this.#retired = true
    if (exchange.owed.length > 0) this.#settle(exchange.owed)
    this.#listener.finished(this, exchange, ms, again)
    if (this.#retired) this.#endIfDone()
  }

  /**
   * Runs the commands that a failed request owes before anything new is sent. If they fail, the connection is
   * closed.
   */
  #settle(owed: readonly Command[]): void {
    if (this.#retired) return
    const unit = new CommandBatch(this.owner ?? NO_FLOW, owed, () => {})
    unit.result.catch(error => this.destroy(error))
    this.#own.add(unit)
    this.send(unit)
  }

  /**
   * Closes the connection if the wait for a synchronous standby was cancelled: the commit has succeeded, but
   * a failover can lose it, so it must not be confirmed. The text of the warning is translated, so the
   * warning is recognized by the routine in the server that reports it.
   */
  #notice(fields: ErrorFields): void {
    if (fields.get('R') === 'SyncRepWaitForLSN') this.#wire.destroy(new DatabaseError(fields))
  }

  #error(error: DatabaseError): void {
    if (error.sqlstate === READ_ONLY && this.#isReadOnly && this.#options.clock() - this.#openedAt > READ_ONLY_MS) {
      this.#retired = true
    }
    // The server closes the connection after FATAL, so the error applies to everything behind the head as
    // well.
    if (error.severity !== 'ERROR' || this.#pending.length === this.#unsent) this.#wire.destroy(error)
    else (this.#pending.peek() as PendingRequest).failed(error)
  }

  #copy(head: PendingRequest): void {
    const error = refusal('0A000', 'COPY to or from the client is not supported', 'Use SELECT or INSERT.')
    this.#pending.shift()
    head.reject(error)
    this.#wire.destroy(error)
  }

  #rare(type: number, bytes: Buffer, start: number, end: number): void {
    const message = decodeBackend(type, bytes, start, end)
    if (message.kind === 'notification') this.#listener.notification(message.channel, message.payload)
    else if (message.kind === 'parameterStatus') this.#parameter(message.name, message.value)
    else throw new ProtocolError(`the server sent ${message.kind} in an open session`)
  }

  /**
   * Reports a parameter if its value at the end of a transaction differs from the last reported one: it was
   * not transaction-local.
   */
  #parameter(name: string, value: string): void {
    if (this.session.parameters.get(name) === value) this.#drifted.delete(name)
    else this.#drifted.add(name)
    if (this.#drifted.size > 0 && this.#pending.length === 0) this.retire()
  }

  #endIfDone(): void {
    if (this.#pending.length > 0 || this.#canceller.inFlight || this.#wire.closed) return
    this.#canceller.close()
    writeTerminate(this.writer)
    this.#wire.end()
    this.#listener.closed(this, null, 0, [])
  }

  #cancelRequested(outcome: CancelOutcome): void {
    this.#listener.cancelRequested(outcome)
    // It could still cancel whatever comes next.
    if (outcome === 'unknown') this.#retired = true
    if (this.#retired) this.#endIfDone()
    else if (this.accepting) this.#listener.available(this)
  }
}
