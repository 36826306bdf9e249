/**
 * Gives exchanges to connections. An exchange is sent at once if its flow's share allows it (`shares.ts`) and a connection is idle or has little to do
 * (`scheduling.ts`). Otherwise it waits for its flow's turn (`waiting.ts`). Sockets, and how connections are opened, are up to the pool.
 */
import { type Costs, createCosts, type Took } from './costs.ts'
import { CancelledError, UnavailableError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { type Flow, Flows, OWN_FLOW } from './flow.ts'
import type { ResultBudget } from './result-budget.ts'
import { type Candidate, choose } from './scheduling.ts'
import { Shares } from './shares.ts'
import type { Command } from './types.ts'
import { type Line, Waiting } from './waiting.ts'

export interface Carrier extends Candidate {
  /** The flow whose exchanges it carries; null while it is free. Set by the dispatcher. */
  owner: Flow | null
  /** True if another flow can take it: everything is answered, and no cancel request is under way. */
  readonly isFree: boolean
  readonly streaming: boolean
  /** Throws what encoding throws; then nothing was sent. */
  send(exchange: Exchange): void
}

export interface DispatcherOptions {
  /** Connections of the pool, whether open or not. */
  readonly size: number
  /** Connections of a flow that is alone. */
  readonly flowMax: number
  /** Streams of one flow at the same time. */
  readonly flowStreamsMax: number
  readonly waitingMax: number
  readonly acquireTimeoutMs: number
  readonly clock: () => number
  readonly budget: ResultBudget
  /** One more connection would be worth having. */
  readonly grow: () => void
  /** It waited for a connection until its deadline. */
  readonly expired: (exchange: Exchange) => void
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #carriers: Carrier[] = []
  readonly #costs: Costs = createCosts()
  readonly #flows = new Flows()
  readonly #shares: Shares
  readonly #waiting: Waiting
  readonly #streamsMax: number
  #streams = 0
  #held = 0
  #streamsHeld = 0

  constructor(options: DispatcherOptions) {
    const { size, flowMax, clock, expired } = options
    this.#options = options
    this.#shares = new Shares({ size, flowMax })
    this.#waiting = new Waiting({ own: this.#flows.own, clock, expired })
    // One connection stays for everything else, unless there is only one.
    this.#streamsMax = Math.max(1, size - 1)
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Flows with something that waits. */
  get waitingFlows(): number {
    return this.#waiting.units.flows + this.#waiting.streams.flows
  }

  get streams(): number {
    return this.#streams
  }

  /** Since the start: exchanges that had to wait because their flow had used up its share, while a connection was free. */
  get held(): number {
    return this.#held
  }

  /** Since the start: streams that had to wait because their flow had as many as it can have. */
  get streamsHeld(): number {
    return this.#streamsHeld
  }

  /** Of a transaction that begins with this command. */
  flowOf(first: Command | undefined): Flow {
    return this.#flows.find(first?.flow ?? OWN_FLOW)
  }

  submit(exchange: Exchange): void {
    const { flow } = exchange
    exchange.deadline = this.#options.clock() + this.#options.acquireTimeoutMs
    const line = this.#waiting.lineOf(exchange)
    if (line.queueOf(flow).length === 0 && this.#mayJoin(flow) && this.#place(exchange)) return
    if (this.#isCrowded(flow, line)) {
      const message = `${this.#options.waitingMax} requests are waiting for a database connection already`
      exchange.reject(new UnavailableError(message, false))
      return
    }
    if (exchange.exclusive && !this.#mayStream(flow)) this.#streamsHeld++
    else if (this.#shares.free > 0 && !this.#shares.allows(flow)) this.#held++
    this.#waiting.add(exchange)
    this.#growIfAllowed(flow)
  }

  /** For an exchange that had its turn and could not use it. */
  putBack(exchange: Exchange): void {
    this.#waiting.putBack(exchange)
  }

  /** Takes it out of the queue. */
  withdraw(exchange: Exchange): void {
    this.#waiting.remove(exchange)
  }

  /** Empties the queue. */
  drain(): readonly Exchange[] {
    return this.#waiting.drain()
  }

  add(carrier: Carrier): void {
    this.#carriers.push(carrier)
    this.dispatch()
    if (this.#isContended) this.#options.grow()
  }

  remove(carrier: Carrier): void {
    const index = this.#carriers.indexOf(carrier)
    if (index !== -1) this.#carriers.splice(index, 1)
    if (carrier.streaming) this.#streamEnded(carrier)
    this.#release(carrier)
  }

  /** The carrier has been answered an exchange. */
  answered(carrier: Carrier, exchange: Exchange, took: Took): void {
    if (exchange.exclusive) this.#streamEnded(carrier)
    else this.#costs.learn(exchange.costKey, took)
    if (carrier.isFree) this.#release(carrier)
  }

  /** The carrier takes work again. */
  available(carrier: Carrier): void {
    if (carrier.isFree) this.#release(carrier)
  }

  /** Gives every flow that waits a turn. Call it after a connection has been answered, added or removed. */
  dispatch(): void {
    if (this.#waiting.length === 0) return
    if (this.#streams < this.#streamsMax) this.#waiting.streams.serve(this.#place)
    this.#waiting.units.serve(this.#place)
  }

  /** True while a flow without a connection waits. The other flows then send nothing more, so that a connection becomes free. */
  get #isContended(): boolean {
    const { units, streams } = this.#waiting
    return units.isStarving || (streams.isStarving && this.#streams < this.#streamsMax)
  }

  #mayJoin(flow: Flow): boolean {
    return flow.isOwn || this.#waiting.length === 0 || !this.#isContended
  }

  /** The queue has the same threshold as the connections: a flow may have as many places as are free. */
  #isCrowded(flow: Flow, line: Line): boolean {
    const free = this.#options.waitingMax - this.#waiting.length
    return free <= 0 || (!flow.isOwn && line.queueOf(flow).length >= free)
  }

  /** Sends it on a connection, if there is one for it; returns false if it has to wait. */
  readonly #place = (exchange: Exchange): boolean => {
    if (exchange.cancelled) {
      // It was cancelled while it lay in a connection that broke.
      exchange.reject(new CancelledError())
      return true
    }
    const { flow } = exchange
    const refusal = flow.isOwn ? null : this.#options.budget.beforeStart(flow.key, exchange.readsOnly)
    if (refusal !== null) {
      exchange.reject(refusal)
      return true
    }
    if (exchange.exclusive && (this.#streams >= this.#streamsMax || !this.#mayStream(flow))) return false
    const mayTake = this.#mayTake(flow)
    exchange.expectedMs = this.#costs.expect(exchange.costKey)
    const weight = exchange.exclusive ? Infinity : exchange.expectedMs
    const { candidate, grow } = choose(this.#carriers, flow, mayTake, weight, this.#options.clock())
    if (grow && mayTake) this.#options.grow()
    if (candidate === null) return false
    if (candidate.owner === null) this.#take(candidate, flow)
    try {
      candidate.send(exchange)
    } catch (error) {
      if (candidate.isFree) this.#release(candidate)
      exchange.reject(error as Error)
      return true
    }
    if (exchange.exclusive) {
      this.#streams++
      flow.streaming++
    }
    return true
  }

  #mayStream(flow: Flow): boolean {
    return flow.isOwn || flow.streaming < this.#options.flowStreamsMax
  }

  #streamEnded({ owner }: Carrier): void {
    this.#streams--
    if (owner !== null) owner.streaming--
  }

  /** No flow takes a second connection while another waits for its first. */
  #mayTake(flow: Flow): boolean {
    return this.#shares.allows(flow) && (flow.connections === 0 || flow.isOwn || !this.#isContended)
  }

  #growIfAllowed(flow: Flow): void {
    if (this.#shares.allows(flow)) this.#options.grow()
  }

  #take(carrier: Carrier, flow: Flow): void {
    carrier.owner = flow
    this.#shares.take(flow)
    if (flow.connections === 1) this.#waiting.moved(flow)
  }

  #release(carrier: Carrier): void {
    const { owner } = carrier
    if (owner === null) return
    carrier.owner = null
    this.#shares.release(owner)
    if (owner.connections === 0) this.#waiting.moved(owner)
  }
}
