/** Requests, responses and notices between the primary process and one worker, over Node's IPC channel. */
import { type ChannelFrame, parseChannelFrame } from './messages.ts'

/** The end of an IPC channel: `process` in a worker, the worker's handle in the primary process. */
export interface Port {
  /** Returns false, or calls back with an error, if the other process has ended. */
  send(frame: unknown, done: (error: Error | null) => void): void
  receive(hear: (frame: unknown) => void): void
}

/** The error of a request whose other process has ended. */
export class ChannelClosed extends Error {
  constructor() {
    super('the other process has ended')
    this.name = 'ChannelClosed'
  }
}

/** The dependencies of a channel. */
export interface WorkerChannelParts<Received> {
  readonly port: Port
  readonly parse: (value: unknown) => Received | null
  /** Handles a message. For a request, the result is sent as the response. */
  readonly handle: (message: Received) => unknown
}

/** One side of a channel. */
export class WorkerChannel<Sent, Received> {
  readonly #parts: WorkerChannelParts<Received>
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #nextId = 0
  #isClosed = false

  constructor(parts: WorkerChannelParts<Received>) {
    this.#parts = parts
    parts.port.receive(value => this.#receive(value))
  }

  /** Sends a message that needs no response. Does nothing if the other process has ended. */
  notify(message: Sent): void {
    this.#send({ frame: 'notice', message })
  }

  /** Sends a request. Rejects with `ChannelClosed` if the other process ends before it responds. */
  request(message: Sent): Promise<unknown> {
    const id = ++this.#nextId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      if (this.#isClosed) this.close()
      else this.#send({ frame: 'request', id, message })
    })
  }

  /** Rejects all pending requests. */
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
    const frame = parseChannelFrame(value, this.#parts.parse)
    if (frame === null) return
    if (frame.frame === 'notice') void this.#parts.handle(frame.message)
    else if (frame.frame === 'request') void this.#answer(frame.id, frame.message)
    else {
      this.#waiting.get(frame.id)?.resolve(frame.value)
      this.#waiting.delete(frame.id)
    }
  }

  /** If the handling of a request fails, the response is null. */
  async #answer(id: number, message: Received): Promise<void> {
    const value = await Promise.resolve(this.#parts.handle(message)).catch(() => null)
    this.#send({ frame: 'answer', id, value })
  }
}
