/**
 * The bytes of results that are in memory. They count from the moment they are read from the database's socket: until then PostgreSQL keeps them. Whoever makes
 * the pool decides how many there may be, and shares the budget with what else is kept for clients.
 */
import type { Flow } from './flow.ts'

export interface ResultBudget {
  /** Returns why an exchange must not be started; null if it may be. `readsOnly`: it can still be refused while its result is read. */
  beforeStart(flow: string, readsOnly: boolean): Error | null
  /** Returns why a read must be given up; null if it may take more. `own` bytes of what is counted are its own. */
  whileReading(flow: string, own: number): Error | null
  take(flow: string, bytes: number): void
  give(flow: string, bytes: number): void
}

export const UNLIMITED: ResultBudget = { beforeStart: () => null, whileReading: () => null, take() {}, give() {} }

/** Smaller results are not counted: the connections limit their number. */
export const UNCOUNTED_BYTES: number = 64 * 1024

/** Results are counted in steps of this size. */
export const STEP_BYTES: number = 256 * 1024

/** What a row takes besides its bytes: an array, and a view for each value. */
export const ROW_BYTES = 256

/** What one result has taken of the budget. */
export class Held {
  readonly #budget: ResultBudget
  readonly #flow: Flow
  #bytes = 0

  constructor(budget: ResultBudget, flow: Flow) {
    this.#budget = budget
    this.#flow = flow
  }

  /** Counts up to `bytes`. Returns why they must not be taken, which happens only if the result can be refused. */
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

  /** For a result that is handed on: what is made of it is counted by the end of this turn of the event loop. */
  releaseSoon(): void {
    if (this.#bytes === 0) return
    const bytes = this.#bytes
    this.#bytes = 0
    setImmediate(() => this.#budget.give(this.#flow.key, bytes))
  }
}
