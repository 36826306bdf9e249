/**
 * Decides when a connection's cancel request goes out. Such a request names a session, not a statement: it may be sent
 * only while everything that the session has been given is cancelled, and until its own connection is closed – the
 * signal has then been sent – the session must be given nothing new.
 */
import { type CancelOutcome, requestCancel } from './cancel.ts'
import type { Session } from './conversation.ts'
import type { ConnectionTarget } from './target.ts'

/** Most statements end by themselves sooner than a second connection could be opened to cancel them. */
const CANCEL_AFTER_MS = 5
/** A cancel request may overtake the statement it means; it is repeated, ever more slowly, until the answer is there. */
const CANCEL_AGAIN_MS = 100
const CANCEL_AGAIN_MS_MAX = 2_000

export interface CancellerOptions {
  readonly target: ConnectionTarget
  readonly session: Session
  /** Everything the session has been given is cancelled, and there is something. */
  readonly mayCancel: () => boolean
  /** A request is over. */
  readonly requested: (outcome: CancelOutcome) => void
}

export class Canceller {
  readonly #options: CancellerOptions
  #timer: NodeJS.Timeout | null = null
  #inFlight = false
  #closed = false

  constructor(options: CancellerOptions) {
    this.#options = options
  }

  /** A request is on its way; nobody knows what it will hit. */
  get inFlight(): boolean {
    return this.#inFlight
  }

  /** To be called whenever `mayCancel` may have become true. */
  consider(delayMs: number = CANCEL_AFTER_MS): void {
    // Process 0: the server gave no key to cancel with.
    const impossible = this.#closed || this.#options.session.processId === 0
    if (impossible || this.#timer !== null || this.#inFlight || !this.#options.mayCancel()) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      if (this.#options.mayCancel()) void this.#send(delayMs)
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
