/**
 * Limits the connections of one flow. A running statement cannot be preempted and its duration is not known,
 * so some connections are kept free of flows that already have several: a *dynamic threshold*, as switches
 * use it to share packet buffers (Choudhury and Hahne, 1998). A flow may take another connection while it has
 * fewer than a fixed multiple of the free ones. A single flow gets `flowMax`; with more flows each gets
 * fewer, and one without a connection may take any free one.
 */
import type { Flow } from './flow.ts'

/** The size of the pool, and the limit per flow. */
export interface SharesOptions {
  /** The size of the pool, counting connections not opened yet. */
  readonly size: number
  /** Limit on the connections of a single flow; `size` or more means no limit. */
  readonly flowMax: number
}

/** Counts connections by flow. */
export class Shares {
  readonly #size: number
  readonly #flowMax: number
  readonly #reserve: number
  #taken = 0
  /** Flows that have a connection. */
  #flows = 0

  constructor({ size, flowMax }: SharesOptions) {
    this.#size = size
    this.#flowMax = Math.min(flowMax, size)
    this.#reserve = size - this.#flowMax
  }

  get taken(): number {
    return this.#taken
  }

  get free(): number {
    return this.#size - this.#taken
  }

  /** True if the flow may take one more connection. */
  allows(flow: Flow): boolean {
    if (flow.connections === 0 || flow.isOwn) return true
    // With several flows, a flow leaves at least one connection for a new one.
    const free = this.#flows > 1 ? this.free - 1 : this.free
    return flow.connections * this.#reserve < this.#flowMax * free
  }

  take(flow: Flow): void {
    if (flow.connections === 0) this.#flows++
    flow.connections++
    this.#taken++
  }

  release(flow: Flow): void {
    flow.connections--
    this.#taken--
    if (flow.connections === 0) this.#flows--
  }
}
