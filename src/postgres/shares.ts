/**
 * How many connections one flow may use. A running statement cannot be interrupted, and no estimate says how long it takes, so some connections are kept free
 * of a flow that has several already: a *dynamic threshold*, as switches use it to share packet buffers (Choudhury and Hahne, 1998). A flow may take another
 * connection while the number it has is below a fixed multiple of the number that is free. A flow that is alone gets `flowMax`; with more flows each gets less,
 * and one without a connection may take any that is free.
 */
import type { Flow } from './flow.ts'

export interface SharesOptions {
  /** Connections of the pool, whether open or not. */
  readonly size: number
  /** Connections of a flow that is alone; `size` or more means no limit. */
  readonly flowMax: number
}

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

  /** Returns true if the flow may take one more connection. */
  allows(flow: Flow): boolean {
    if (flow.connections === 0 || flow.isOwn) return true
    // Beside others, a flow takes no more than what leaves one for a newcomer.
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
