/**
 * Sends the notifications of one subscription, with the client's own id, its selected events, and resume
 * tokens.
 */

import type { ChangeOperation } from '../compile/row-images.ts'
import { mergeSteps } from './change-event.ts'
import type { Subscription } from './hub.ts'
import type { Recipient, SendQueue } from './send-queue.ts'
import { printChange, printMessage, printNotification } from './server-message.ts'
import type { ResyncReason } from './visibility-group.ts'
import type { ChangeNotification } from './visibility-query.ts'

/** Minimum interval between two resync messages of a subscription. */
const RESYNC_INTERVAL_MS = 1_000

/** The dependencies of a sender. */
export interface NotificationSenderParts {
  /** The client's id of the subscription. */
  readonly id: string
  readonly channel: string
  readonly table: string
  readonly events: readonly ChangeOperation[]
  readonly outbox: SendQueue
  readonly now: () => number
  readonly count: { notification(at: string): void; resync(reason: ResyncReason): void }
}

/** Sends the notifications of one subscription. */
export class NotificationSender implements Recipient {
  readonly #parts: NotificationSenderParts
  #subscription: Subscription | null = null
  #reason: ResyncReason = 'bulk'
  #resyncedAt: number = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | null = null
  /** The last resume token that was sent and is valid to continue from. */
  #token = ''

  constructor(parts: NotificationSenderParts) {
    this.#parts = parts
  }

  /** Starts delivery after the client was sent `subscribed` with the start token. */
  begin(subscription: Subscription): void {
    this.#subscription = subscription
    this.#token = subscription.startToken
    subscription.start()
  }

  notify(notifications: readonly ChangeNotification[]): void {
    const { id, channel, table, events, outbox, count } = this.#parts
    for (const item of notifications) {
      // A client that disconnects before a pending resync must return to the position before it.
      if (this.#timer === null && this.#subscription?.awaitsResync() !== true) this.#token = item.token
      // Events are filtered before steps are merged; otherwise an update right after the insert would become
      // part of it.
      const operation = mergeSteps(
        item.steps.filter(step => events.includes(step.operation)),
        item.row !== null,
      )
      if (operation === null) continue
      count.notification(item.change.at)
      outbox.notify(this, item.key, printNotification(id, channel, printChange(item, operation, table), this.#token))
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
    this.#token = this.#subscription?.token() ?? ''
    return printMessage('resync', id, { channel, reason: this.#reason, token: this.#token })
  }

  markLost(): void {
    this.#reason = 'slow reader'
    this.#parts.count.resync(this.#reason)
  }
}
