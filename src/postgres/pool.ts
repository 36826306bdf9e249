/**
 * The connection pool: opens connections when needed, reopens lost ones with growing pauses, and closes them.
 * The dispatcher decides which connection takes a request.
 */
import type { Gss } from './auth/gss-attempts.ts'
import { CommandBatch } from './batch.ts'
import type { CancelOutcome } from './cancel.ts'
import { Connection, type ConnectionListener } from './connection.ts'
import { ConnectionFactory } from './connection-factory.ts'
import { DescribeRequest } from './describe-request.ts'
import { Dispatcher } from './dispatcher.ts'
import { CancelledError, type ConnectError, UnavailableError, UnresponsiveError } from './errors.ts'
import type { PendingRequest } from './pending-request.ts'
import { type ResultBudget, UNLIMITED_BUDGET } from './result-budget.ts'
import type { Measured } from './service-times.ts'
import type { Connected } from './startup.ts'
import { Stream, type StreamHost } from './stream.ts'
import { type Address, type ConnectionTarget, describeAddress, isSameAddress } from './target.ts'
import { HeldTransaction, type TransactionHost } from './transaction.ts'
import type {
  Command,
  Database,
  Isolation,
  OpenTransaction,
  Result,
  ResultRow,
  RunningRequest,
  ServerTime,
  StatementDescription,
} from './types.ts'

/** Idle time after which a connection is closed; the last one stays open. */
const IDLE_MS_MAX = 300_000
const SWEEP_MS = 250

/**
 * A transaction pooler assigns a session to another client at ReadyForQuery, even if more has already been
 * sent after the Sync: one client's request would be answered to another. So nothing is sent before the last
 * response has arrived.
 */
const THROUGH_POOLER = { statementCacheSize: 0, pipelineDepth: 1 } as const

/** The options of a pool. */
export interface PoolOptions {
  readonly target: ConnectionTarget
  readonly maxConnections?: number
  /** Connections that a flow may use while no other flow has any; by default half of them. */
  readonly flowConnectionsMax?: number
  /** Concurrent streams of a flow; by default one less than its connections. */
  readonly flowStreamsMax?: number
  /** How long a request may wait for a connection. */
  readonly acquireTimeoutMs?: number
  /** Limit on the requests pending on one connection. */
  readonly pipelineDepth?: number
  /** Limit on the requests waiting for a connection. */
  readonly waitingMax?: number
  /** Limit on the prepared statements per connection. */
  readonly statementCacheSize?: number
  /**
   * False behind a transaction pooler: every statement is parsed each time, nothing is kept in the session,
   * and a connection carries one request at a time.
   */
  readonly preparedStatements?: boolean
  /**
   * A statement, or a block of a stream, that takes longer is cancelled. To be set longer than any
   * statement_timeout in use: this is for servers that do not observe theirs. 0: never.
   */
  readonly cancelAfterMs?: number
  /**
   * A connection on which one takes longer is destroyed, because a half-open socket reports no error. Longer
   * than `cancelAfterMs`. 0: never.
   */
  readonly answerTimeoutMs?: number
  /**
   * A stream whose reader takes nothing for this long is ended, because it holds a connection and a snapshot.
   */
  readonly readerIdleMs?: number
  /** Limit on the bytes of results in memory; unlimited by default. */
  readonly resultBudget?: ResultBudget
  /** Limit on the bytes of one result, which is kept in memory. Not for the gateway's own statements. */
  readonly resultBytesMax?: number
  /** Required if the target allows Kerberos. */
  readonly gss?: Gss | null
  readonly onEvent?: (event: PoolEvent) => void
  /** Monotonic milliseconds. */
  readonly clock?: () => number
  /** A random number from 0 to 1, for the variation of delays. */
  readonly random?: () => number
}

/** An event of the pool. */
export type PoolEvent =
  | { readonly kind: 'connected'; readonly processId: number; readonly tookMs: number }
  | {
      readonly kind: 'connect-failed'
      readonly error: ConnectError
      readonly failures: number
      readonly retryInMs: number
    }
  /**
   * `failed` requests had been sent and were rejected; `requeued` ones had not been sent and go to another
   * connection.
   */
  | { readonly kind: 'lost'; readonly error: Error; readonly failed: number; readonly requeued: number }
  /** Another host of the target has become the primary. */
  | { readonly kind: 'host-changed'; readonly from: string; readonly to: string }
  /** A prepared statement had become invalid; the batch was sent again. */
  | { readonly kind: 'retried' }
  | { readonly kind: 'cancel-requested'; readonly outcome: CancelOutcome }

