/**
 * A flow: the requests of a tenant, of a user without a tenant, or of the gateway itself. A connection
 * carries the requests of one flow at a time, so that no request waits behind another flow's statement.
 */

import { Fifo } from './fifo.ts'
import type { PendingRequest } from './pending-request.ts'

/**
 * The key of the gateway's own flow: catalog, health checks, change log. It has no share and takes
 * precedence.
 */
export const OWN_FLOW = ''

/** Limit on idle flows, which are kept so that a request of a known tenant allocates nothing. */
const IDLE_FLOWS_MAX = 1_024

/** The scheduling state of one flow. */
export class Flow {
  readonly key: string
  /** Connections that carry its requests or are not free again yet. */
  connections = 0
  /** Those of them that carry a stream. */
  streaming = 0
  /** Waiting requests, in order of arrival. */
  readonly batches: Fifo<PendingRequest> = new Fifo()
  readonly streams: Fifo<PendingRequest> = new Fifo()

  constructor(key: string) {
    this.key = key
  }

  get isOwn(): boolean {
    return this.key === OWN_FLOW
  }

  get isIdle(): boolean {
    return this.connections === 0 && this.batches.length === 0 && this.streams.length === 0
  }
}

/** For requests sent without a dispatcher, such as those of the listener. */
export const NO_FLOW: Flow = new Flow(OWN_FLOW)

/** Flows by key. Idle ones are dropped from time to time. */
export class Flows {
  readonly own: Flow = new Flow(OWN_FLOW)
  readonly #flows = new Map<string, Flow>()
  #forgetAt = IDLE_FLOWS_MAX

  get size(): number {
    return this.#flows.size
  }

  find(key: string): Flow {
    if (key === OWN_FLOW) return this.own
    const known = this.#flows.get(key)
    if (known !== undefined) return known
    if (this.#flows.size >= this.#forgetAt) this.#dropIdle()
    const flow = new Flow(key)
    this.#flows.set(key, flow)
    return flow
  }

  /** Runs again after as many new flows as were left, so that its cost per flow is constant. */
  #dropIdle(): void {
    for (const [key, flow] of this.#flows) if (flow.isIdle) this.#flows.delete(key)
    this.#forgetAt = Math.max(IDLE_FLOWS_MAX, this.#flows.size * 2)
  }
}
