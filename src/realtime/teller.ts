/** Tells one subscription of one client what its hub sees for it, in the client's words: its own id, its events, a place to come back to. */

import { mergeSteps, type Operation } from './change.ts'
import type { ResyncReason } from './group.ts'
import type { Subscription } from './hub.ts'
import type { Told } from './look.ts'
import type { Outbox, Recipient } from './outbox.ts'
import { printMessage, printNotification, printSeen } from './server-message.ts'

/** A client that misses again and again is told so at most this often. */
const RESYNC_INTERVAL_MS = 1_000

export interface TellerParts {
  /** The client's name for it. */
  readonly id: string
  readonly channel: string
  readonly table: string
  readonly events: readonly Operation[]
  readonly outbox: Outbox
  readonly now: () => number
  readonly count: { notification(at: string): void; resync(reason: ResyncReason): void }
}

export class Teller implements Recipient {
  readonly #parts: TellerParts
  #subscription: Subscription | null = null
  #reason: ResyncReason = 'bulk'
  #resyncedAt: number = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | null = null
  /** The last place that the client was told of, and that it can go on from. */
  #place = ''

  constructor(parts: TellerParts) {
    this.#parts = parts
  }

  /** The client has been told that it is subscribed, and where. */
  begin(subscription: Subscription): void {
    this.#subscription = subscription
    this.#place = subscription.place
    subscription.start()
  }

  see(told: readonly Told[]): void {
    const { id, channel, table, events, outbox, count } = this.#parts
    for (const item of told) {
      // Who goes away before it is told to read again has to come back to where it missed something.
      if (this.#timer === null) this.#place = item.token
      // Merged first, an update right after the insert would be part of that.
      const operation = mergeSteps(
        item.steps.filter(step => events.includes(step.operation)),
        item.row !== null,
      )
      if (operation === null) continue
      count.notification(item.change.at)
      outbox.notify(this, item.key, printNotification(id, channel, printSeen(item, operation, table), this.#place))
    }
  }

  resync(reason: ResyncReason): void {
    this.#reason = reason
    if (this.#timer !== null) return
    const { now, count, outbox } = this.#parts
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        this.#resyncedAt = now()
        count.resync(this.#reason)
        outbox.resync(this)
      },
      Math.max(0, this.#resyncedAt + RESYNC_INTERVAL_MS - now()),
    )
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#parts.outbox.forget(this)
    this.#subscription?.end()
  }

  // --- Recipient ---

  resyncText(): string {
    const { id, channel } = this.#parts
    this.#place = this.#subscription?.token() ?? ''
    return printMessage('resync', id, { channel, reason: this.#reason, token: this.#place })
  }

  lose(): void {
    this.#reason = 'slow reader'
    this.#parts.count.resync(this.#reason)
  }
}
