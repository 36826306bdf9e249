/**
 * Assigns requests to connections. A request is sent immediately if its flow's share allows it (`shares.ts`)
 * and a connection is idle or has little to do (`scheduling.ts`). Otherwise it waits for its flow's turn
 * (`wait-queue.ts`). The pool owns sockets and opens connections.
 */

import { CancelledError, UnavailableError } from './errors.ts'
import { type Flow, Flows, OWN_FLOW } from './flow.ts'
import { createLatencyEstimates, type LatencyEstimates } from './latency-estimates.ts'
import type { PendingRequest } from './pending-request.ts'
import type { ResultBudget } from './result-budget.ts'
import { type Candidate, choose } from './scheduling.ts'
import type { Measured } from './service-times.ts'
import { Shares } from './shares.ts'
import { type WaitLine, WaitQueue } from './wait-queue.ts'

/** A connection as the dispatcher sees it. */
export interface Carrier extends Candidate {
  /** The flow whose requests it carries; null while it is free. Set by the dispatcher. */
  owner: Flow | null
  /** True if another flow can take it: everything is finished, and no cancel request is in progress. */
  readonly isFree: boolean
  readonly streaming: boolean
  /** Sends a request. If encoding throws, nothing was sent. */
  send(exchange: PendingRequest): void
}

/** The options of a dispatcher. */
export interface DispatcherOptions {
  /** The size of the pool, counting connections not opened yet. */
  readonly size: number
  /** Limit on the connections of a flow while no other flow has any. */
  readonly flowMax: number
  /** Limit on the concurrent streams of one flow. */
  readonly flowStreamsMax: number
  readonly waitingMax: number
  readonly acquireTimeoutMs: number
  readonly clock: () => number
  readonly budget: ResultBudget
  /** Called when one more connection would be useful. */
  readonly grow: () => void
  /** Called when a request has waited until its deadline. */
  readonly expired: (exchange: PendingRequest) => void
}

/** Assigns requests to connections. */
export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #carriers: Carrier[] = []
  readonly #costs: LatencyEstimates = createLatencyEstimates()
  readonly #flows = new Flows()
  readonly #shares: Shares
  readonly #waiting: WaitQueue
  readonly #streamsMax: number
  #streams = 0
  #held = 0
  #streamsHeld = 0

  constructor(options: DispatcherOptions) {
    const { size, flowMax, clock, expired } = options
    this.#options = options
    this.#shares = new Shares({ size, flowMax })
    this.#waiting = new WaitQueue({ own: this.#flows.own, clock, expired })
    // One connection is reserved for everything else, unless there is only one.
    this.#streamsMax = Math.max(1, size - 1)
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Flows with waiting requests. */
  get waitingFlows(): number {
    return this.#waiting.units.flows + this.#waiting.streams.flows
  }

  get streams(): number {
    return this.#streams
  }

  /** Requests so far that waited because their flow had used up its share while a connection was free. */
  get held(): number {
    return this.#held
  }

  /** Streams so far that waited because their flow had reached its limit. */
  get streamsHeld(): number {
    return this.#streamsHeld
  }

  /** The flow with this key; without one, that of the gateway's own transactions. */
  flowOf(key: string | undefined): Flow {
    return this.#flows.find(key ?? OWN_FLOW)
  }

  submit(exchange: PendingRequest): void {
    const { flow } = exchange
    exchange.deadline = this.#options.clock() + this.#options.acquireTimeoutMs
    const line = this.#waiting.lineOf(exchange)
    if (line.queueOf(flow).length === 0 && this.#mayJoin(flow) && this.#trySend(exchange)) return
    if (this.#isCrowded(flow, line)) {
      const message = `${this.#options.waitingMax} requests are already waiting for a database connection`
      exchange.reject(new UnavailableError(message, false))
      return
    }
    if (exchange.exclusive && !this.#mayStream(flow)) this.#streamsHeld++
    else if (this.#shares.free > 0 && !this.#shares.allows(flow)) this.#held++
    this.#waiting.add(exchange)
    this.#growIfAllowed(flow)
  }

  /** Returns a request that had its turn but could not be sent. */
  putBack(exchange: PendingRequest): void {
    this.#waiting.putBack(exchange)
  }

  /** Removes a request from the queue. */
  withdraw(exchange: PendingRequest): void {
    this.#waiting.remove(exchange)
  }

  /** Empties the queue. */
  drain(): readonly PendingRequest[] {
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

  /** Called when a connection has finished a request. */
  answered(carrier: Carrier, exchange: PendingRequest): void {
    if (exchange.exclusive) this.#streamEnded(carrier)
    if (carrier.isFree) this.#release(carrier)
  }

  /** Called when it is known how long the server took for finished requests. */
  learn(times: readonly Measured[]): void {
    for (const { latencyKey, ms } of times) this.#costs.learn(latencyKey, ms)
  }

  /** Called when a connection can take work again. */
  available(carrier: Carrier): void {
    if (carrier.isFree) this.#release(carrier)
  }

  /**
   * Gives every waiting flow a turn. Called after a connection has finished a request, was added or removed.
   */
  dispatch(): void {
    if (this.#waiting.length === 0) return
    if (this.#streams < this.#streamsMax) this.#waiting.streams.serve(this.#trySend)
    this.#waiting.units.serve(this.#trySend)
  }

  /**
   * True if a flow without a connection is waiting. Other flows then send nothing more, so that a connection
   * becomes free.
   */
  get #isContended(): boolean {
    const { units, streams } = this.#waiting
    return units.isStarving || (streams.isStarving && this.#streams < this.#streamsMax)
  }

  #mayJoin(flow: Flow): boolean {
    return flow.isOwn || this.#waiting.length === 0 || !this.#isContended
  }

  /** Applies the connections' threshold to the queue: a flow may have as many places as are free. */
  #isCrowded(flow: Flow, line: WaitLine): boolean {
    const free = this.#options.waitingMax - this.#waiting.length
    return free <= 0 || (!flow.isOwn && line.queueOf(flow).length >= free)
  }

  /** Sends a request if a connection can take it; returns false if it has to wait. */
  readonly #trySend = (exchange: PendingRequest): boolean => {
    if (exchange.cancelled) {
      // It was cancelled while it was pending on a connection that broke.
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
    const mayTake = this.#canTake(flow)
    exchange.expectedMs = this.#costs.expect(exchange.latencyKey)
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

  /** True if a flow may take a further connection: not while another flow waits for its first. */
  #canTake(flow: Flow): boolean {
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
