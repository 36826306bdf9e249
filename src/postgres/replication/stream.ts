/** The changes of one replication stream, and the confirmations of the client. */
import { Fifo } from '../fifo.ts'
import type { Wire } from '../wire.ts'
import type { StreamOptions } from './commands.ts'
import type { Lsn } from './lsn.ts'
import { PgoutputDecoder, type PgoutputMessage } from './pgoutput.ts'
import { decodeStreamMessage, writeStatusUpdate } from './stream-messages.ts'

/** With this many bytes not yet taken, the socket is paused until half of them have been taken. */
export const WAITING_BYTES_MAX: number = 1024 * 1024

/** A message counts at least this much: decoded, it takes more memory than its bytes. */
const MESSAGE_COST = 256

/** Interval between status updates; the server's `wal_sender_timeout` is 60 s by default. */
export const STATUS_INTERVAL_MS = 10_000

/** The server is considered lost if it has sent nothing for this many intervals, although asked to. */
const SILENT_INTERVALS_MAX = 3

/** Limit on the time for the end of a stream. */
const STOP_TIMEOUT_MS = 5_000

/** An element of the stream. */
export type StreamItem =
  | PgoutputMessage
  /** A message longer than the limit was discarded: some change, of whatever table, is unknown. */
  | { readonly kind: 'skipped'; readonly bytes: number }
  /**
   * The server has read its log up to here and has nothing to send. Once all earlier transactions have been
   * stored, the position can be confirmed, so that the server does not keep what concerns no published table.
   */
  | { readonly kind: 'caughtUp'; readonly position: Lsn }

interface Waiting {
  item: StreamItem
  readonly cost: number
}

/** A running stream. Take its items with `next`, one at a time. */
export class ReplicationStream {
  readonly #wire: Wire
  readonly #decoder: PgoutputDecoder
  readonly #end: () => Promise<void>
  readonly #intervalMs: number
  readonly #statusTimer: NodeJS.Timeout
  readonly #waiting = new Fifo<Waiting>()
  /** The last element of `#waiting` if it is `caughtUp`. */
  #caughtUp: Waiting | null = null
  #bytes = 0
  #isPaused = false
  #taker: { resolve(item: StreamItem): void; reject(error: Error): void } | null = null
  #error: Error | null = null
  #received: Lsn
  #confirmed: Lsn
  #isReplyDue = false
  #silentIntervals = 0

  constructor(wire: Wire, options: StreamOptions, end: () => Promise<void>) {
    this.#wire = wire
    this.#decoder = new PgoutputDecoder(options)
    this.#end = end
    this.#received = options.from
    this.#confirmed = options.from
    this.#intervalMs = options.statusIntervalMs ?? STATUS_INTERVAL_MS
    this.#statusTimer = setInterval(() => this.#tick(), this.#intervalMs)
    this.#statusTimer.unref()
  }

