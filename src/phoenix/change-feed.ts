/** Sends the changes of one subscription of a channel. */
import type { Column } from '../catalog/model.ts'
import { mergeSteps } from '../realtime/change-event.ts'
import type { SessionCounts } from '../realtime/counts.ts'
import type { Subscription } from '../realtime/hub.ts'
import type { Recipient, SendQueue } from '../realtime/send-queue.ts'
import { utc } from '../realtime/server-message.ts'
import type { SubscriptionReceiver } from '../realtime/subscriber.ts'
import type { ChangesRequest } from './join.ts'

type Notifications = Parameters<SubscriptionReceiver['notify']>[0]
type ResyncReason = Parameters<SubscriptionReceiver['resync']>[0]

/** Minimum interval between two messages about missed changes. */
const MISSED_INTERVAL_MS = 1_000

/** The dependencies of a feed. */
export interface ChangeFeedParts {
  /** The number of the request in the answer to `phx_join`. */
  readonly id: number
  readonly request: Pick<ChangesRequest, 'events'>
  readonly table: { readonly schema: string; readonly name: string; readonly columns: readonly Column[] }
  readonly outbox: SendQueue
  readonly count: SessionCounts
  readonly now: () => number
  /** Prints a message of the channel. */
  readonly print: (event: string, payload: string) => string
  /** Prints a message about the state of the subscription. */
  readonly printSystem: (status: 'ok' | 'error', message: string) => string
  /** Called when the subscription has ended. */
  readonly ended: (error: unknown) => void
}

/** Sends the changes of one subscription. */
export class ChangeFeed implements Recipient, SubscriptionReceiver {
  readonly #parts: ChangeFeedParts
  readonly #columns: string
  #subscription: Subscription | null = null
  #reason: ResyncReason = 'bulk'
  #missedAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | null = null
  #sent = 0

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts
    this.#columns = JSON.stringify(parts.table.columns.map(({ name, type }) => ({ name, type: type.name })))
  }

  get subscription(): Subscription | null {
    return this.#subscription
  }

  /** Called when the subscription exists; nothing is delivered before `begin`. */
  made(subscription: Subscription): void {
    this.#subscription = subscription
  }

  begin(): void {
    this.#subscription?.start()
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#parts.outbox.forget(this)
    this.#subscription?.end()
  }

  notify(notifications: Notifications): void {
    const { id, request, table, outbox, count, print } = this.#parts
    const where = `"schema":${JSON.stringify(table.schema)},"table":${JSON.stringify(table.name)}`
    for (const { steps, row, key, change } of notifications) {
      const type = mergeSteps(
        steps.filter(({ operation }) => request.events.includes(operation)),
        row !== null,
      )
      if (type === null) continue
      count.notification(change.at)
      const at = JSON.stringify(utc(change.at))
      const now = type === 'DELETE' ? '' : `,"record":${row ?? 'null'}`
      const old = type === 'INSERT' ? '' : `,"old_record":${key}`
      const head = `${where},"commit_timestamp":${at},"type":"${type}","columns":${this.#columns}`
      const data = `{${head}${now}${old},"errors":null}`
      // No change replaces another one: a slow reader receives all changes, or a message that some are
      // missing.
      outbox.notify(this, String(this.#sent++), print('postgres_changes', `{"ids":[${id}],"data":${data}}`))
    }
  }

  resync(reason: ResyncReason): void {
    this.#reason = reason
    if (this.#timer !== null) return
    const { now, outbox, count } = this.#parts
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        this.#missedAt = now()
        count.resync(this.#reason)
        outbox.resync(this)
      },
      Math.max(0, this.#missedAt + MISSED_INTERVAL_MS - now()),
    )
  }

  ended(error: unknown): void {
    this.#parts.ended(error)
  }

  resyncText(): string {
    const { table, printSystem } = this.#parts
    return printSystem('error', `changes of "${table.name}" were missed (${this.#reason}); read its rows again`)
  }

  markLost(): void {
    this.#reason = 'slow reader'
    this.#parts.count.resync(this.#reason)
  }
}
