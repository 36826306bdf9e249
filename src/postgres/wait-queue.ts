/**
 * Requests waiting for a connection, each until its deadline. Flows take turns: first those without a
 * connection, round-robin, then those that want more. Streams wait separately from batches: they are few, and
 * may be held back.
 */

import { Fifo } from './fifo.ts'
import type { Flow } from './flow.ts'
import type { PendingRequest } from './pending-request.ts'

/** The options of a wait queue. */
export interface WaitQueueOptions {
  /** The gateway's own flow, which takes precedence. */
  readonly own: Flow
  readonly clock: () => number
  /** Called with a request that has waited until its deadline and was removed. */
  readonly expired: (exchange: PendingRequest) => void
}

/** Sends a request; returns true if a connection has taken it. */
type TrySend = (exchange: PendingRequest) => boolean

/** Flows that wait with requests of one kind. */
export class WaitLine {
  readonly #kind: 'batches' | 'streams'
  readonly #own: Flow
  /** Flows without a connection, in turn. */
  readonly #starving = new Fifo<Flow>()
  /**
   * Flows that have a connection and wait for another one, in order; at most as many as there are
   * connections.
   */
  readonly #wantingMore = new Fifo<Flow>()
  #length = 0

  constructor(kind: 'batches' | 'streams', own: Flow) {
    this.#kind = kind
    this.#own = own
  }

  get length(): number {
    return this.#length
  }

  /** True if a flow without a connection is waiting. */
  get isStarving(): boolean {
    return this.#starving.length > 0 || this.#own[this.#kind].length > 0
  }

  /** Waiting flows, including the gateway's own. */
  get flows(): number {
    return this.#starving.length + this.#wantingMore.length + Math.min(this.#own[this.#kind].length, 1)
  }

  queueOf(flow: Flow): Fifo<PendingRequest> {
    return flow[this.#kind]
  }

  add(exchange: PendingRequest): void {
    const { flow } = exchange
    const queue = this.queueOf(flow)
    queue.push(exchange)
    this.#length++
    if (queue.length === 1 && !flow.isOwn) this.#listOf(flow).push(flow)
  }

  putBack(exchange: PendingRequest): void {
    const { flow } = exchange
    const queue = this.queueOf(flow)
    queue.unshift(exchange)
    this.#length++
    if (queue.length === 1 && !flow.isOwn) this.#listOf(flow).unshift(flow)
  }

  remove(exchange: PendingRequest): void {
    const { flow } = exchange
    if (!this.queueOf(flow).remove(exchange)) return
    this.#length--
    this.#leaveIfEmpty(flow)
  }

  /** Called when a flow gets its first connection or loses its last. */
  moved(flow: Flow): void {
    if (this.queueOf(flow).length === 0 || flow.isOwn) return
    const list = this.#listOf(flow)
    const other = list === this.#wantingMore ? this.#starving : this.#wantingMore
    if (other.remove(flow)) list.push(flow)
  }

  /** Gives every flow its turn, as far as there are connections. */
  serve(place: TrySend): void {
    this.#takeTurn(this.#own, place)
    for (let next = this.#starving.peek(); next !== undefined; next = this.#starving.peek()) {
      this.#takeTurn(next, place)
      if (this.#starving.peek() === next) return
    }
    if (this.isStarving) return
    for (let turns = this.#wantingMore.length; turns > 0; turns--) {
      const flow = this.#wantingMore.shift() as Flow
      this.#wantingMore.push(flow)
      this.#takeTurn(flow, place)
    }
  }

  expire(now: number, expired: (exchange: PendingRequest) => void): void {
    for (const flow of [this.#own, ...this.#starving, ...this.#wantingMore]) {
      const queue = this.queueOf(flow)
      for (let head = queue.peek(); head !== undefined && head.deadline <= now; head = queue.peek()) {
        this.remove(head)
        expired(head)
      }
    }
  }

  /** Infinity while the line is empty. */
  nearestDeadline(): number {
    let nearest = this.#own[this.#kind].peek()?.deadline ?? Infinity
    for (const list of [this.#starving, this.#wantingMore]) {
      for (const flow of list) nearest = Math.min(nearest, this.queueOf(flow).peek()?.deadline ?? Infinity)
    }
    return nearest
  }

  drain(): PendingRequest[] {
    const drained: PendingRequest[] = []
    for (const flow of [this.#own, ...this.#starving.drain(), ...this.#wantingMore.drain()]) {
      drained.push(...this.queueOf(flow).drain())
    }
    this.#length = 0
    return drained
  }

  #takeTurn(flow: Flow, place: TrySend): void {
    const queue = this.queueOf(flow)
    for (let next = queue.peek(); next !== undefined && place(next); next = queue.peek()) {
      queue.shift()
      this.#length--
    }
    this.#leaveIfEmpty(flow)
  }

  #leaveIfEmpty(flow: Flow): void {
    if (this.queueOf(flow).length === 0 && !flow.isOwn) this.#listOf(flow).remove(flow)
  }

  #listOf(flow: Flow): Fifo<Flow> {
    return flow.connections === 0 ? this.#starving : this.#wantingMore
  }
}

/** Minimum interval between checks of deadlines; each check visits all waiting flows. */
const EXPIRE_EVERY_MS = 5

/** The wait queue of a pool. */
export class WaitQueue {
  readonly units: WaitLine
  readonly streams: WaitLine
  readonly #options: WaitQueueOptions
  #timer: NodeJS.Timeout | null = null
  /** The deadline for which `#timer` is set. */
  #armedFor = Infinity

  constructor(options: WaitQueueOptions) {
    this.#options = options
    this.units = new WaitLine('batches', options.own)
    this.streams = new WaitLine('streams', options.own)
  }

  get length(): number {
    return this.units.length + this.streams.length
  }

  lineOf(exchange: PendingRequest): WaitLine {
    return exchange.exclusive ? this.streams : this.units
  }

  add(exchange: PendingRequest): void {
    this.lineOf(exchange).add(exchange)
    this.#arm(exchange.deadline)
  }

  /** Returns a request to the front: its connection broke, or its statement was stale. */
  putBack(exchange: PendingRequest): void {
    this.lineOf(exchange).putBack(exchange)
    this.#arm(exchange.deadline)
  }

  remove(exchange: PendingRequest): void {
    this.lineOf(exchange).remove(exchange)
  }

  moved(flow: Flow): void {
    this.units.moved(flow)
    this.streams.moved(flow)
  }

  /** Empties both lines and stops the timer. */
  drain(): PendingRequest[] {
    this.#disarm()
    return [...this.streams.drain(), ...this.units.drain()]
  }

  /** Sets the timer again if it fires too early. A returned request may need an earlier one. */
  #arm(deadline: number): void {
    if (deadline >= this.#armedFor) return
    this.#disarm()
    this.#armedFor = deadline
    const inMs = Math.max(EXPIRE_EVERY_MS, Math.ceil(deadline - this.#options.clock()))
    this.#timer = setTimeout(() => {
      this.#disarm()
      const now = this.#options.clock()
      this.units.expire(now, this.#options.expired)
      this.streams.expire(now, this.#options.expired)
      this.#arm(Math.min(this.units.nearestDeadline(), this.streams.nearestDeadline()))
    }, inMs)
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#armedFor = Infinity
  }
}
