/** A growing, reused buffer for encoding messages, so that sending allocates nothing. */
import { ProtocolError } from './error.ts'

/** Limit on the bytes waiting in one buffer: much larger than a request body, much smaller than memory. */
const WRITER_BYTES_MAX = 256 * 1024 * 1024

/** A buffer that grew beyond this for one large message is not kept. */
const KEPT_BYTES_MAX = 1024 * 1024

/** Up to this length, a loop over ASCII is faster than the runtime's encoder. */
const SHORT_STRING = 24

/** From this length, counting the exact size is cheaper than reserving the worst case. */
const LONG_STRING = 16 * 1024

export class Writer {
  readonly #capacity: number
  #bytes: Buffer
  #spare: Buffer | null = null
  #taken: Buffer | null = null
  #length = 0

  constructor(capacity: number = 16 * 1024) {
    this.#capacity = capacity
    this.#bytes = Buffer.allocUnsafeSlow(capacity)
  }

  get length(): number {
    return this.#length
  }

  /** Discards everything after `length`, such as a partly encoded batch. */
  truncate(length: number): void {
    this.#length = length
  }

  /**
   * Returns what was written and continues in a second buffer. The view is valid until `recycle`, which must
   * be called before the next `take`.
   */
  take(): Buffer {
    const view = this.#bytes.subarray(0, this.#length)
    this.#taken = this.#bytes
    this.#bytes = this.#spare ?? Buffer.allocUnsafeSlow(this.#capacity)
    this.#spare = null
    this.#length = 0
    return view
  }

  recycle(): void {
    if (this.#taken !== null && this.#taken.length <= KEPT_BYTES_MAX) this.#spare = this.#taken
    this.#taken = null
  }

  uint8(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  int16(value: number): void {
    this.#reserve(2)
    const bytes = this.#bytes
    const at = this.#length
    bytes[at] = value >>> 8
    bytes[at + 1] = value
    this.#length = at + 2
  }

  int32(value: number): void {
    this.#reserve(4)
    this.#set32(this.#length, value)
    this.#length += 4
  }

  int64(value: bigint): void {
    this.#reserve(8)
    this.#bytes.writeBigInt64BE(BigInt.asIntN(64, value), this.#length)
    this.#length += 8
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  /** UTF-8 without length or terminator. */
  string(value: string): void {
    const count = value.length
    this.#reserve(count < LONG_STRING ? count * 3 : Buffer.byteLength(value))
    const bytes = this.#bytes
    const at = this.#length
    if (count <= SHORT_STRING) {
      let index = 0
      for (; index < count; index++) {
        const code = value.charCodeAt(index)
        if (code > 127) break
        bytes[at + index] = code
      }
      if (index === count) {
        this.#length = at + count
        return
      }
    }
    this.#length = at + bytes.write(value, at, 'utf8')
  }

  /**
   * A String of the protocol, which ends with a zero byte and must not contain one: the rest would be read as
   * another field.
   */
  cstring(value: string): void {
    if (value.includes('\0'))
      throw new ProtocolError('a name or statement text contains a zero byte, which PostgreSQL cannot store')
    this.string(value)
    this.uint8(0)
  }

  /** Starts a message; `end` fills in its length. */
  begin(type: number): number {
    this.#reserve(5)
    this.#bytes[this.#length] = type
    this.#length += 5
    return this.#length - 4
  }

  /** Starts a message without a type byte: the first packet of a connection. */
  beginUntyped(): number {
    this.#reserve(4)
    this.#length += 4
    return this.#length - 4
  }

  end(lengthAt: number): void {
    this.#set32(lengthAt, this.#length - lengthAt)
  }

  /** Space for a 32-bit length that is known only after its content. */
  beginField(): number {
    return this.beginUntyped()
  }

  endField(lengthAt: number): void {
    this.#set32(lengthAt, this.#length - lengthAt - 4)
  }

  #set32(at: number, value: number): void {
    const bytes = this.#bytes
    bytes[at] = value >>> 24
    bytes[at + 1] = value >>> 16
    bytes[at + 2] = value >>> 8
    bytes[at + 3] = value
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#bytes.length) return
    if (needed > WRITER_BYTES_MAX) {
      throw new ProtocolError(
        `a message needs ${needed} bytes; the limit on bytes waiting to be sent is ${WRITER_BYTES_MAX}`,
      )
    }
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}
