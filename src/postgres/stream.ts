/**
 * Streams rows through a portal, block by block: Execute with a row limit and Flush, the next Execute when
 * the reader has taken the last block, Sync at the end (PostgreSQL manual, 54.2.3). One block is fetched
 * ahead, so that database and reader work concurrently. Blocks grow from a few rows to `batchRows` as fast as
 * they arrive. At most two blocks are in memory, and never much more than `READY_BYTES_MAX` waiting.
 */
import { type DatabaseError, ProtocolError, refusal, UnavailableError } from './errors.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import { NOTHING_OWED, owedOf, type PendingRequest, type RequestChannel } from './pending-request.ts'
import { decodeDataRow } from './protocol/backend.ts'
import { writeExecute, writeFlush, writeSync } from './protocol/frontend.ts'
import { MESSAGE_BYTES_MAX } from './protocol/reader.ts'
import { HeldBytes, type ResultBudget } from './result-budget.ts'
import { CommandPlan, confirmDescription, confirmParse } from './statement-plan.ts'
import type { Command, ResultRow, ServerTime } from './types.ts'

/**
 * Limit on the bytes of rows waiting to be taken; the socket is then paused, and a block may arrive in
 * pieces.
 */
export const READY_BYTES_MAX: number = 1024 * 1024

/**
 * Rows of the first block, which is small so that the first rows of a slow statement do not wait for a
 * thousand others.
 */
const FIRST_ROWS = 16
/**
 * Target duration of a block: slower blocks become smaller, faster ones larger. PostgreSQL sends nothing
 * before a block is complete or fills its buffer.
 */
const BATCH_MS = 100

interface Waiter {
  resolve(result: IteratorResult<readonly ResultRow[]>): void
  reject(error: unknown): void
}

/** The part of the pool that a stream uses. */
export interface StreamHost {
  /** How long a reader may take nothing before its stream is ended. */
  readonly readerIdleMs: number
  start(stream: Stream): void
  /** Removes a stream that has no connection yet from its queue and rejects it. */
  drop(stream: Stream): void
  /** Monotonic milliseconds. */
  clock(): number
  readonly budget: ResultBudget
}

type State = 'new' | 'waiting' | 'running' | 'ended'

/** A stream of rows. */
export class Stream implements PendingRequest, AsyncIterableIterator<readonly ResultRow[]> {
  readonly exclusive = true
  readonly readsOnly = true
  readonly flow: Flow
  readonly latencyKey: string
  readonly serverTime: ServerTime
  expectedMs = 0
  deadline = 0
  readonly #host: StreamHost
  readonly #before: readonly Command[]
  readonly #command: Command
  readonly #batchRows: number
  readonly #after: readonly Command[]
  #state: State = 'new'
  #channel: RequestChannel | null = null
  #plan: CommandPlan | null = null
  /** Rows requested by the last Execute, and when. */
  #requested = 0
  #askedAt = 0
  /** When the server's turn began: something was requested, or space was made for more of the response. */
  #serverSince = 0
  /** How long the last complete block took. */
  #lastMs = 0
  /** Completed commands of `#before`. */
  #passed = 0
  #tags: string[] = []
  #ready: ResultRow[] = []
  #readyBytes = 0
  readonly #held: HeldBytes
  /** True if `#ready` holds all rows of the current block. */
  #boundary = false
  #paused = false
  /** True if an Execute is pending. */
  #fetching = false
  #synced = false
  #delivered = false
  #cancelled = false
  #failure: Error | null = null
  /** True if the server refused a command and skipped the rest. */
  #refused = false
  /** Set when neither rows nor errors are needed any more; the reader receives this error, if any. */
  #abandoned: { readonly error: Error | null } | null = null
  #retried = false
  #waiter: Waiter | null = null
  #onEnd: (() => void)[] = []
  #idleTimer: NodeJS.Timeout | null = null

  constructor(
    host: StreamHost,
    flow: Flow,
    before: readonly Command[],
    command: Command,
    batchRows: number,
    after: readonly Command[],
    worked: ServerTime = { ms: 0 },
  ) {
    if (!Number.isInteger(batchRows) || batchRows < 1)
      throw new RangeError(`batchRows is ${batchRows}; it must be at least 1`)
    this.#host = host
    this.flow = flow
    this.#before = before
    this.#command = command
    this.#batchRows = batchRows
    this.#after = after
    this.latencyKey = command.text
    this.serverTime = worked
    this.#held = new HeldBytes(host.budget, flow)
  }

