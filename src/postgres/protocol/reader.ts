/**
 * Cuts a byte stream into messages. A message within one chunk is passed on in place. A message that spans
 * chunks is copied once, into a buffer that grows with the bytes received.
 */
import { ProtocolError } from './error.ts'

/** Limit on one message, and thus on one row. PostgreSQL itself allows 1 GiB. */
export const MESSAGE_BYTES_MAX: number = 64 * 1024 * 1024

/**
 * Up to this declared length, memory is allocated at once. Beyond it, the sink is asked first, and memory
 * grows with the bytes received.
 */
export const LONG_BYTES: number = 64 * 1024

export interface MessageSink {
  /**
   * The body is in `bytes` from `start` to `end`. It can be kept, because the bytes are never overwritten.
   * `type` is 0 for an untyped packet.
   */
  message(type: number, bytes: Buffer, start: number, end: number): void
  /** Called for a body longer than the limit, which is skipped unless this throws. */
  tooLong(type: number, bodyBytes: number): void
  /**
   * Called for a body longer than `LONG_BYTES` of which only the beginning has arrived. Returns false to skip
   * it.
   */
  begins?(type: number, bodyBytes: number): boolean
}

export class Reader {
  readonly #sink: MessageSink
  /** 1 if messages begin with a type byte; 0 for the first packets that a server reads. */
  #typeBytes: 0 | 1 = 1
  #bytesMax: number
  #partial: Buffer | null = null
  #have = 0
  #skip = 0
  #stopped = false

  constructor(sink: MessageSink, bytesMax: number = MESSAGE_BYTES_MAX) {
    this.#sink = sink
    this.#bytesMax = bytesMax
  }

  set bytesMax(value: number) {
    this.#bytesMax = value
  }

  /** May be called between messages, also from within `message`. */
  set typed(value: boolean) {
    this.#typeBytes = value ? 1 : 0
  }

  /** Stops delivery, including the rest of the current chunk. */
  stop(): void {
    this.#stopped = true
    this.#partial = null
  }

  /**
   * Throws `ProtocolError` (impossible length) and whatever the sink throws; the stream is unusable
   * afterwards.
   */
  push(chunk: Buffer): void {
    let at = 0
    if (this.#skip > 0) at = this.#skipped(chunk, 0)
    if (this.#partial !== null) at = this.#complete(chunk, at)
    while (!this.#stopped) {
      const header = this.#typeBytes + 4
      if (chunk.length - at < header) break
      const bodyBytes = this.#bodyBytes(chunk, at)
      if (bodyBytes > this.#bytesMax) {
        this.#refuse(chunk, at, bodyBytes)
        at = this.#skipped(chunk, at + header)
        continue
      }
      const end = at + header + bodyBytes
      if (end > chunk.length) break
      const start = at + header
      this.#sink.message(this.#typeBytes === 1 ? (chunk[at] as number) : 0, chunk, start, end)
      at = end
    }
    if (!this.#stopped && at < chunk.length) this.#keep(chunk, at)
  }

  /** Returns false if the sink skips the body. */
  #isWanted(bytes: Buffer, at: number, bodyBytes: number): boolean {
    if (bodyBytes <= LONG_BYTES || this.#sink.begins === undefined) return true
    return this.#sink.begins(this.#typeBytes === 1 ? (bytes[at] as number) : 0, bodyBytes)
  }

  #bodyBytes(bytes: Buffer, at: number): number {
    const word = at + this.#typeBytes
    const length =
      ((bytes[word] as number) << 24) |
      ((bytes[word + 1] as number) << 16) |
      ((bytes[word + 2] as number) << 8) |
      (bytes[word + 3] as number)
    if (length < 4) {
      const type = this.#typeBytes === 1 ? describeType(bytes[at] as number) : 'first packet'
      throw new ProtocolError(`${type} declares a length of ${length}; the length counts itself, so it is at least 4`)
    }
    return length - 4
  }

  #refuse(bytes: Buffer, at: number, bodyBytes: number): void {
    this.#sink.tooLong(this.#typeBytes === 1 ? (bytes[at] as number) : 0, bodyBytes)
    this.#skip = bodyBytes
  }

  #skipped(chunk: Buffer, at: number): number {
    const count = Math.min(this.#skip, chunk.length - at)
    this.#skip -= count
    return at + count
  }

  #keep(chunk: Buffer, at: number): void {
    const rest = chunk.length - at
    const header = this.#typeBytes + 4
    const whole = rest < header ? header : header + this.#bodyBytes(chunk, at)
    if (rest >= header && !this.#isWanted(chunk, at, whole - header)) {
      this.#skip = whole - rest
      return
    }
    this.#partial = Buffer.allocUnsafe(Math.max(rest, Math.min(whole, LONG_BYTES)))
    this.#have = chunk.copy(this.#partial, 0, at)
  }

  /** Completes the message that an earlier chunk began; returns where in `chunk` the next one starts. */
  #complete(chunk: Buffer, from: number): number {
    const header = this.#typeBytes + 4
    const isNew = this.#have < header
    let at = this.#take(chunk, from, header)
    if (this.#have < header) return at
    const partial = this.#partial as Buffer
    const bodyBytes = this.#bodyBytes(partial, 0)
    if (bodyBytes > this.#bytesMax) {
      this.#refuse(partial, 0, bodyBytes)
      this.#partial = null
      return this.#skipped(chunk, at)
    }
    if (isNew && !this.#isWanted(partial, 0, bodyBytes)) {
      this.#skip = bodyBytes
      this.#partial = null
      return this.#skipped(chunk, at)
    }
    const whole = header + bodyBytes
    at = this.#take(chunk, at, whole)
    if (this.#have < whole) return at
    const bytes = this.#partial as Buffer
    this.#partial = null
    this.#sink.message(this.#typeBytes === 1 ? (bytes[0] as number) : 0, bytes, header, whole)
    return at
  }

  /** Copies from `chunk` until the partial message has `whole` bytes, or the chunk ends. */
  #take(chunk: Buffer, at: number, whole: number): number {
    const count = Math.min(whole - this.#have, chunk.length - at)
    if (count <= 0) return at
    let partial = this.#partial as Buffer
    const needed = this.#have + count
    if (needed > partial.length) {
      const grown = Buffer.allocUnsafe(Math.min(whole, Math.max(needed, partial.length * 2)))
      partial.copy(grown, 0, 0, this.#have)
      partial = grown
      this.#partial = grown
    }
    chunk.copy(partial, this.#have, at, at + count)
    this.#have = needed
    return at + count
  }
}

/** `message "D" (0x44)`: the type for error messages, printable whatever the byte is. */
export function describeType(type: number): string {
  const hex = `0x${type.toString(16).padStart(2, '0')}`
  return type > 32 && type < 127 ? `message "${String.fromCharCode(type)}" (${hex})` : `message ${hex}`
}
