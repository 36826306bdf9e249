/**
 * One socket: outgoing messages are collected and written once per turn of the event loop; incoming messages
 * are cut from the bytes received. At most one write is in progress, so the buffer behind it can be reused,
 * and a slow peer is noticed immediately.
 */
import type { Socket } from 'node:net'
import { UnavailableError } from './errors.ts'
import { type MessageSink, Reader } from './protocol/reader.ts'
import { Writer } from './protocol/writer.ts'

/**
 * Limit on the bytes that wait for a write in progress; above it, the connection accepts no more requests.
 */
const CONGESTED_BYTES = 256 * 1024

/** Receives the messages of a wire. */
export interface WireSink extends MessageSink {
  /**
   * Everything encoded so far is being written to the socket: the server may have received it from now on.
   */
  flushed(): void
  /** Called when all messages received so far have been passed on. */
  chunkRead?(): void
  /** Called once with the reason; nothing follows. */
  closed(error: Error): void
}

/** Discards messages that nothing is waiting for: between startup and use, and after the end. */
const DISCARD: WireSink = { message() {}, tooLong() {}, flushed() {}, closed() {} }

/** The messages of one socket. */
export class Wire {
  readonly writer: Writer = new Writer()
  readonly #socket: Socket
  readonly #reader: Reader
  #sink: WireSink = DISCARD
  #scheduled = false
  #writing = false
  #closed = false
  #reason: Error | null = null

  constructor(socket: Socket) {
    this.#socket = socket
    this.#reader = new Reader({
      message: (type, bytes, start, end) => this.#sink.message(type, bytes, start, end),
      tooLong: (type, bodyBytes) => this.#sink.tooLong(type, bodyBytes),
      begins: (type, bodyBytes) => this.#sink.begins?.(type, bodyBytes) ?? true,
    })
    socket.on('data', this.#received)
    socket.on('error', error => this.destroy(error))
    socket.on('end', () => this.destroy(new Error('the server closed the connection')))
    socket.on('close', () => this.destroy(new Error('the connection was closed')))
    // It was paused while it had no listener (see tls.ts).
    socket.resume()
  }

  set sink(sink: WireSink) {
    this.#sink = sink
  }

  set messageBytesMax(value: number) {
    this.#reader.bytesMax = value
  }

  get closed(): boolean {
    return this.#closed
  }

  /** True if the peer does not take what is written. */
  get congested(): boolean {
    return this.#writing && this.writer.length >= CONGESTED_BYTES
  }

  /** Sends what the writer holds at the end of this turn of the event loop. */
  flushSoon(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#flush)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Writes the rest and closes in an orderly way. */
  end(): void {
    if (this.#closed) return
    this.#closed = true
    this.#reader.stop()
    this.#sink = DISCARD
    this.#socket.end(Buffer.from(this.writer.take()))
    // A peer that never closes its half must not keep the socket open.
    this.#socket.setTimeout(1000, () => this.#socket.destroy())
    this.#socket.resume()
  }

  /** Closes the socket. Idempotent; the sink is called once, with the first reason. */
  destroy(reason: Error): void {
    if (this.#closed) return
    this.#closed = true
    this.#reason = reason
    this.#reader.stop()
    this.#socket.destroy()
    const sink = this.#sink
    this.#sink = DISCARD
    sink.closed(reason)
  }

  get reason(): Error | null {
    return this.#reason
  }

  readonly #received = (chunk: Buffer): void => {
    if (this.#closed) return
    try {
      this.#reader.push(chunk)
      this.#sink.chunkRead?.()
    } catch (error) {
      this.destroy(error as Error)
    }
  }

  readonly #flush = (): void => {
    this.#scheduled = false
    if (this.#writing || this.#closed || this.writer.length === 0) return
    this.#writing = true
    this.#sink.flushed()
    this.#socket.write(this.writer.take(), this.#written)
  }

  readonly #written = (error?: Error | null): void => {
    this.#writing = false
    // On failure the buffer is left to the socket; 'error' or 'close' follows.
    if (error) return
    this.writer.recycle()
    this.#flush()
  }
}

/** The error for pending requests whose connection is lost. */
export function connectionLost(sent: boolean, reason: Error): UnavailableError {
  return new UnavailableError(`the connection to the database was lost: ${reason.message}`, sent, reason)
}
