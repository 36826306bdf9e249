/**
 * One client of `/ws` (docs/reference/realtime.md), without the socket: who it is and until when, what it subscribes to, and what it is sent. Messages are
 * taken one after the other; whoever sends faster than they are answered is not read from meanwhile.
 */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { shorten } from '../text/shorten.ts'
import type { ResyncReason } from './group.ts'
import type { Hub, Subscription } from './hub.ts'
import type { LiveQueries, LiveQuery, LiveRequest } from './live-queries.ts'
import { type ClientMessage, idOf, parseMessage } from './message.ts'
import { createOutbox, type Outbox, type Pipe, type Recipient } from './outbox.ts'
import { createPace } from './pace.ts'
import type { Seat } from './quotas.ts'
import { printError, printMessage, printRows } from './server-message.ts'
import { Teller } from './teller.ts'
import { createTokenLife } from './token-life.ts'

/** A client that does not say who it is has gone by then. */
export const AUTH_MS_MAX = 5_000

/** Messages that wait for those before them. */
const WAITING_MAX = 32

/** Application codes of the closing handshake (RFC 6455, 7.4.2), after the HTTP status that says the same. */
export const CLOSE_UNAUTHORIZED = 4401
export const CLOSE_TOO_SLOW = 4408
export const CLOSE_TOO_MANY = 4429
/** RFC 6455, 7.4.1. */
export const CLOSE_GOING_AWAY = 1001

const CHANNEL_PREFIX = 'svc_table_'

/** The socket, as far as a session needs one. */
export interface Link extends Pipe {
  /** Stops and goes on with reading. */
  pause(): void
  resume(): void
  close(code: number, reason: string): void
}

export interface SessionParts {
  readonly link: Link
  /** Null: the first message has to say. */
  readonly identity: Identity | null
  readonly authenticate: (token: string) => Identity | Promise<Identity>
  readonly seat: Pick<Seat, 'claim' | 'assertRoom'>
  readonly hub: Hub
  readonly live: LiveQueries
  readonly liveRequest: (message: Extract<ClientMessage, { readonly type: 'live_query' }>) => LiveRequest
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly count: SessionCounts
}

/** Told of what metrics count. */
export interface SessionCounts {
  notification(at: string): void
  liveAnswer(): void
  resync(reason: ResyncReason): void
  error(error: unknown): void
}

export interface Session {
  receive(message: Buffer, form: 'text' | 'binary'): void
  /** The gateway stops: the client should come back, not at the same moment as everybody else. */
  leave(retryAfterMs: number): void
  /** The socket is gone. */
  closed(): void
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

export function createSession(parts: SessionParts): Session {
  const { link, hub, live, now, clock, count } = parts
  const outbox: Outbox = createOutbox({
    pipe: link,
    now,
    onTooSlow: () => end(CLOSE_TOO_SLOW, 'the client reads too slowly'),
  })
  const pace = createPace(link, now)
  const life = createTokenLife(clock, {
    expiring: () => outbox.send(printError(null, expiring())),
    expired: () => end(CLOSE_UNAUTHORIZED, 'the token has expired'),
  })
  const kept = new Map<string, Subscribed | Live>()
  const waiting: Buffer[] = []
  let identity = parts.identity
  let working = false
  let paused = false
  let over = false
  let named = 0
  let authTimer: NodeJS.Timeout | null = null

  if (identity === null) {
    authTimer = setTimeout(() => refuseCaller(null, `no auth message came within ${AUTH_MS_MAX} ms`), AUTH_MS_MAX)
  } else life.begin(identity.expiresAt)

  // ---- in and out --------------------------------------------------------------------------------------------

  function fail(id: string | null, error: unknown): void {
    count.error(error)
    outbox.send(printError(id, error))
  }

  function end(code: number, reason: string): void {
    if (over) return
    link.close(code, reason)
    release()
  }

  function release(): void {
    if (over) return
    over = true
    if (authTimer !== null) clearTimeout(authTimer)
    life.end()
    pace.end()
    outbox.close()
    waiting.length = 0
    for (const item of kept.values()) stop(item)
    kept.clear()
  }

  function stop(item: Subscribed | Live): void {
    if (item.kind === 'live query') item.query.stop()
    else item.teller.end()
  }

  function refuseCaller(id: string | null, reason: string): void {
    fail(id, new GatewayError('UNAUTHORIZED', `${reason}; send {"type": "auth", "token": …} first`))
    end(CLOSE_UNAUTHORIZED, 'unauthorized')
  }

  async function work(): Promise<void> {
    working = true
    for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
      if (paused && waiting.length < WAITING_MAX / 2) {
        paused = false
        pace.resume()
      }
      await take(message)
    }
    working = false
  }

