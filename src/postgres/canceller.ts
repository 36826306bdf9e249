/**
 * Decides when a connection's cancel request is sent. A cancel request identifies a session, not a statement:
 * it is sent only while everything the session was given is cancelled, and the session is given nothing new
 * until the request's own connection is closed, because only then has the signal been sent.
 */
import { type CancelOutcome, requestCancel } from './cancel.ts'
import type { ServerSession } from './startup-conversation.ts'
import type { ConnectionTarget } from './target.ts'

/** Most statements finish sooner than a second connection could be opened to cancel them. */
const CANCEL_AFTER_MS = 5
/**
 * A cancel request may overtake the statement it is meant for, so it is repeated with growing intervals until
 * the response arrives.
 */
const CANCEL_AGAIN_MS = 100
const CANCEL_AGAIN_MS_MAX = 2_000

/** The options of a canceller. */
export interface CancellerOptions {
  readonly target: ConnectionTarget
  readonly session: ServerSession
  /** True if everything the session was given is cancelled, and there is something to cancel. */
  readonly canCancel: () => boolean
  /** Called when a request is over. */
  readonly requested: (outcome: CancelOutcome) => void
}

/** Sends the cancel requests of one connection. */
export class Canceller {
  readonly #options: CancellerOptions
  #timer: NodeJS.Timeout | null = null
  #inFlight = false
  #closed = false

  constructor(options: CancellerOptions) {
    this.#options = options
  }

  /** True if a request is in progress; it is unknown what it will cancel. */
  get inFlight(): boolean {
    return this.#inFlight
  }

  /** Called whenever `mayCancel` may have become true. */
  consider(delayMs: number = CANCEL_AFTER_MS): void {
    // Process 0: the server sent no cancellation key.
    const impossible = this.#closed || this.#options.session.processId === 0
    if (impossible || this.#timer !== null || this.#inFlight || !this.#options.canCancel()) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      if (this.#options.canCancel()) void this.#send(delayMs)
    }, delayMs)
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  async #send(lastDelayMs: number): Promise<void> {
    this.#inFlight = true
    const outcome = await requestCancel(this.#options.target, this.#options.session)
    this.#inFlight = false
    if (this.#closed) return
    this.#options.requested(outcome)
    this.consider(Math.min(Math.max(lastDelayMs * 2, CANCEL_AGAIN_MS), CANCEL_AGAIN_MS_MAX))
  }
}
