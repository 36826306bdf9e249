/**
 * The session of one client of `/ws` (docs/reference/realtime.md), independent of the socket: its identity,
 * token expiry and requests. Messages are processed in order; reading is paused while too many are waiting.
 */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { type ClientMessage, type MessageOf, messageId, parseMessage } from './message.ts'
import { createMessageRate, type MessageRate } from './message-rate.ts'
import type { Seat } from './quotas.ts'
import { createSendQueue, type Pipe, type SendQueue } from './send-queue.ts'
import { printError, printMessage } from './server-message.ts'
import { Subscriptions, type SubscriptionsParts } from './subscriptions.ts'
import { createTokenLife, type TokenLife } from './token-life.ts'

/** How long a client may take to authenticate. */
export const AUTH_MS_MAX = 5_000

/** Limit on messages waiting to be processed. */
const QUEUED_MESSAGES_MAX = 32

/** Application close codes (RFC 6455, 7.4.2), derived from the HTTP status with the same meaning. */
export const CLOSE_UNAUTHORIZED = 4401
export const CLOSE_TOO_SLOW = 4408
export const CLOSE_TOO_MANY = 4429
/** RFC 6455, 7.4.1. */
export const CLOSE_GOING_AWAY = 1001
/** The caller cannot be identified at the moment. */
export const CLOSE_TRY_AGAIN = 1013

/** The part of a socket that a session uses. */
export interface Link extends Pipe {
  /** Pause and resume reading. */
  pause(): void
  resume(): void
  close(code: number, reason: string): void
}

/** The dependencies of a session. */
export interface SessionParts extends Omit<SubscriptionsParts, 'outbox' | 'fail' | 'seat'> {
  readonly link: Link
  /** The caller; null if the first message must authenticate. */
  readonly identity: Identity | null
  readonly authenticate: (token: string) => Identity | Promise<Identity>
  readonly seat: Pick<Seat, 'claim' | 'assertRoom' | 'waiting'>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

/** One client's session. */
export class ClientSession {
  readonly #parts: SessionParts
  readonly #queue: SendQueue
  readonly #rate: MessageRate
  readonly #tokenLife: TokenLife
  readonly #subscriptions: Subscriptions
  /** Messages not yet processed. */
  readonly #waiting: Buffer[] = []
  #identity: Identity | null
  #isWorking = false
  #isPaused = false
  #isClosed = false
  #authTimer: NodeJS.Timeout | null = null

  constructor(parts: SessionParts) {
    const { link, identity, now, clock, seat } = parts
    this.#parts = parts
    this.#identity = identity
    this.#queue = createSendQueue({
      ...{ pipe: link, now, waiting: seat.waiting },
      onTooSlow: () => this.#end(CLOSE_TOO_SLOW, 'the client reads too slowly'),
    })
    this.#rate = createMessageRate(link, now)
    this.#tokenLife = createTokenLife(clock, {
      expiring: () => this.#queue.send(printError(null, expiring())),
      expired: () => this.#end(CLOSE_UNAUTHORIZED, 'the token has expired'),
    })
    this.#subscriptions = new Subscriptions({
      ...parts,
      outbox: this.#queue,
      fail: (id, error) => this.#fail(id, error),
    })
    if (identity === null) this.#awaitAuth()
    else this.#tokenLife.begin(identity.expiresAt)
  }

  receive(message: Buffer, form: 'text' | 'binary'): void {
    if (this.#isClosed) return
    this.#rate.count()
    if (form === 'binary') {
      const error = new GatewayError('PARSE_ERROR', 'a message must be a text frame with JSON; this one is binary')
      this.#fail(messageId(message), error)
      return
    }
    this.#waiting.push(message)
    if (this.#waiting.length >= QUEUED_MESSAGES_MAX && !this.#isPaused) {
      this.#isPaused = true
      this.#rate.pause()
    }
    if (!this.#isWorking) void this.#work()
  }

  /** Closes the connection because the gateway stops. Clients are asked to reconnect at different times. */
  leave(retryAfterMs: number): void {
    this.#end(CLOSE_GOING_AWAY, JSON.stringify({ retry_after_ms: retryAfterMs }))
  }

  /** Ends the session if the caller's token has been revoked. */
  revoke(isRevoked: (identity: Identity) => boolean): void {
    if (this.#identity !== null && isRevoked(this.#identity))
      this.#end(CLOSE_UNAUTHORIZED, 'the token has been revoked')
  }

  /** Called when the socket is closed. */
  closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stopAwaitingAuth()
    this.#tokenLife.end()
    this.#rate.end()
    this.#queue.close()
    this.#waiting.length = 0
    this.#subscriptions.end()
  }

  #end(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#parts.link.close(code, reason)
    this.closed()
  }

  #fail(id: string | null, error: unknown): void {
    this.#parts.count.error(error)
    this.#queue.send(printError(id, error))
  }

  // --- messages ---

  async #work(): Promise<void> {
    const waiting = this.#waiting
    this.#isWorking = true
    for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
      if (this.#isPaused && waiting.length < QUEUED_MESSAGES_MAX / 2) {
        this.#isPaused = false
        this.#rate.resume()
      }
      await this.#process(message)
    }
    this.#isWorking = false
  }

  /** Processes a message. Never rejects. */
  async #process(bytes: Buffer): Promise<void> {
    let message: ClientMessage | null = null
    try {
      message = parseMessage(bytes)
      await this.#handle(message)
    } catch (error) {
      if (this.#isClosed) return
      this.#fail(message?.id ?? messageId(bytes), error)
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
      this.#refuseCaller(message.id, 'the first message must authenticate')
      return
    }
    switch (message.type) {
      case 'ping':
        return this.#queue.send(printMessage('pong', message.id))
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

  // // --- authentication ---

  #awaitAuth(): void {
    const refuse = () => this.#refuseCaller(null, `no auth message was received within ${AUTH_MS_MAX} ms`)
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
    if (this.#isClosed) return
    if (this.#identity !== null && !this.#subscriptions.isEmpty && !isSameCaller(this.#identity, renewed)) {
      throw new GatewayError(
        'FORBIDDEN',
        'the token belongs to another tenant or user than the subscriptions of ' +
          'this connection; open another connection',
      )
    }
    seat.claim(renewed)
    this.#stopAwaitingAuth()
    this.#identity = renewed
    this.#tokenLife.begin(renewed.expiresAt)
    this.#queue.send(printMessage('authenticated', id, { expires_at: isoOf(renewed.expiresAt) }))
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