  /** Never rejects. */
  async function take(bytes: Buffer): Promise<void> {
    let message: ClientMessage | null = null
    try {
      message = parseMessage(bytes)
      if (identity === null && message.type !== 'auth') refuseCaller(message.id, 'the first message says who calls')
      else await handle(message)
    } catch (error) {
      if (over) return
      fail(message?.id ?? idOf(bytes), error)
      if (identity !== null) return
      if (error instanceof GatewayError && error.status === 429) end(CLOSE_TOO_MANY, 'too many connections')
      else end(CLOSE_UNAUTHORIZED, 'unauthorized')
    }
  }

  async function handle(message: ClientMessage): Promise<void> {
    switch (message.type) {
      case 'auth':
        return authenticate(message)
      case 'ping':
        outbox.send(printMessage('pong', message.id))
        return
      case 'subscribe':
        return subscribe(message)
      case 'unsubscribe':
        return unsubscribe(message)
      case 'live_query':
        return startLive(message)
      case 'stop_live_query': {
        const item = kept.get(message.id ?? '')
        if (item?.kind !== 'live query') throw unknownId(message.id ?? '', 'live query')
        kept.delete(message.id ?? '')
        stop(item)
        outbox.send(printMessage('unsubscribed', message.id))
        return
      }
    }
  }

  // ---- who calls ---------------------------------------------------------------------------------------------

  async function authenticate({ id, token }: Extract<ClientMessage, { readonly type: 'auth' }>): Promise<void> {
    const renewed = await parts.authenticate(token)
    if (over) return
    if (identity !== null && kept.size > 0 && !isSameCaller(identity, renewed)) {
      throw new GatewayError(
        'FORBIDDEN',
        'the token is of another tenant or user than the subscriptions of this connection; open another for it',
      )
    }
    parts.seat.claim(renewed)
    if (authTimer !== null) clearTimeout(authTimer)
    authTimer = null
    identity = renewed
    life.begin(renewed.expiresAt)
    outbox.send(printMessage('authenticated', id, { expires_at: isoOf(renewed.expiresAt) }))
    for (const [name, item] of kept) {
      try {
        if (item.kind === 'live query') item.query.renew(renewed)
        else item.subscription.renew(renewed)
      } catch (error) {
        drop(name, error)
      }
    }
  }

  function caller(): Identity {
    if (identity === null) throw new GatewayError('UNAUTHORIZED', 'nobody has said who calls')
    return identity
  }

  // ---- subscriptions -----------------------------------------------------------------------------------------

  async function subscribe(message: Extract<ClientMessage, { readonly type: 'subscribe' }>): Promise<void> {
    const { channel, filter, select, events, since } = message
    if (!channel.startsWith(CHANNEL_PREFIX)) {
      throw new GatewayError('PARSE_ERROR', `channel "${shorten(channel)}" is none; write svc_table_<table>`)
    }
    const name = nameFor(message.id, 'subscription')
    const table = channel.slice(CHANNEL_PREFIX.length)
    const teller = new Teller({ id: name, channel, table, events, outbox, now, count })
    const subscription = await hub.subscribe({ table, filter, select, since }, caller(), {
      see: told => teller.see(told),
      resync: reason => teller.resync(reason),
      refused: error => drop(name, error),
    })
    if (over) {
      subscription.end()
      return
    }
    kept.set(name, { kind: 'subscription', channel, teller, subscription })
    outbox.send(printMessage('subscribed', name, { channel, token: subscription.place }))
    teller.begin(subscription)
  }

