/**
 * On whose behalf exchanges run: a tenant, a user without a tenant, or the gateway itself. A connection carries the exchanges of one flow at a time, so that
 * no exchange waits behind another flow's statement, however long that takes.
 */
import type { Exchange } from './exchange.ts'
import { Fifo } from './fifo.ts'

/** Key of the gateway's own flow: the catalogue, health checks, the change log. It has no share and does not wait its turn. */
export const OWN_FLOW = ''

/** Idle flows are kept up to this number, so that a request of a known tenant allocates nothing. */
const IDLE_FLOWS_MAX = 1_024

export class Flow {
  readonly key: string
  /** Connections that carry its exchanges, or are not free again yet. */
  connections = 0
  /** Connections among them that carry a stream. */
  streaming = 0
  /** What waits for a connection, each in order of arrival. */
  readonly units: Fifo<Exchange> = new Fifo()
  readonly streams: Fifo<Exchange> = new Fifo()

  constructor(key: string) {
    this.key = key
  }

  get isOwn(): boolean {
    return this.key === OWN_FLOW
  }

  get isIdle(): boolean {
    return this.connections === 0 && this.units.length === 0 && this.streams.length === 0
  }
}

/** For exchanges that are sent without a dispatcher, such as those of the listener. */
export const NO_FLOW: Flow = new Flow(OWN_FLOW)

/** Flows by key. Idle ones are forgotten from time to time. */
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
    if (this.#flows.size >= this.#forgetAt) this.#forgetIdle()
    const flow = new Flow(key)
    this.#flows.set(key, flow)
    return flow
  }

  /** Runs again when as many new flows have come as are left, so that its cost per flow is constant. */
  #forgetIdle(): void {
    for (const [key, flow] of this.#flows) if (flow.isIdle) this.#flows.delete(key)
    this.#forgetAt = Math.max(IDLE_FLOWS_MAX, this.#flows.size * 2)
  }
}