/** Figures of the pool. */
export interface PoolStats {
  readonly open: number
  readonly opening: number
  readonly idle: number
  readonly busy: number
  readonly streaming: number
  /** Requests pending on connections. */
  readonly inFlight: number
  /** Requests waiting for a connection. */
  readonly waiting: number
  /** Flows with waiting requests. */
  readonly waitingFlows: number
  /**
   * Since the start: requests that waited because their flow had used up its share while a connection was
   * free.
   */
  readonly held: number
  /** Since the start: streams that waited because their flow had reached its limit. */
  readonly streamsHeld: number
  /** Since the start: finished requests, successful or not. */
  readonly finished: number
  /** Since the start: requests that timed out waiting for a connection. */
  readonly timedOut: number
  /** Since the start: connections that broke. */
  readonly lost: number
}

/** A pool of connections. */
export interface Pool extends Database {
  /**
   * Resolves once a connection works, however long that takes. Rejects with `ConnectError` when retrying
   * cannot help, and with `UnavailableError` when the pool is closed first.
   */
  ready(): Promise<void>
  stats(): PoolStats
  /** Replaces the open connections, each when its requests are finished. */
  renew(): void
  /**
   * Accepts nothing new, finishes what is in flight and waiting, then closes; after the deadline, the rest is
   * rejected.
   */
  close(options: { readonly deadlineMs: number }): Promise<void>
}

/** Creates a pool, which opens no connection before the first `run`, `stream` or `ready`. */
export function createPool(options: PoolOptions): Pool {
  return new PostgresPool(options)
}

class PostgresPool implements Pool, ConnectionListener {
  readonly #options: Required<PoolOptions>
  readonly #connections: Connection[] = []
  readonly #dispatcher: Dispatcher
  readonly #opener: ConnectionFactory
  readonly #sweep: NodeJS.Timeout
  readonly #streamHost: StreamHost
  readonly #transactionHost: TransactionHost
  #readyWaiters: { resolve(): void; reject(error: Error): void }[] = []
  /** The host of the newest connection, if only one host is the primary. */
  #host: Address | null = null
  #closing = false
  #onDrained: (() => void) | null = null
  #finished = 0
  #timedOut = 0
  #lost = 0

