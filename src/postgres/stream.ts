/**
 * Rows through a portal, batch by batch: Execute with a row limit and Flush, the next Execute when the reader has taken
 * the last batch, Sync at the end (PostgreSQL manual, 54.2.3). One batch is fetched ahead, so that the database works
 * while the reader does. Batches grow from a few rows to `batchRows` as fast as they come. Rows in memory: at most two
 * batches, and never much more than `READY_BYTES_MAX` waiting.
 */
import { type DatabaseError, ProtocolError, refusal, UnavailableError } from './errors.ts'
import { type Channel, type Exchange, NOTHING_OWED, owedOf } from './exchange.ts'
import type { FieldDescription } from './fields.ts'
import type { Flow } from './flow.ts'
import { Plan } from './plan.ts'
import { decodeDataRow } from './protocol/backend.ts'
import { writeExecute, writeFlush, writeSync } from './protocol/frontend.ts'
import { MESSAGE_BYTES_MAX } from './protocol/reader.ts'
import { Held, type ResultBudget } from './result-budget.ts'
import type { Command, Row, ServerTime } from './types.ts'

/** When rows of this size wait to be taken, the socket is not read any more; a batch may then arrive in pieces. */
export const READY_BYTES_MAX: number = 1024 * 1024

/** The first batch: small, so that the first rows of a slow statement do not wait for a thousand others. */
const FIRST_ROWS = 16
/** Batches that take longer become smaller, others larger: PostgreSQL sends nothing before a batch is full or fills its buffer. */
const BATCH_MS = 100

interface Waiter {
  resolve(result: IteratorResult<readonly Row[]>): void
  reject(error: unknown): void
}

export interface StreamHost {
  /** A reader that takes nothing for so long loses the stream: its connection and its snapshot are worth more. */
  readonly readerIdleMs: number
  start(stream: Stream): void
  /** It has not been given to a connection yet and does not want one any more: takes it out of its queue and rejects it. */
  drop(stream: Stream): void
  /** Milliseconds, monotonic. */
  clock(): number
  readonly budget: ResultBudget
}

type State = 'new' | 'waiting' | 'running' | 'ended'

export class Stream implements Exchange, AsyncIterableIterator<readonly Row[]> {
  readonly exclusive = true
  readonly readsOnly = true
  readonly flow: Flow
  readonly costKey: string
  readonly worked: ServerTime
  expectedMs = 0
  deadline = 0
  readonly #host: StreamHost
  readonly #before: readonly Command[]
  readonly #command: Command
  readonly #batchRows: number
  readonly #after: readonly Command[]
  #state: State = 'new'
  #channel: Channel | null = null
  #plan: Plan | null = null
  /** Rows that the last Execute asked for, and when. */
  #asked = 0
  #askedAt = 0
  /** When it became the server's turn: something was asked, or room was made for more of the answer. */
  #serverSince = 0
  /** How long the last complete batch took. */
  #lastMs = 0
  /** Commands of `#before` that are complete. */
  #passed = 0
  #tags: string[] = []
  #ready: Row[] = []
  #readyBytes = 0
  readonly #held: Held
  /** The batch in `#ready` is all that was asked for. */
  #boundary = false
  #paused = false
  /** An Execute has not been answered yet. */
  #fetching = false
  #synced = false
  #delivered = false
  #cancelled = false
  #failure: Error | null = null
  /** The server has refused one of its commands, and skipped the others. */
  #refused = false
  /** Rows interest nobody any more, nor does an error; the reader is told this one, if anything. */
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
      throw new RangeError(`batchRows is ${batchRows}; it is at least 1`)
    this.#host = host
    this.flow = flow
    this.#before = before
    this.#command = command
    this.#batchRows = batchRows
    this.#after = after
    this.costKey = command.text
    this.worked = worked
    this.#held = new Held(host.budget, flow)
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

