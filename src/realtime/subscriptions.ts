/** What one client of `/ws` has asked to be told of, by the names that it gave: subscriptions to tables, and live queries. */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { shorten } from '../text/shorten.ts'
import type { SessionCounts } from './counts.ts'
import type { Hub, Subscription } from './hub.ts'
import type { LiveQueries, LiveQuery, LiveRequest } from './live-queries.ts'
import type { MessageOf } from './message.ts'
import type { Outbox, Recipient } from './outbox.ts'
import type { Seat } from './quotas.ts'
import { printMessage, printRows } from './server-message.ts'
import { Teller } from './teller.ts'

const CHANNEL_PREFIX = 'svc_table_'

export interface SubscriptionsParts {
  readonly outbox: Outbox
  readonly seat: Pick<Seat, 'assertRoom'>
  readonly hub: Pick<Hub, 'subscribe'>
  readonly live: Pick<LiveQueries, 'start'>
  readonly liveRequest: (message: MessageOf<'live_query'>) => LiveRequest
  /** Milliseconds, monotonic. */
  readonly now: () => number
  readonly count: SessionCounts
  /** Tells the client, under the name of what has failed. */
  readonly fail: (name: string, error: unknown) => void
}

interface Subscribed {
  readonly kind: 'subscription'
  readonly channel: string
  readonly teller: Teller
  readonly subscription: Subscription
}

interface Live {
  readonly kind: 'live query'
  readonly query: LiveQuery
}

type Item = Subscribed | Live

export class Subscriptions {
  readonly #parts: SubscriptionsParts
  readonly #items = new Map<string, Item>()
  /** The last of our own names. */
  #named = 0
  #isOver = false

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
      throw new GatewayError('PARSE_ERROR', `channel "${shorten(channel)}" is none; write svc_table_<table>`)
    }
    const name = this.#nameFor(message.id, 'subscription')
    const table = channel.slice(CHANNEL_PREFIX.length)
    const teller = new Teller({ id: name, channel, table, events, outbox, now, count })
    const subscription = await hub.subscribe({ table, filter, select, since }, identity, {
      see: told => teller.see(told),
      resync: reason => teller.resync(reason),
      refused: error => this.#drop(name, error),
    })
    if (this.#isOver) {
      subscription.end()
      return
    }
    this.#items.set(name, { kind: 'subscription', channel, teller, subscription })
    outbox.send(printMessage('subscribed', name, { channel, token: subscription.place }))
    teller.begin(subscription)
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
    // Each answer is whole, so the last one replaces those before it.
    const recipient: Recipient = {
      resyncText: () => printMessage('resync', name, { reason: 'slow reader' }),
      lose() {
        count.resync('slow reader')
        query.repeat()
      },
    }
    const query = live.start(liveRequest(message), identity, {
      changed(rows, rowCount) {
        seq++
        count.liveAnswer()
        outbox.notify(recipient, '', printRows(name, table, rows, rowCount, seq))
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

  /** The client is somebody else now, or the same with a new token. What is not for them ends. */
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
    this.#isOver = true
    for (const item of this.#items.values()) stop(item)
    this.#items.clear()
  }

  /** It has ended, and not by the client. */
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

  /** The one of this name, or all of the channel where that says nothing. */
  #subscribed(id: string | null, channel: string | null): readonly (readonly [string, Subscribed])[] {
    const subscribed = [...this.#items].flatMap(([name, item]) =>
      item.kind === 'subscription' ? [[name, item] as const] : [],
    )
    const named = subscribed.filter(([name, item]) => name === id && (channel === null || item.channel === channel))
    return named.length > 0 ? named : subscribed.filter(([, item]) => item.channel === channel)
  }

  /** The client's own name, or one of ours. */
  #nameFor(id: string | null, kind: Item['kind']): string {
    this.#parts.seat.assertRoom(kind, [...this.#items.values()].filter(item => item.kind === kind).length)
    if (id === null) {
      do this.#named++
      while (this.#items.has(`#${this.#named}`))
      return `#${this.#named}`
    }
    if (this.#items.has(id))
      throw new GatewayError('PARSE_ERROR', `id "${shorten(id)}" is in use on this connection; choose another`)
    return id
  }
}

function stop(item: Item): void {
  if (item.kind === 'live query') item.query.stop()
  else item.teller.end()
}

function unknownId(name: string, what: string): GatewayError {
  return new GatewayError('NOT_FOUND', `there is no ${what} "${shorten(name)}" on this connection`)
}