  function unsubscribe({ id, channel }: Extract<ClientMessage, { readonly type: 'unsubscribe' }>): void {
    const ofChannel = [...kept].filter(([, item]) => item.kind === 'subscription' && item.channel === channel)
    const named = id === null ? undefined : kept.get(id)
    const isNamed = named?.kind === 'subscription' && (channel === null || named.channel === channel)
    const found = isNamed && id !== null ? [[id, named] as const] : ofChannel
    if (found.length === 0) throw unknownId(channel ?? id ?? '', 'subscription')
    for (const [name, item] of found) {
      kept.delete(name)
      stop(item)
      outbox.send(
        printMessage('unsubscribed', id ?? name, item.kind === 'subscription' ? { channel: item.channel } : {}),
      )
    }
  }

  /** It has ended, and not by the client. */
  function drop(name: string, error: unknown): void {
    const item = kept.get(name)
    if (item === undefined) return
    kept.delete(name)
    stop(item)
    fail(name, error)
  }

  /** The client's own name, or one of ours. */
  function nameFor(id: string | null, kind: (Subscribed | Live)['kind']): string {
    parts.seat.assertRoom(kind, [...kept.values()].filter(item => item.kind === kind).length)
    if (id === null) {
      do named++
      while (kept.has(`#${named}`))
      return `#${named}`
    }
    if (kept.has(id))
      throw new GatewayError('PARSE_ERROR', `id "${shorten(id)}" is in use on this connection; choose another`)
    return id
  }

  // ---- live queries ------------------------------------------------------------------------------------------

  function startLive(message: Extract<ClientMessage, { readonly type: 'live_query' }>): void {
    const { table } = message
    const name = nameFor(message.id, 'live query')
    let seq = 0
    // Each answer is whole, so the last one replaces those before it.
    const recipient: Recipient = {
      resyncText: () => printMessage('resync', name, { reason: 'slow reader' }),
      lose() {
        count.resync('slow reader')
        query.repeat()
      },
    }
    const query = live.start(parts.liveRequest(message), caller(), {
      changed(rows, rowCount) {
        seq++
        count.liveAnswer()
        outbox.notify(recipient, '', printRows(name, table, rows, rowCount, seq))
      },
      failed(error, isOver) {
        if (isOver) drop(name, error)
        else fail(name, error)
      },
    })
    kept.set(name, { kind: 'live query', query })
    outbox.send(printMessage('subscribed', name, { table }))
  }

  return {
    receive(message, form) {
      if (over) return
      pace.took()
      if (form === 'binary') {
        fail(idOf(message), new GatewayError('PARSE_ERROR', 'messages are text frames with JSON; this one is binary'))
        return
      }
      waiting.push(message)
      if (waiting.length >= WAITING_MAX && !paused) {
        paused = true
        pace.pause()
      }
      if (!working) void work()
    },
    leave(retryAfterMs) {
      end(CLOSE_GOING_AWAY, JSON.stringify({ retry_after_ms: retryAfterMs }))
    },
    closed: release,
  }
}

function isSameCaller(one: Identity, other: Identity): boolean {
  return one.tenantId === other.tenantId && one.userId === other.userId
}

function expiring(): GatewayError {
  return new GatewayError('UNAUTHORIZED', 'the token expires soon; send {"type": "auth", "token": …} with a new one')
}

function unknownId(name: string, what: string): GatewayError {
  return new GatewayError('NOT_FOUND', `there is no ${what} "${shorten(name)}" on this connection`)
}

function isoOf(seconds: number | null): string | null {
  const time = seconds === null ? null : new Date(seconds * 1_000)
  return time === null || Number.isNaN(time.getTime()) ? null : time.toISOString()
}
