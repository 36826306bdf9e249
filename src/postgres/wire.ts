/**
 * One socket: messages out, collected and written once per turn of the event loop; messages in, cut out of the bytes.
 * At most one write is under way, so the buffer behind it can be reused, and a slow peer is noticed at once.
 */
import type { Socket } from 'node:net'
import { UnavailableError } from './errors.ts'
import { type MessageSink, Reader } from './protocol/reader.ts'
import { Writer } from './protocol/writer.ts'

/** With this much unwritten behind a write that is still under way, the connection takes nothing more. */
const CONGESTED_BYTES = 256 * 1024

export interface WireSink extends MessageSink {
  /** Everything encoded so far is being handed to the socket: from now on the server may have seen it. */
  flushed(): void
  /** Called once, whatever ended it; nothing comes after it. */
  closed(error: Error): void
}

/** Takes what nobody is waiting for: between start-up and use, and after the end. */
const NOBODY: WireSink = { message() {}, tooLong() {}, flushed() {}, closed() {} }

export class Wire {
  readonly writer: Writer = new Writer()
  readonly #socket: Socket
  readonly #reader: Reader
  #sink: WireSink = NOBODY
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
    // It was paused while nobody listened (see tls.ts).
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

  /** True while the peer does not take what we write. */
  get congested(): boolean {
    return this.#writing && this.writer.length >= CONGESTED_BYTES
  }

  /** Sends what the writer holds when this turn of the event loop has collected everything it wants to say. */
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

  /** Says the rest and closes in good order. */
  end(): void {
    if (this.#closed) return
    this.#closed = true
    this.#reader.stop()
    this.#sink = NOBODY
    this.#socket.end(Buffer.from(this.writer.take()))
    // A peer that never closes its half must not keep ours.
    this.#socket.setTimeout(1000, () => this.#socket.destroy())
    this.#socket.resume()
  }

  /** Idempotent; the sink hears of it once, with the first reason. */
  destroy(reason: Error): void {
    if (this.#closed) return
    this.#closed = true
    this.#reason = reason
    this.#reader.stop()
    this.#socket.destroy()
    const sink = this.#sink
    this.#sink = NOBODY
    sink.closed(reason)
  }

  get reason(): Error | null {
    return this.#reason
  }

  readonly #received = (chunk: Buffer): void => {
    if (this.#closed) return
    try {
      this.#reader.push(chunk)
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

/** What pending work is told when its connection is gone. */
export function lost(sent: boolean, reason: Error): UnavailableError {
  return new UnavailableError(`the connection to the database was lost: ${reason.message}`, sent, reason)
}
