/**
 * The budget for bytes of results in memory. They count from the moment they are read from the database's
 * socket; until then PostgreSQL holds them. The creator of the pool sets the budget and can share it with
 * other data kept for clients.
 */
import type { Flow } from './flow.ts'

/** Limits results in memory. */
export interface ResultBudget {
  /**
   * Returns why a request must not be started; null if it may. `readsOnly`: it can still be refused while its
   * result is read.
   */
  beforeStart(flow: string, readsOnly: boolean): Error | null
  /** Returns why a read must be aborted; null if it may continue. `own` is its share of the counted bytes. */
  whileReading(flow: string, own: number): Error | null
  take(flow: string, bytes: number): void
  give(flow: string, bytes: number): void
}

/** A budget without a limit. */
export const UNLIMITED_BUDGET: ResultBudget = {
  beforeStart: () => null,
  whileReading: () => null,
  take() {},
  give() {},
}

/** Smaller results are not counted: the number of connections bounds them. */
export const UNCOUNTED_BYTES: number = 64 * 1024

/** Results are counted in steps of this size. */
export const STEP_BYTES: number = 256 * 1024

/** Overhead of a row: an array, and a view for each value. */
export const ROW_BYTES = 256

/** The bytes that one result holds of the budget. */
export class HeldBytes {
  readonly #budget: ResultBudget
  readonly #flow: Flow
  #bytes = 0

  constructor(budget: ResultBudget, flow: Flow) {
    this.#budget = budget
    this.#flow = flow
  }

  /** Counts up to `bytes`. Returns why they must not be taken; only if the result can be refused. */
  grow(bytes: number, canRefuse: boolean): Error | null {
    const { key, isOwn } = this.#flow
    const refusal = canRefuse && !isOwn ? this.#budget.whileReading(key, this.#bytes) : null
    if (refusal !== null || bytes <= this.#bytes) return refusal
    this.#budget.take(key, bytes - this.#bytes)
    this.#bytes = bytes
    return null
  }

  release(): void {
    if (this.#bytes > 0) this.#budget.give(this.#flow.key, this.#bytes)
    this.#bytes = 0
  }

  /**
   * Releases a result that was passed on: what is made of it is counted by the end of this turn of the event
   * loop.
   */
  releaseSoon(): void {
    if (this.#bytes === 0) return
    const bytes = this.#bytes
    this.#bytes = 0
    setImmediate(() => this.#budget.give(this.#flow.key, bytes))
  }
}