  next(): Promise<IteratorResult<readonly Row[]>> {
    if (this.#waiter !== null) return Promise.reject(new Error('next() was called before the last next() had answered'))
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject }
      if (this.#state === 'new') {
        this.#state = 'waiting'
        this.#host.start(this)
      } else {
        this.#hand()
      }
    })
  }

  /** Resolves when the connection is free again; the statement is cancelled if it is in the middle of a batch. */
  async return(): Promise<IteratorResult<readonly Row[]>> {
    await this.#abandon(null)
    return { done: true, value: undefined }
  }

  async throw(error?: unknown): Promise<IteratorResult<readonly Row[]>> {
    await this.#abandon(null)
    throw error
  }

  // --- Exchange ---

  /** Between batches, and while the socket is not read, everybody waits for the reader. */
  unansweredMs(now: number): number {
    return (this.#fetching || this.#synced) && !this.#paused ? this.worked.ms + now - this.#serverSince : 0
  }

  write(channel: Channel): void {
    const plan = new Plan()
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
    if (this.#plan?.parseComplete() !== true)
      throw new ProtocolError('the server confirmed a statement nobody prepared')
  }

  parametersDescribed(): void {
    // Parameters are sent as text: PostgreSQL knows their types, and we need not.
  }

  described(fields: readonly FieldDescription[]): void {
    if (this.#plan?.described(fields) !== true) throw new ProtocolError('the server described a statement unasked')
  }

  dataRow(bytes: Buffer, start: number, end: number): void {
    if (this.#passed < this.#before.length || !this.#fetching || this.#abandoned !== null) return
    this.#ready.push(decodeDataRow(bytes, start, end))
    this.#readyBytes += end - start
    if (this.#readyBytes < READY_BYTES_MAX) return
    this.#held.grow(this.#readyBytes, false)
    if (this.#waiter !== null) {
      this.#hand()
    } else if (!this.#paused) {
      this.#paused = true
      this.#channel?.pause()
      this.#watchReader()
    }
  }

  /** Waiting rows take no more than `READY_BYTES_MAX` whatever the budget; a single row can be larger. */
  rowBegins(bytes: number): boolean {
    if (this.#passed < this.#before.length || !this.#fetching || this.#abandoned !== null) return false
    const whole = this.#readyBytes + bytes
    const refused = this.#held.grow(whole, whole > READY_BYTES_MAX)
    if (refused === null) return true
    this.#stop(refused)
    return false
  }

  rowTooLong(bytes: number): void {
    this.#stop(
      refusal('54000', `a row has ${bytes} bytes; at most ${MESSAGE_BYTES_MAX} are accepted`, 'Ask for fewer columns.'),
    )
  }

  complete(tag: string): void {
    this.#tags.push(tag)
    if (this.#passed < this.#before.length) {
      this.#passed++
      return
    }
    // The rows are complete already, and this is what comes after them.
    if (!this.#fetching) return
    this.#fetching = false
    this.#boundary = true
    this.#sync()
    this.#hand()
  }

  suspended(): void {
    if (!this.#fetching || this.#passed < this.#before.length) {
      throw new ProtocolError('the server suspended a portal that has no row limit')
    }
    this.#fetching = false
    this.#boundary = true
    this.#lastMs = this.#host.clock() - this.#askedAt
    this.#hand()
  }

  failed(error: DatabaseError): void {
    this.#failure ??= error
    this.#refused = true
    this.#fetching = false
    this.#sync()
  }

  finished(): boolean {
    const channel = this.#channel as Channel
    const plan = this.#plan as Plan
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

  // --- Inside ---

  /** Gives the reader what there is, if there is a reader and something worth giving. */
  #hand(): void {
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
      // A batch of no rows that is not the end: ask on.
      this.#boundary = false
      this.#fetchMore()
    }
    this.#watchReader()
  }

  #fetchMore(): void {
    this.#awaitServer()
    if (this.#fetching || this.#synced || this.#state !== 'running') return
    const channel = this.#channel as Channel
    this.#fetching = true
    writeExecute(channel.writer, this.#ask(this.#lastMs > BATCH_MS ? Math.ceil(this.#asked / 2) : this.#asked * 2))
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
    this.#asked = Math.min(rows, this.#batchRows)
    this.#askedAt = this.#host.clock()
    this.#serverSince = this.#askedAt
    return this.#asked
  }

  #sync(): void {
    if (this.#synced) return
    const channel = this.#channel as Channel
    this.#synced = true
    this.#serverSince = this.#host.clock()
    if (!this.#refused)
      for (const command of this.#after) this.#plan?.write(command, 0, channel.writer, channel.statements)
    writeSync(channel.writer)
    channel.flushSoon()
  }

  /** Gives up with an error that the reader gets to see. */
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
    this.#hand()
  }

  /** The clock runs while rows are there and nobody takes them. */
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
      const message = `nobody read the stream for ${readerIdleMs} ms, so its connection was taken back`
      this.#stop(new UnavailableError(message, true))
    }, readerIdleMs)
  }
}
