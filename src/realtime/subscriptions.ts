/** The subscriptions and live queries of one client, by the ids that it gave them. */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { shorten } from '../text/shorten.ts'
import type { SessionCounts } from './counts.ts'
import type { Hub, Subscription } from './hub.ts'
import type { LiveQueries, LiveQuery, LiveRequest } from './live-queries.ts'
import type { MessageOf } from './message.ts'
import { NotificationSender } from './notification-sender.ts'
import type { Seat } from './quotas.ts'
import type { Recipient, SendQueue } from './send-queue.ts'
import { printMessage, printRowsMessage } from './server-message.ts'

const CHANNEL_PREFIX = 'svc_table_'

/** The dependencies of subscriptions. */
export interface SubscriptionsParts {
  readonly outbox: SendQueue
  readonly seat: Pick<Seat, 'assertRoom'>
  readonly hub: Pick<Hub, 'subscribe'>
  readonly live: Pick<LiveQueries, 'start'>
  readonly liveRequest: (message: MessageOf<'live_query'>) => LiveRequest
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly count: SessionCounts
  /** Sends an error for the subscription with this name. */
  readonly fail: (name: string, error: unknown) => void
}

interface ActiveSubscription {
  readonly kind: 'subscription'
  readonly channel: string
  readonly sender: NotificationSender
  readonly subscription: Subscription
}

interface ActiveLiveQuery {
  readonly kind: 'live query'
  readonly query: LiveQuery
}

type Item = ActiveSubscription | ActiveLiveQuery

/** The subscriptions and live queries of one client. */
export class Subscriptions {
  readonly #parts: SubscriptionsParts
  readonly #items = new Map<string, Item>()
  /** The last generated name. */
  #lastName = 0
  #isClosed = false

  constructor(parts: SubscriptionsParts) {
    this.#parts = parts
  }

  get isEmpty(): boolean {
    return this.#items.size === 0
  }

  async subscribe(message: MessageOf<'subscribe'>, identity: Identity): Promise<void> {
    const { outbox, hub, now, count } = this.#parts
    const { channel, filter, select, events, since } = message
    if (!channel.startsWith(CHANNEL_PREFIX)) {
      throw new GatewayError('PARSE_ERROR', `unknown channel "${shorten(channel)}"; expected svc_table_<table>`)
    }
    const name = this.#nameFor(message.id, 'subscription')
    const table = channel.slice(CHANNEL_PREFIX.length)
    const sender = new NotificationSender({ id: name, channel, table, events, outbox, now, count })
    const subscription = await hub.subscribe({ table, filter, select, since }, identity, {
      notify: notifications => sender.notify(notifications),
      resync: reason => sender.resync(reason),
      ended: error => this.#drop(name, error),
    })
    if (this.#isClosed) {
      subscription.end()
      return
    }
    this.#items.set(name, { kind: 'subscription', channel, sender, subscription })
    outbox.send(printMessage('subscribed', name, { channel, token: subscription.startToken }))
    sender.begin(subscription)
  }

  unsubscribe({ id, channel }: MessageOf<'unsubscribe'>): void {
    const found = this.#subscribed(id, channel)
    if (found.length === 0) throw unknownId(channel ?? id ?? '', 'subscription')
    for (const [name, item] of found) {
      this.#remove(name, item)
      this.#parts.outbox.send(printMessage('unsubscribed', id ?? name, { channel: item.channel }))
    }
  }

  startLive(message: MessageOf<'live_query'>, identity: Identity): void {
    const { outbox, live, liveRequest, count, fail } = this.#parts
    const { table } = message
    const name = this.#nameFor(message.id, 'live query')
    let seq = 0
    // Each result is complete, so the latest replaces earlier ones.
    const recipient: Recipient = {
      resyncText: () => printMessage('resync', name, { reason: 'slow reader' }),
      markLost() {
        count.resync('slow reader')
        query.repeat()
      },
    }
    const query = live.start(liveRequest(message), identity, {
      changed(rows, rowCount) {
        seq++
        count.liveAnswer()
        outbox.notify(recipient, '', printRowsMessage(name, table, rows, rowCount, seq))
      },
      failed: (error, isOver) => {
        if (isOver) this.#drop(name, error)
        else fail(name, error)
      },
    })
    this.#items.set(name, { kind: 'live query', query })
    outbox.send(printMessage('subscribed', name, { table }))
  }

  stopLive({ id }: MessageOf<'stop_live_query'>): void {
    const name = id ?? ''
    const item = this.#items.get(name)
    if (item?.kind !== 'live query') throw unknownId(name, 'live query')
    this.#remove(name, item)
    this.#parts.outbox.send(printMessage('unsubscribed', id))
  }

  /**
   * Continues with another identity, or a new token of the same one. Subscriptions that it may not have are
   * ended.
   */
  renew(identity: Identity): void {
    for (const [name, item] of this.#items) {
      try {
        if (item.kind === 'live query') item.query.renew(identity)
        else item.subscription.renew(identity)
      } catch (error) {
        this.#drop(name, error)
      }
    }
  }

  end(): void {
    this.#isClosed = true
    for (const item of this.#items.values()) stop(item)
    this.#items.clear()
  }

  /** Ends a subscription with an error. */
  #drop(name: string, error: unknown): void {
    const item = this.#items.get(name)
    if (item === undefined) return
    this.#remove(name, item)
    this.#parts.fail(name, error)
  }

  #remove(name: string, item: Item): void {
    this.#items.delete(name)
    stop(item)
  }

  /** The subscription with this id, or all of the channel if none has it. */
  #subscribed(id: string | null, channel: string | null): readonly (readonly [string, ActiveSubscription])[] {
    const subscribed = [...this.#items].flatMap(([name, item]) =>
      item.kind === 'subscription' ? [[name, item] as const] : [],
    )
    const named = subscribed.filter(([name, item]) => name === id && (channel === null || item.channel === channel))
    return named.length > 0 ? named : subscribed.filter(([, item]) => item.channel === channel)
  }

  /** The client's own id, or a generated name. */
  #nameFor(id: string | null, kind: Item['kind']): string {
    this.#parts.seat.assertRoom(kind, [...this.#items.values()].filter(item => item.kind === kind).length)
    if (id === null) {
      do this.#lastName++
      while (this.#items.has(`#${this.#lastName}`))
      return `#${this.#lastName}`
    }
    if (this.#items.has(id))
      throw new GatewayError('PARSE_ERROR', `id "${shorten(id)}" is already in use on this connection; choose another`)
    return id
  }
}

function stop(item: Item): void {
  if (item.kind === 'live query') item.query.stop()
  else item.sender.end()
}

function unknownId(name: string, what: string): GatewayError {
  return new GatewayError('NOT_FOUND', `there is no ${what} "${shorten(name)}" on this connection`)
}
