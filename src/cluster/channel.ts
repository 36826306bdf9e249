/** Requests, answers and notices between the primary process and one worker, over Node's IPC channel. */
import { type ChannelFrame, parseFrame } from './messages.ts'

/** The end of an IPC channel: `process` in a worker, the worker's handle in the primary process. */
export interface Port {
  /** Returns false, or fails through the callback, if the other side has gone. */
  send(frame: unknown, done: (error: Error | null) => void): void
  receive(hear: (frame: unknown) => void): void
}

/** The other process has gone. */
export class ChannelClosed extends Error {
  constructor() {
    super('the other process has ended')
    this.name = 'ChannelClosed'
  }
}

/** The dependencies of a channel. */
export interface ChannelParts<Received> {
  readonly port: Port
  readonly parse: (value: unknown) => Received | null
  /** Handles a message; the result answers a request. */
  readonly handle: (message: Received) => unknown
}

/** One side of a channel. */
export class Channel<Sent, Received> {
  readonly #parts: ChannelParts<Received>
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #nextId = 0
  #isClosed = false

  constructor(parts: ChannelParts<Received>) {
    this.#parts = parts
    parts.port.receive(value => this.#receive(value))
  }

  /** Sends a message without an answer; no effect if the other process has gone. */
  notify(message: Sent): void {
    this.#send({ frame: 'notice', message })
  }

  /** Rejects with `ChannelClosed` if the other process ends before it has answered. */
  request(message: Sent): Promise<unknown> {
    const id = ++this.#nextId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      if (this.#isClosed) this.close()
      else this.#send({ frame: 'request', id, message })
    })
  }

  /** Rejects all requests without an answer. */
  close(): void {
    this.#isClosed = true
    for (const { reject } of this.#waiting.values()) reject(new ChannelClosed())
    this.#waiting.clear()
  }

  #send(frame: ChannelFrame<Sent>): void {
    if (this.#isClosed) return
    this.#parts.port.send(frame, error => {
      if (error !== null) this.close()
    })
  }

  #receive(value: unknown): void {
    const frame = parseFrame(value, this.#parts.parse)
    if (frame === null) return
    if (frame.frame === 'notice') void this.#parts.handle(frame.message)
    else if (frame.frame === 'request') void this.#answer(frame.id, frame.message)
    else {
      this.#waiting.get(frame.id)?.resolve(frame.value)
      this.#waiting.delete(frame.id)
    }
  }

  /** A request whose handling fails is answered with null. */
  async #answer(id: number, message: Received): Promise<void> {
    const value = await Promise.resolve(this.#parts.handle(message)).catch(() => null)
    this.#send({ frame: 'answer', id, value })
  }
}