  /** The next item; rejects once the stream has ended. Only one call at a time. */
  next(): Promise<StreamItem> {
    const waiting = this.#waiting.shift()
    if (waiting !== undefined) return Promise.resolve(this.#taken(waiting))
    if (this.#error !== null) return Promise.reject(this.#error)
    if (this.#taker !== null) return Promise.reject(new Error('the previous item has not arrived yet'))
    return new Promise((resolve, reject) => {
      this.#taker = { resolve, reject }
    })
  }

  /** The items that can be taken without waiting. */
  get ready(): number {
    return this.#waiting.length
  }

  /**
   * Confirms that everything before a position is stored, so that the server can discard it. Positions before
   * the last confirmed one are ignored. A server that crashes forgets recent confirmations and sends those
   * changes again, unless the next stream starts at the stored position (`from`).
   */
  confirm(position: Lsn): void {
    if (position <= this.#confirmed) return
    this.#confirmed = position
    if (position > this.#received) this.#received = position
    this.#sendStatusSoon()
  }

  /** Asks the server how far it has read its log; the answer is a `caughtUp` item. */
  probe(): void {
    if (this.#error !== null) return
    this.#writeStatus(true)
    this.#wire.flushSoon()
  }

  /** Ends the stream and resolves when the slot is free. Items not yet taken are discarded. */
  async stop(): Promise<void> {
    if (this.#error !== null) return
    this.discard(new Error('the replication stream was stopped'))
    const timer = setTimeout(
      () => this.#wire.destroy(new Error(`the replication stream did not end within ${STOP_TIMEOUT_MS} ms`)),
      STOP_TIMEOUT_MS,
    )
    try {
      await this.#end()
    } finally {
      clearTimeout(timer)
    }
  }

  // --- called by the session ---

  /** Takes the body of a CopyData message. */
  receive(bytes: Buffer, start: number, end: number): void {
    this.#silentIntervals = 0
    const message = decodeStreamMessage(bytes, start, end)
    if (message.kind === 'walData') {
      if (message.at > this.#received) this.#received = message.at
      this.#add(this.#decoder.decode(message.data), message.data.length)
      return
    }
    if (message.walEnd > this.#received) this.#received = message.walEnd
    if (message.replyRequested) this.#sendStatusSoon()
    this.#addCaughtUp(message.walEnd)
  }

  /** A message was too long. */
  skip(bytes: number): void {
    this.#silentIntervals = 0
    this.#add({ kind: 'skipped', bytes }, 0)
  }

  /** The stream has ended, but what has arrived can still be taken. */
  fail(error: Error): void {
    if (this.#error !== null) return
    this.#error = error
    clearInterval(this.#statusTimer)
    this.#taker?.reject(error)
    this.#taker = null
  }

  /** The client ends the stream: reports the last confirmation and discards what has not been taken. */
  discard(error: Error): void {
    if (this.#error !== null) return
    this.#writeStatus()
    this.fail(error)
    this.#waiting.drain()
  }

  // --- items ---

  #add(item: StreamItem, bytes: number): void {
    if (this.#taker !== null) {
      const { resolve } = this.#taker
      this.#taker = null
      resolve(item)
      return
    }
    const waiting: Waiting = { item, cost: bytes + MESSAGE_COST }
    this.#waiting.push(waiting)
    this.#caughtUp = item.kind === 'caughtUp' ? waiting : null
    this.#bytes += waiting.cost
    if (this.#bytes < WAITING_BYTES_MAX || this.#isPaused) return
    this.#isPaused = true
    this.#wire.pause()
  }

  /** An idle server sends many of these; only the last one matters. */
  #addCaughtUp(position: Lsn): void {
    const item: StreamItem = { kind: 'caughtUp', position }
    if (this.#caughtUp === null) this.#add(item, 0)
    else this.#caughtUp.item = item
  }

  #taken(waiting: Waiting): StreamItem {
    if (waiting === this.#caughtUp) this.#caughtUp = null
    this.#bytes -= waiting.cost
    if (this.#isPaused && this.#bytes < WAITING_BYTES_MAX / 2) {
      this.#isPaused = false
      this.#wire.resume()
    }
    return waiting.item
  }

  // --- status updates ---

  #tick(): void {
    // A paused socket is silent because of this client.
    if (!this.#isPaused) this.#silentIntervals++
    if (this.#silentIntervals > SILENT_INTERVALS_MAX) {
      const silentMs = this.#silentIntervals * this.#intervalMs
      this.#wire.destroy(new Error(`the server has sent nothing for ${silentMs} ms`))
      return
    }
    this.#writeStatus()
    this.#wire.flushSoon()
  }

  /** Once per turn of the event loop, however many transactions are confirmed in it. */
  #sendStatusSoon(): void {
    if (this.#isReplyDue || this.#error !== null) return
    this.#isReplyDue = true
    setImmediate(() => {
      if (!this.#isReplyDue || this.#error !== null) return
      this.#writeStatus()
      this.#wire.flushSoon()
    })
  }

  #writeStatus(asks = false): void {
    this.#isReplyDue = false
    if (this.#wire.closed) return
    writeStatusUpdate(this.#wire.writer, {
      ...{ received: this.#received, confirmed: this.#confirmed, nowMs: Date.now() },
      replyRequested: asks || this.#silentIntervals > 0,
    })
  }
}
