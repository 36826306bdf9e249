/**
 * The hosts of a target in the order in which they are tried: as listed, or shuffled
 * (`load_balance_hosts=random`). Hosts that have just failed come last, so that a new connection does not
 * wait for one that is down.
 */
import type { Address, ConnectionTarget } from './target.ts'

/** How long a failure counts. A returned host is preferred again after this time. */
const FAILED_MS = 5_000

/** The clock and random numbers of an order. */
export interface HostOrderOptions {
  /** Monotonic milliseconds. */
  readonly clock?: () => number
  readonly random?: () => number
}

/** Remembers which hosts of a target have failed. */
export class HostOrder {
  readonly #target: ConnectionTarget
  readonly #clock: () => number
  readonly #random: () => number
  readonly #failedAt = new Map<Address, number>()

  constructor(target: ConnectionTarget, { clock = () => performance.now(), random = Math.random }: HostOrderOptions) {
    this.#target = target
    this.#clock = clock
    this.#random = random
  }

  /** The target once for each host, with only that host. */
  next(): readonly ConnectionTarget[] {
    const target = this.#target
    const listed = [target.address, ...target.others]
    const addresses = target.loadBalanceHosts === 'random' ? this.#shuffled(listed) : listed
    const since = this.#clock() - FAILED_MS
    const hasFailed = (address: Address): boolean => (this.#failedAt.get(address) ?? -Infinity) > since
    return [...addresses.filter(address => !hasFailed(address)), ...addresses.filter(hasFailed)].map(address => ({
      ...target,
      address,
      others: [],
    }))
  }

  failed(address: Address): void {
    this.#failedAt.set(address, this.#clock())
  }

  worked(address: Address): void {
    this.#failedAt.delete(address)
  }

  #shuffled(addresses: readonly Address[]): Address[] {
    const rest = [...addresses]
    return addresses.map(() => rest.splice(Math.floor(this.#random() * rest.length), 1)[0] as Address)
  }
}
