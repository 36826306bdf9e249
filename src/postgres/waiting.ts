/**
 * Exchanges that wait for a connection, each until its deadline. Flows take turns: those without a connection first, round-robin, then those that want more
 * than they have. Streams wait apart from units: they are few, and may be held back.
 */
import type { Exchange } from './exchange.ts'
import { Fifo } from './fifo.ts'
import type { Flow } from './flow.ts'

export interface WaitingOptions {
  /** The gateway's own; it does not take turns. */
  readonly own: Flow
  readonly clock: () => number
  /** It waited until its deadline, and has been taken out. */
  readonly expired: (exchange: Exchange) => void
}

/** Returns true if a connection has taken the exchange. */
type Place = (exchange: Exchange) => boolean

/** Flows that wait with exchanges of one kind. */
export class Line {
  readonly #kind: 'units' | 'streams'
  readonly #own: Flow
  /** Flows without a connection, in turn. */
  readonly #starving = new Fifo<Flow>()
  /** Flows that have a connection and want more, in turn; there are no more of them than connections. */
  readonly #greedy = new Fifo<Flow>()
  #length = 0

  constructor(kind: 'units' | 'streams', own: Flow) {
    this.#kind = kind
    this.#own = own
  }

  get length(): number {
    return this.#length
  }

  /** True while a flow without any connection waits. */
  get isStarving(): boolean {
    return this.#starving.length > 0 || this.#own[this.#kind].length > 0
  }

  /** Flows that wait, the gateway's own among them. */
  get flows(): number {
    return this.#starving.length + this.#greedy.length + Math.min(this.#own[this.#kind].length, 1)
  }

  queueOf(flow: Flow): Fifo<Exchange> {
    return flow[this.#kind]
  }

  add(exchange: Exchange): void {
    const { flow } = exchange
    const queue = this.queueOf(flow)
    queue.push(exchange)
    this.#length++
    if (queue.length === 1 && !flow.isOwn) this.#listOf(flow).push(flow)
  }

  putBack(exchange: Exchange): void {
    const { flow } = exchange
    const queue = this.queueOf(flow)
    queue.unshift(exchange)
    this.#length++
    if (queue.length === 1 && !flow.isOwn) this.#listOf(flow).unshift(flow)
  }

  remove(exchange: Exchange): void {
    const { flow } = exchange
    if (!this.queueOf(flow).remove(exchange)) return
    this.#length--
    this.#leaveIfEmpty(flow)
  }

  /** The flow has got its first connection, or lost its last. */
  moved(flow: Flow): void {
    if (this.queueOf(flow).length === 0 || flow.isOwn) return
    const list = this.#listOf(flow)
    const other = list === this.#greedy ? this.#starving : this.#greedy
    if (other.remove(flow)) list.push(flow)
  }

  /** Gives every flow its turn, as far as there are connections for them. */
  serve(place: Place): void {
    this.#takeTurn(this.#own, place)
    for (let next = this.#starving.peek(); next !== undefined; next = this.#starving.peek()) {
      this.#takeTurn(next, place)
      if (this.#starving.peek() === next) return
    }
    if (this.isStarving) return
    for (let turns = this.#greedy.length; turns > 0; turns--) {
      const flow = this.#greedy.shift() as Flow
      this.#greedy.push(flow)
      this.#takeTurn(flow, place)
    }
  }

  expire(now: number, expired: (exchange: Exchange) => void): void {
    for (const flow of [this.#own, ...this.#starving, ...this.#greedy]) {
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
    for (const list of [this.#starving, this.#greedy]) {
      for (const flow of list) nearest = Math.min(nearest, this.queueOf(flow).peek()?.deadline ?? Infinity)
    }
    return nearest
  }

  drain(): Exchange[] {
    const drained: Exchange[] = []
    for (const flow of [this.#own, ...this.#starving.drain(), ...this.#greedy.drain()]) {
      drained.push(...this.queueOf(flow).drain())
    }
    this.#length = 0
    return drained
  }

  #takeTurn(flow: Flow, place: Place): void {
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
    return flow.connections === 0 ? this.#starving : this.#greedy
  }
}

/** Deadlines are looked at this often at most: each look visits all flows that wait. */
const EXPIRE_EVERY_MS = 5

export class Waiting {
  readonly units: Line
  readonly streams: Line
  readonly #options: WaitingOptions
  #timer: NodeJS.Timeout | null = null
  /** The deadline for which `#timer` is set. */
  #armedFor = Infinity

  constructor(options: WaitingOptions) {
    this.#options = options
    this.units = new Line('units', options.own)
    this.streams = new Line('streams', options.own)
  }

  get length(): number {
    return this.units.length + this.streams.length
  }

  lineOf(exchange: Exchange): Line {
    return exchange.exclusive ? this.streams : this.units
  }

  add(exchange: Exchange): void {
    this.lineOf(exchange).add(exchange)
    this.#arm(exchange.deadline)
  }

  /** To the front: it had its turn, and its connection broke or its statement was stale. */
  putBack(exchange: Exchange): void {
    this.lineOf(exchange).putBack(exchange)
    this.#arm(exchange.deadline)
  }

  remove(exchange: Exchange): void {
    this.lineOf(exchange).remove(exchange)
  }

  moved(flow: Flow): void {
    this.units.moved(flow)
    this.streams.moved(flow)
  }

  /** Empties both lines and stops the clock. */
  drain(): Exchange[] {
    this.#disarm()
    return [...this.streams.drain(), ...this.units.drain()]
  }

  /** A timer that fires too early is set again. An exchange that is put back can need an earlier one. */
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