  get cancelled(): boolean {
    return this.#cancelled
  }

  get owed(): readonly Command[] {
    return this.#refused ? owedOf(this.#after) : NOTHING_OWED
  }

  // --- AsyncIterableIterator ---

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<readonly ResultRow[]>> {
    if (this.#waiter !== null)
      return Promise.reject(new Error('next() was called before the previous next() had resolved'))
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject }
      if (this.#state === 'new') {
        this.#state = 'waiting'
        this.#host.start(this)
      } else {
        this.#deliver()
      }
    })
  }

  /** Resolves when the connection is free again; a statement in the middle of a block is cancelled. */
  async return(): Promise<IteratorResult<readonly ResultRow[]>> {
    await this.#abandon(null)
    return { done: true, value: undefined }
  }

  async throw(error?: unknown): Promise<IteratorResult<readonly ResultRow[]>> {
    await this.#abandon(null)
    throw error
  }

  // --- Exchange ---

  /** Between blocks, and while the socket is paused, the server waits for the reader. */
  unansweredMs(now: number): number {
    return (this.#fetching || this.#synced) && !this.#paused ? this.serverTime.ms + now - this.#serverSince : 0
  }

  write(channel: RequestChannel): void {
    const plan = new CommandPlan()
    const { writer, statements } = channel
    this.#state = 'running'
    this.#channel = channel
    this.#plan = plan
    this.#passed = 0
    this.#tags = []
    this.#failure = null
    this.#refused = false
    this.#synced = false
    this.#fetching = true
    try {
      for (const command of this.#before) plan.write(command, 0, writer, statements)
      plan.write(this.#command, this.#ask(FIRST_ROWS), writer, statements)
      writeFlush(writer)
    } catch (error) {
      plan.forgetUnconfirmed(statements)
      throw error
    }
  }

  parseComplete(): void {
    confirmParse(this.#plan)
  }

  parametersDescribed(): void {
    // Parameters are sent as text, so their types are not needed.
  }

  described(fields: readonly FieldDescription[]): void {
    confirmDescription(this.#plan, fields)
  }

  dataRow(bytes: Buffer, start: number, end: number): void {
    if (this.#passed < this.#before.length || !this.#fetching || this.#abandoned !== null) return
    this.#ready.push(decodeDataRow(bytes, start, end))
    this.#readyBytes += end - start
    if (this.#readyBytes < READY_BYTES_MAX) return
    this.#held.grow(this.#readyBytes, false)
    if (this.#waiter !== null) {
      this.#deliver()
    } else if (!this.#paused) {
      this.#paused = true
      this.#channel?.pause()
      this.#watchReader()
    }
  }

  /** Limits the waiting rows to `READY_BYTES_MAX` whatever the budget; a single row can be larger. */
  rowBegins(bytes: number): boolean {
    if (this.#passed < this.#before.length || !this.#fetching || this.#abandoned !== null) return false
    const whole = this.#readyBytes + bytes
    const refused = this.#held.grow(whole, whole > READY_BYTES_MAX)
    if (refused === null) return true
    this.#stop(refused)
    return false
  }

  rowTooLong(bytes: number): void {
    this.#stop(refusal('54000', `a row has ${bytes} bytes; the limit is ${MESSAGE_BYTES_MAX}`, 'Select fewer columns.'))
  }

  complete(tag: string): void {
    this.#tags.push(tag)
    if (this.#passed < this.#before.length) {
      this.#passed++
      return
    }
    // The rows are complete; this is the completion of a later command.
    if (!this.#fetching) return
    this.#fetching = false
    this.#boundary = true
    this.#sync()
    this.#deliver()
  }

  suspended(): void {
    if (!this.#fetching || this.#passed < this.#before.length) {
      throw new ProtocolError('the server suspended a portal that has no row limit')
    }
    this.#fetching = false
    this.#boundary = true
    this.#lastMs = this.#host.clock() - this.#askedAt
    this.#deliver()
  }

  failed(error: DatabaseError): void {
    this.#failure ??= error
    this.#refused = true
    this.#fetching = false
    this.#sync()
  }

  finished(): boolean {
    const channel = this.#channel as RequestChannel
    const plan = this.#plan as CommandPlan
    plan.forgetUnconfirmed(channel.statements)
    if (this.#failure !== null && 'sqlstate' in this.#failure) {
      const stale = plan.isStale(this.#failure as DatabaseError, this.#tags, channel.statements)
      if (stale && !this.#retried && !this.#delivered && this.#abandoned === null) {
        this.#retried = true
        this.#state = 'waiting'
        return true
      }
    }
    this.#end()
    return false
  }

  unsent(): void {
    this.#state = 'waiting'
    this.#channel = null
  }

  reject(error: Error): void {
    this.#failure ??= error
    this.#end()
  }

  // // --- internals ---

  /** Passes what is available to the reader, if one is waiting. */
  #deliver(): void {
    const waiter = this.#waiter
    const full = this.#boundary || this.#readyBytes >= READY_BYTES_MAX
    if (waiter !== null && this.#ready.length > 0 && (full || this.#state === 'ended')) {
      const rows = this.#ready
      this.#ready = []
      this.#readyBytes = 0
      this.#held.releaseSoon()
      this.#boundary = false
      this.#delivered = true
      this.#waiter = null
      this.#fetchMore()
      waiter.resolve({ done: false, value: rows })
    } else if (waiter !== null && this.#state === 'ended') {
      this.#waiter = null
      const failure = this.#failure
      this.#failure = null
      if (failure === null) waiter.resolve({ done: true, value: undefined })
      else waiter.reject(failure)
    } else if (this.#boundary && this.#ready.length === 0 && !this.#synced) {
      // An empty block that is not the end: request the next.
      this.#boundary = false
      this.#fetchMore()
    }
    this.#watchReader()
  }

  #fetchMore(): void {
    this.#awaitServer()
    if (this.#fetching || this.#synced || this.#state !== 'running') return
    const channel = this.#channel as RequestChannel
    this.#fetching = true
    writeExecute(
      channel.writer,
      this.#ask(this.#lastMs > BATCH_MS ? Math.ceil(this.#requested / 2) : this.#requested * 2),
    )
    writeFlush(channel.writer)
    channel.flushSoon()
  }

  #awaitServer(): void {
    this.#serverSince = this.#host.clock()
    if (!this.#paused) return
    this.#paused = false
    this.#channel?.resume()
  }

  #ask(rows: number): number {
    this.#requested = Math.min(rows, this.#batchRows)
    this.#askedAt = this.#host.clock()
    this.#serverSince = this.#askedAt
    return this.#requested
  }

  #sync(): void {
    if (this.#synced) return
    const channel = this.#channel as RequestChannel
    this.#synced = true
    this.#serverSince = this.#host.clock()
    if (!this.#refused)
      for (const command of this.#after) this.#plan?.write(command, 0, channel.writer, channel.statements)
    writeSync(channel.writer)
    channel.flushSoon()
  }

  /** Ends the stream with an error for the reader. */
  #stop(error: Error): void {
    void this.#abandon(this.#failure ?? error)
  }

  #abandon(error: Error | null): Promise<void> {
    this.#abandoned ??= { error }
    this.#ready = []
    this.#readyBytes = 0
    this.#held.release()
    if (this.#state === 'new' || this.#state === 'ended') {
      this.#state = 'ended'
      this.#failure = null
      return Promise.resolve()
    }
    const ended = new Promise<void>(resolve => this.#onEnd.push(resolve))
    if (this.#state === 'waiting') {
      this.#host.drop(this)
      return ended
    }
    this.#awaitServer()
    if (!this.#cancelled) {
      const cancel = this.#fetching
      this.#sync()
      if (cancel) {
        this.#cancelled = true
        this.#channel?.cancel()
      }
    }
    return ended
  }

  #end(): void {
    this.#state = 'ended'
    if (this.#abandoned !== null) this.#failure = this.#abandoned.error
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer)
    this.#idleTimer = null
    for (const resolve of this.#onEnd.splice(0)) resolve()
    this.#deliver()
  }

  /** Starts the timer that runs while rows are available and not taken. */
  #watchReader(): void {
    const idle = this.#waiter === null && this.#state === 'running' && (this.#boundary || this.#paused)
    if (!idle) {
      if (this.#idleTimer !== null) clearTimeout(this.#idleTimer)
      this.#idleTimer = null
      return
    }
    const { readerIdleMs } = this.#host
    this.#idleTimer ??= setTimeout(() => {
      this.#idleTimer = null
      const message = `the stream was not read for ${readerIdleMs} ms, so its connection was released`
      this.#stop(new UnavailableError(message, true))
    }, readerIdleMs)
  }
}
