/**
 * Opens the pool's connections: a few at a time normally, and one by one with growing pauses while the
 * database is unavailable.
 */
import type { Gss } from './auth/gss-attempts.ts'
import { type Backoff, delayMs } from './backoff.ts'
import { BlockedError, type ConnectError } from './errors.ts'
import { HostOrder } from './host-order.ts'
import { type Connected, connect } from './startup.ts'
import type { ConnectionTarget } from './target.ts'

/** Limit on connections being opened concurrently. */
const OPENING_MAX = 3
const RECONNECT: Backoff = { firstMs: 50, maxMs: 1_000 }

/** The options of a factory. */
export interface ConnectionFactoryOptions {
  readonly target: ConnectionTarget
  readonly throughPooler: boolean
  readonly gss: Gss | null
  readonly clock: () => number
  readonly random: () => number
  readonly opened: (connected: Connected, tookMs: number) => void
  readonly failed: (error: ConnectError, failures: number, retryInMs: number) => void
  /** Asked after a pause: whether a connection is still needed. */
  readonly isWanted: () => boolean
  /** Opens one connection; `startup.ts` by default. */
  readonly connect?: typeof connect
}

/** Opens connections for a pool. */
export class ConnectionFactory {
  readonly #options: ConnectionFactoryOptions
  readonly #shutdown = new AbortController()
  readonly #hosts: HostOrder
  #opening = 0
  #failures = 0
  #lastFailure: ConnectError | null = null
  #retryTimer: NodeJS.Timeout | null = null
  #retryAt = 0

  constructor(options: ConnectionFactoryOptions) {
    this.#options = options
    const { target, clock, random } = options
    this.#hosts = new HostOrder(target, { clock, random })
  }

  get opening(): number {
    return this.#opening
  }

  /** Why there is no connection; null if the last attempt succeeded. */
  get lastFailure(): ConnectError | null {
    return this.#lastFailure
  }

  get closed(): boolean {
    return this.#shutdown.signal.aborted
  }

  /**
   * Starts opening one more connection, unless enough (`wanted`) are being opened or the pause is not over.
   */
  open(wanted: number): void {
    if (this.closed) return
    if (this.#failures === 0) {
      if (this.#opening < Math.min(wanted, OPENING_MAX)) void this.#attempt()
      return
    }
    if (this.#opening > 0 || this.#retryTimer !== null) return
    const inMs = this.#retryAt - this.#options.clock()
    if (inMs <= 0) void this.#attempt()
    else this.#retryIn(inMs)
  }

  /** Aborts whatever is in progress. */
  close(reason: Error): void {
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer)
    this.#retryTimer = null
    this.#shutdown.abort(reason)
  }

  #retryIn(inMs: number): void {
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = null
      if (this.#options.isWanted()) void this.#attempt()
    }, inMs)
  }

  async #attempt(): Promise<void> {
    const { target, throughPooler, gss, clock, connect: open = connect } = this.#options
    const startedAt = clock()
    this.#opening++
    const outcome = await open({
      target,
      throughPooler,
      gss,
      hosts: this.#hosts,
      signal: this.#shutdown.signal,
    }).catch((error: ConnectError) => error)
    this.#opening--
    if (outcome instanceof Error) {
      if (!this.closed) this.#failed(outcome)
      return
    }
    this.#failures = 0
    this.#lastFailure = null
    this.#options.opened(outcome, clock() - startedAt)
  }

  #failed(error: ConnectError): void {
    this.#failures++
    this.#lastFailure = error
    const blockedMs = error instanceof BlockedError ? error.forMs : 0
    const retryInMs = Math.max(blockedMs, delayMs(RECONNECT, this.#failures, this.#options.random))
    this.#retryAt = this.#options.clock() + retryInMs
    if (this.#retryTimer === null) this.#retryIn(retryInMs)
    this.#options.failed(error, this.#failures, retryInMs)
  }
}
