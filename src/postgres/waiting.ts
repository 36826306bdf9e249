/** Those who wait for a connection, in the order they came, each until its deadline. Streams wait apart: they are few, and may be held back. */
import type { Exchange } from './exchange.ts'
import { Fifo } from './fifo.ts'

export interface WaitingOptions {
  readonly clock: () => number
  /** It waited until its deadline, and has been taken out. */
  readonly expired: (exchange: Exchange) => void
}

export class Waiting {
  readonly units: Fifo<Exchange> = new Fifo()
  readonly streams: Fifo<Exchange> = new Fifo()
  readonly #options: WaitingOptions
  #timer: NodeJS.Timeout | null = null
  /** The deadline for which `#timer` is set. */
  #armedFor = Infinity

  constructor(options: WaitingOptions) {
    this.#options = options
  }

  get length(): number {
    return this.units.length + this.streams.length
  }

  lineOf(exchange: Exchange): Fifo<Exchange> {
    return exchange.exclusive ? this.streams : this.units
  }

  add(exchange: Exchange): void {
    this.lineOf(exchange).push(exchange)
    this.#arm()
  }

  /** To the front: it had its turn, and its connection broke or its statement was stale. */
  putBack(exchange: Exchange): void {
    this.lineOf(exchange).unshift(exchange)
    this.#arm()
  }

  remove(exchange: Exchange): void {
    this.lineOf(exchange).remove(exchange)
  }

  /** Empties both lines and stops the clock. */
  drain(): Exchange[] {
    this.#disarm()
    return [...this.streams.drain(), ...this.units.drain()]
  }

  /** Each line is in the order of its deadlines, so one timer for the nearer head is enough. */
  #arm(): void {
    const next = Math.min(this.units.peek()?.deadline ?? Infinity, this.streams.peek()?.deadline ?? Infinity)
    // A timer that is too early finds nobody and is set anew; what is put back may need an earlier one.
    if (next >= this.#armedFor) return
    this.#disarm()
    this.#armedFor = next
    const inMs = Math.max(1, Math.ceil(next - this.#options.clock()))
    this.#timer = setTimeout(() => {
      this.#disarm()
      this.#expire(this.units)
      this.#expire(this.streams)
      this.#arm()
    }, inMs)
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#armedFor = Infinity
  }

  #expire(line: Fifo<Exchange>): void {
    const now = this.#options.clock()
    for (let head = line.peek(); head !== undefined && head.deadline <= now; head = line.peek()) {
      line.shift()
      this.#options.expired(head)
    }
  }
}
