/**
 * One client of `/ws` (docs/reference/realtime.md), without the socket: who it is and until when, and what it asks for. Messages are
 * taken one after the other; whoever sends faster than they are answered is not read from meanwhile.
 */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type ClientMessage, idOf, type MessageOf, parseMessage } from './message.ts'
import { createOutbox, type Outbox, type Pipe } from './outbox.ts'
import { createPace, type Pace } from './pace.ts'
import type { Seat } from './quotas.ts'
import { printError, printMessage } from './server-message.ts'
import { Subscriptions, type SubscriptionsParts } from './subscriptions.ts'
import { createTokenLife, type TokenLife } from './token-life.ts'

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
/** Who calls cannot be known for the moment. */
export const CLOSE_TRY_AGAIN = 1013

/** The socket, as far as a session needs one. */
export interface Link extends Pipe {
  /** Stops and goes on with reading. */
  pause(): void
  resume(): void
  close(code: number, reason: string): void
}

export interface SessionParts extends Omit<SubscriptionsParts, 'outbox' | 'fail' | 'seat'> {
  readonly link: Link
  /** Null: the first message has to say. */
  readonly identity: Identity | null
  readonly authenticate: (token: string) => Identity | Promise<Identity>
  readonly seat: Pick<Seat, 'claim' | 'assertRoom'>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export class Session {
  readonly #parts: SessionParts
  readonly #outbox: Outbox
  readonly #pace: Pace
  readonly #life: TokenLife
  readonly #subscriptions: Subscriptions
  /** Messages that have not been taken. */
  readonly #waiting: Buffer[] = []
  #identity: Identity | null
  #isWorking = false
  #isPaused = false
  #isOver = false
  #authTimer: NodeJS.Timeout | null = null

  constructor(parts: SessionParts) {
    const { link, identity, now, clock } = parts
    this.#parts = parts
    this.#identity = identity
    this.#outbox = createOutbox({
      ...{ pipe: link, now },
      onTooSlow: () => this.#end(CLOSE_TOO_SLOW, 'the client reads too slowly'),
    })
    this.#pace = createPace(link, now)
    this.#life = createTokenLife(clock, {
      expiring: () => this.#outbox.send(printError(null, expiring())),
      expired: () => this.#end(CLOSE_UNAUTHORIZED, 'the token has expired'),
    })
    this.#subscriptions = new Subscriptions({
      ...parts,
      outbox: this.#outbox,
      fail: (id, error) => this.#fail(id, error),
    })
    if (identity === null) this.#awaitAuth()
    else this.#life.begin(identity.expiresAt)
  }

  receive(message: Buffer, form: 'text' | 'binary'): void {
    if (this.#isOver) return
    this.#pace.took()
    if (form === 'binary') {
      const error = new GatewayError('PARSE_ERROR', 'messages are text frames with JSON; this one is binary')
      this.#fail(idOf(message), error)
      return
    }
    this.#waiting.push(message)
    if (this.#waiting.length >= WAITING_MAX && !this.#isPaused) {
      this.#isPaused = true
      this.#pace.pause()
    }
    if (!this.#isWorking) void this.#work()
  }

  /** The gateway stops: the client should come back, not at the same moment as everybody else. */
  leave(retryAfterMs: number): void {
    this.#end(CLOSE_GOING_AWAY, JSON.stringify({ retry_after_ms: retryAfterMs }))
  }

  /** Ends it where the caller's token is one of those that have been revoked. */
  revoke(isRevoked: (identity: Identity) => boolean): void {
    if (this.#identity !== null && isRevoked(this.#identity))
      this.#end(CLOSE_UNAUTHORIZED, 'the token has been revoked')
  }

  /** The socket is gone. */
  closed(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stopAwaitingAuth()
    this.#life.end()
    this.#pace.end()
    this.#outbox.close()
    this.#waiting.length = 0
    this.#subscriptions.end()
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return
    this.#parts.link.close(code, reason)
    this.closed()
  }

  #fail(id: string | null, error: unknown): void {
    this.#parts.count.error(error)
    this.#outbox.send(printError(id, error))
  }

  // --- messages ---

  async #work(): Promise<void> {
    const waiting = this.#waiting
    this.#isWorking = true
    for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
      if (this.#isPaused && waiting.length < WAITING_MAX / 2) {
        this.#isPaused = false
        this.#pace.resume()
      }
      await this.#take(message)
    }
    this.#isWorking = false
  }

  /** Never rejects. */
  async #take(bytes: Buffer): Promise<void> {
    let message: ClientMessage | null = null
    try {
      message = parseMessage(bytes)
      await this.#handle(message)
    } catch (error) {
      if (this.#isOver) return
      this.#fail(message?.id ?? idOf(bytes), error)
      if (this.#identity !== null) return
      if (error instanceof GatewayError && error.status === 429) this.#end(CLOSE_TOO_MANY, 'too many connections')
      else if (error instanceof GatewayError && error.code === 'UNAVAILABLE')
        this.#end(CLOSE_TRY_AGAIN, 'try again later')
      else this.#end(CLOSE_UNAUTHORIZED, 'unauthorized')
    }
  }

  async #handle(message: ClientMessage): Promise<void> {
    if (message.type === 'auth') return this.#authenticate(message)
    const identity = this.#identity
    if (identity === null) {
      this.#refuseCaller(message.id, 'the first message says who calls')
      return
    }
    switch (message.type) {
      case 'ping':
        return this.#outbox.send(printMessage('pong', message.id))
      case 'subscribe':
        return this.#subscriptions.subscribe(message, identity)
      case 'unsubscribe':
        return this.#subscriptions.unsubscribe(message)
      case 'live_query':
        return this.#subscriptions.startLive(message, identity)
      case 'stop_live_query':
        return this.#subscriptions.stopLive(message)
    }
  }

  // --- who calls ---

  #awaitAuth(): void {
    const refuse = () => this.#refuseCaller(null, `no auth message came within ${AUTH_MS_MAX} ms`)
    this.#authTimer = setTimeout(refuse, AUTH_MS_MAX)
  }

  #stopAwaitingAuth(): void {
    if (this.#authTimer !== null) clearTimeout(this.#authTimer)
    this.#authTimer = null
  }

  #refuseCaller(id: string | null, reason: string): void {
    this.#fail(id, new GatewayError('UNAUTHORIZED', `${reason}; send {"type": "auth", "token": …} first`))
    this.#end(CLOSE_UNAUTHORIZED, 'unauthorized')
  }

  async #authenticate({ id, token }: MessageOf<'auth'>): Promise<void> {
    const { authenticate, seat } = this.#parts
    const renewed = await authenticate(token)
    if (this.#isOver) return
    if (this.#identity !== null && !this.#subscriptions.isEmpty && !isSameCaller(this.#identity, renewed)) {
      throw new GatewayError(
        'FORBIDDEN',
        'the token is of another tenant or user than the subscriptions of this connection; open another for it',
      )
    }
    seat.claim(renewed)
    this.#stopAwaitingAuth()
    this.#identity = renewed
    this.#life.begin(renewed.expiresAt)
    this.#outbox.send(printMessage('authenticated', id, { expires_at: isoOf(renewed.expiresAt) }))
    this.#subscriptions.renew(renewed)
  }
}

function isSameCaller(one: Identity, other: Identity): boolean {
  return one.tenantId === other.tenantId && one.userId === other.userId
}

function expiring(): GatewayError {
  return new GatewayError('UNAUTHORIZED', 'the token expires soon; send {"type": "auth", "token": …} with a new one')
}

function isoOf(seconds: number | null): string | null {
  const time = seconds === null ? null : new Date(seconds * 1_000)
  return time === null || Number.isNaN(time.getTime()) ? null : time.toISOString()
}
