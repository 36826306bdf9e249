/**
 * Replaces the database connections when functions can leave more in a session than the gateway knew. Until
 * it reads the new schema, it resets nothing after a function that was harmless before (decision 0044).
 */
import type { Catalog, FunctionReach } from '../catalog/model.ts'
import { leavesMore } from '../run/session-reset.ts'

/** Holds connections whose sessions can have kept something. */
export interface Renewable {
  /** Replaces its connections, each when its requests are finished. */
  renew(): void
}

/** Compares each catalog with the one before it. */
export class SessionRenewal {
  readonly #sources: readonly { current(): Catalog }[]
  readonly #connections: readonly Renewable[]
  #known: readonly FunctionReach[]

  constructor(sources: readonly { current(): Catalog }[], connections: readonly Renewable[]) {
    this.#sources = sources
    this.#connections = connections
    this.#known = this.#current()
  }

  /** Called when a catalog has changed. */
  changed(): void {
    const known = this.#known
    this.#known = this.#current()
    const isMore = this.#known.some((reach, index) => leavesMore(known[index] ?? reach, reach))
    if (isMore) for (const connections of this.#connections) connections.renew()
  }

  #current(): readonly FunctionReach[] {
    return this.#sources.map(source => source.current().functionReach)
  }
}