  constructor(given: PoolOptions) {
    const options: Required<PoolOptions> = {
      maxConnections: 10,
      flowConnectionsMax: Math.ceil((given.maxConnections ?? 10) / 2),
      flowStreamsMax: Math.max(1, Math.ceil((given.maxConnections ?? 10) / 2) - 1),
      acquireTimeoutMs: 5_000,
      pipelineDepth: 128,
      waitingMax: 10_000,
      statementCacheSize: 256,
      preparedStatements: true,
      cancelAfterMs: 0,
      answerTimeoutMs: 0,
      readerIdleMs: 60_000,
      resultBudget: UNLIMITED_BUDGET,
      resultBytesMax: 67_108_864,
      gss: null,
      onEvent: () => {},
      clock: () => performance.now(),
      random: Math.random,
      ...given,
    }
    const { target, preparedStatements, gss, clock, random, waitingMax, acquireTimeoutMs } = options
    this.#options = options
    this.#streamHost = {
      readerIdleMs: options.readerIdleMs,
      start: stream => this.#submit(stream),
      drop: this.#drop,
      clock,
      budget: options.resultBudget,
    }
    this.#transactionHost = {
      drop: this.#drop,
      clock,
      budget: options.resultBudget,
      resultBytesMax: options.resultBytesMax,
    }
    this.#dispatcher = new Dispatcher({
      ...{ size: options.maxConnections, flowMax: options.flowConnectionsMax, waitingMax, acquireTimeoutMs, clock },
      flowStreamsMax: options.flowStreamsMax,
      budget: options.resultBudget,
      grow: () => this.#grow(),
      expired: exchange => this.#expired(exchange),
    })
    this.#opener = new ConnectionFactory({
      ...{ target, throughPooler: !preparedStatements, gss, clock, random },
      opened: (connected, tookMs) => this.#adopt(connected, tookMs),
      failed: (error, failures, retryInMs) => this.#openFailed(error, failures, retryInMs),
      isWanted: () => this.#dispatcher.waiting > 0 || this.#readyWaiters.length > 0,
    })
    this.#sweep = setInterval(() => this.#inspect(), SWEEP_MS)
    this.#sweep.unref()
  }

  run(commands: readonly Command[], worked?: ServerTime): RunningRequest<readonly Result[]> {
    const flow = this.#dispatcher.flowOf(commands[0]?.flow)
    const { resultBudget, resultBytesMax } = this.#options
    const unit = new CommandBatch(flow, commands, this.#drop, worked, resultBudget, resultBytesMax)
    this.#submit(unit)
    return unit
  }

  describe(before: readonly Command[], text: string, worked?: ServerTime): RunningRequest<StatementDescription> {
    const probe = new DescribeRequest(this.#dispatcher.flowOf(before[0]?.flow), before, text, this.#drop, worked)
    this.#submit(probe)
    return probe
  }

  stream(
    before: readonly Command[],
    command: Command,
    batchRows: number,
    after: readonly Command[] = [],
    worked?: ServerTime,
  ): AsyncIterableIterator<readonly ResultRow[]> {
    return new Stream(
      this.#streamHost,
      this.#dispatcher.flowOf((before[0] ?? command).flow),
      before,
      command,
      batchRows,
      after,
      worked,
    )
  }

  begin(flow: string | undefined, isolation: Isolation | null, worked: ServerTime = { ms: 0 }): OpenTransaction {
    const found = this.#dispatcher.flowOf(flow)
    const transaction = new HeldTransaction(this.#transactionHost, found, isolation, worked)
    this.#submit(transaction)
    return transaction
  }

  ready(): Promise<void> {
    if (this.#connections.length > 0) return Promise.resolve()
    if (this.#closing) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#readyWaiters.push({ resolve, reject })
      this.#grow()
    })
  }

  stats(): PoolStats {
    const inFlight = this.#connections.reduce((sum, connection) => sum + connection.depth, 0)
    const idle = this.#connections.filter(connection => connection.depth === 0).length
    return {
      open: this.#connections.length,
      opening: this.#opener.opening,
      idle,
      busy: this.#connections.length - idle,
      streaming: this.#dispatcher.streams,
      inFlight,
      waiting: this.#dispatcher.waiting,
      waitingFlows: this.#dispatcher.waitingFlows,
      held: this.#dispatcher.held,
      streamsHeld: this.#dispatcher.streamsHeld,
      finished: this.#finished,
      timedOut: this.#timedOut,
      lost: this.#lost,
    }
  }

  renew(): void {
    for (const connection of [...this.#connections]) connection.retire()
  }

  async close({ deadlineMs }: { readonly deadlineMs: number }): Promise<void> {
    this.#closing = true
    for (const waiter of this.#readyWaiters.splice(0)) waiter.reject(closedError())
    await this.#drained(deadlineMs)
    clearInterval(this.#sweep)
    this.#opener.close(closedError())
    for (const connection of [...this.#connections]) {
      if (connection.depth === 0) connection.retire()
      else connection.destroy(closedError())
    }
    // Last, because unsent requests of closed connections return to the queue.
    for (const exchange of this.#dispatcher.drain()) exchange.reject(closedError())
  }

  // --- ConnectionListener ---

  finished(connection: Connection, exchange: PendingRequest, ms: number, again: boolean): void {
    exchange.serverTime.ms += ms
    this.#dispatcher.answered(connection, exchange)
    if (again) {
      this.#options.onEvent({ kind: 'retried' })
      this.#dispatcher.putBack(exchange)
    } else {
      this.#finished++
    }
    this.#dispatcher.dispatch()
    this.#checkDrained()
  }

  measured(times: readonly Measured[]): void {
    this.#dispatcher.learn(times)
    // With the new estimates, a connection may be able to take a waiting request.
    this.#dispatcher.dispatch()
  }

  available(connection: Connection): void {
    this.#dispatcher.available(connection)
    this.#dispatcher.dispatch()
  }

  closed(connection: Connection, reason: Error | null, failed: number, unsent: readonly PendingRequest[]): void {
    const index = this.#connections.indexOf(connection)
    if (index !== -1) this.#connections.splice(index, 1)
    this.#dispatcher.remove(connection)
    if (reason !== null && !this.#opener.closed) {
      this.#lost++
      this.#options.onEvent({ kind: 'lost', error: reason, failed, requeued: unsent.length })
    }
    for (const exchange of unsent.toReversed()) this.#dispatcher.putBack(exchange)
    this.#dispatcher.dispatch()
    this.#checkDrained()
  }

  cancelRequested(outcome: CancelOutcome): void {
    this.#options.onEvent({ kind: 'cancel-requested', outcome })
  }

  notification(): void {
    // Pooled connections do not listen; `listener.ts` has its own connection.
  }

  // // --- assigning work ---

  #submit(exchange: PendingRequest): void {
    if (this.#closing) exchange.reject(closedError())
    else this.#dispatcher.submit(exchange)
  }

  /** Drops a waiting request whose client has disconnected. */
  readonly #drop = (exchange: PendingRequest): void => {
    this.#dispatcher.withdraw(exchange)
    exchange.reject(new CancelledError())
    this.#checkDrained()
  }

  #expired(exchange: PendingRequest): void {
    this.#timedOut++
    const { lastFailure } = this.#opener
    const why = lastFailure?.message ?? 'all are busy'
    const message = `no database connection available within ${this.#options.acquireTimeoutMs} ms: ${why}`
    exchange.reject(new UnavailableError(message, false, lastFailure ?? undefined))
    this.#checkDrained()
  }

  // // --- opening connections ---

  #grow(): void {
    if (this.#connections.length + this.#opener.opening >= this.#options.maxConnections) return
    this.#opener.open(Math.max(1, this.#dispatcher.waiting))
  }

  #adopt(connected: Connected, tookMs: number): void {
    const { preparedStatements, clock, onEvent } = this.#options
    const { statementCacheSize, pipelineDepth } = preparedStatements ? this.#options : THROUGH_POOLER
    const limits = { statementCacheSize, pipelineDepth, clock }
    const connection = new Connection(connected, limits, this)
    this.#leaveFormerHost(connection)
    this.#connections.push(connection)
    if (this.#opener.closed) {
      connection.retire()
      return
    }
    onEvent({ kind: 'connected', processId: connection.session.processId, tookMs })
    for (const waiter of this.#readyWaiters.splice(0)) waiter.resolve()
    this.#dispatcher.add(connection)
  }

  /**
   * Retires the connections to another host if only one host is the primary: sessions with the former primary
   * can remain open, and must take no more requests.
   */
  #leaveFormerHost({ target }: Connection): void {
    const { others, loadBalanceHosts, sessionAttributes } = this.#options.target
    const isOne = sessionAttributes === 'read-write' || sessionAttributes === 'primary'
    if (others.length === 0 || loadBalanceHosts !== 'disable' || !isOne) return
    const former = this.#host
    this.#host = target.address
    if (former === null || isSameAddress(former, target.address)) return
    this.#options.onEvent({ kind: 'host-changed', from: describeAddress(former), to: describeAddress(target.address) })
    for (const connection of [...this.#connections]) {
      if (!isSameAddress(connection.target.address, target.address)) connection.retire()
    }
  }

  #openFailed(error: ConnectError, failures: number, retryInMs: number): void {
    this.#options.onEvent({ kind: 'connect-failed', error, failures, retryInMs })
    if (error.permanent) for (const waiter of this.#readyWaiters.splice(0)) waiter.reject(error)
  }

  // // --- upkeep ---

  #inspect(): void {
    const now = this.#options.clock()
    const { cancelAfterMs, answerTimeoutMs } = this.#options
    for (const connection of [...this.#connections]) {
      const unansweredMs = connection.unansweredMs(now)
      // If this process was late, the response may already be there; it is read before the next inspection.
      const isDue = cancelAfterMs === 0 || connection.isOverdue
      if (answerTimeoutMs > 0 && unansweredMs > answerTimeoutMs && isDue) {
        connection.abandon(new UnresponsiveError(answerTimeoutMs))
      } else if (cancelAfterMs > 0 && unansweredMs > cancelAfterMs) {
        connection.interrupt()
      } else if (connection.depth === 0 && this.#connections.length > 1 && now - connection.idleSince > IDLE_MS_MAX) {
        connection.retire()
      }
    }
  }

  #drained(deadlineMs: number): Promise<void> {
    if (this.#isDrained()) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, deadlineMs)
      this.#onDrained = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #isDrained(): boolean {
    return this.#dispatcher.waiting === 0 && this.#connections.every(connection => connection.depth === 0)
  }

  #checkDrained(): void {
    if (this.#onDrained !== null && this.#isDrained()) this.#onDrained()
  }
}

function closedError(): UnavailableError {
  return new UnavailableError('the database pool is closed', false)
}
