/**
 * Reads the fields of one message body, never past its end. Used for messages that are too rare to be decoded
 * by hand.
 */
import { ProtocolError } from './error.ts'

export class Fields {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  get rest(): number {
    return this.#end - this.#at
  }

  uint8(): number {
    return this.#bytes[this.#advance(1)] as number
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.#advance(2))
  }

  uint16(): number {
    return this.#bytes.readUInt16BE(this.#advance(2))
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.#advance(4))
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.#advance(4))
  }

  uint64(): bigint {
    return this.#bytes.readBigUInt64BE(this.#advance(8))
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.#advance(8))
  }

  take(count: number): Buffer {
    if (count < 0) throw new ProtocolError(`a field declares a length of ${count}`)
    const at = this.#advance(count)
    return this.#bytes.subarray(at, at + count)
  }

  /** -1 is NULL; any other negative length is invalid. */
  value(): Buffer | null {
    const length = this.int32()
    return length === -1 ? null : this.take(length)
  }

  cstring(): string {
    const zero = this.#bytes.indexOf(0, this.#at)
    if (zero === -1 || zero >= this.#end) throw new ProtocolError('a string does not end before its message does')
    const text = this.#bytes.toString('utf8', this.#at, zero)
    this.#at = zero + 1
    return text
  }

  /** Checks that the whole message was read: remaining bytes mean that it was decoded incorrectly. */
  finish<T>(value: T): T {
    if (this.#at !== this.#end) throw new ProtocolError(`a message has ${this.rest} bytes more than its fields`)
    return value
  }

  #advance(count: number): number {
    const at = this.#at
    if (count > this.#end - at)
      throw new ProtocolError(`a field of ${count} bytes does not fit: its message has ${this.rest} left`)
    this.#at = at + count
    return at
  }
}
