/**
 * The session of one client: its channels, by topic. Messages are processed in order; reading is paused while
 * too many are waiting.
 */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { createMessageRate, type MessageRate } from '../realtime/message-rate.ts'
import type { Seat } from '../realtime/quotas.ts'
import type { AdoptedSession, Realtime } from '../realtime/realtime.ts'
import { createSendQueue, type SendQueue } from '../realtime/send-queue.ts'
import { CLOSE_GOING_AWAY, CLOSE_TOO_SLOW, type Link } from '../realtime/session.ts'
import { Channel, type ChannelServices, isChannelTopic, messageOf } from './channel.ts'
import { type ClientFrame, parseFrame, printFrame, type SerializerVersion } from './frame.ts'
import { readJoin, tokenIn, tokenOfKey } from './join.ts'

/** Limit on messages waiting to be processed. */
const QUEUED_MESSAGES_MAX = 32

/** RFC 6455, 7.4.1. */
const CLOSE_UNSUPPORTED = 1003

/** The parts of the gateway that sessions use. */
export interface PhoenixServices extends ChannelServices {
  readonly realtime: Pick<Realtime, 'adopt'>
  /**
   * The caller of a token; null for requests without one.
   * @throws {GatewayError} also as a rejection.
   */
  readonly identify: (token: string | null) => Identity | Promise<Identity>
}

/** The dependencies of a session. */
export interface PhoenixSessionParts extends PhoenixServices {
  readonly link: Link
  readonly seat: Pick<Seat, 'claim' | 'assertRoom' | 'waiting'>
  /** The query string of the upgrade request. */
  readonly query: string
}

interface WaitingMessage {
  readonly bytes: Buffer
  readonly form: 'text' | 'binary'
}

/** Opens the session of a new socket. */
export class PhoenixSession {
  readonly #parts: PhoenixSessionParts
  readonly #version: SerializerVersion
  /** The token of the URL, for channels without one. */
  readonly #key: string | null
  readonly #queue: SendQueue
  readonly #rate: MessageRate
  readonly #adopted: AdoptedSession
  readonly #channels = new Map<string, Channel>()
  readonly #waiting: WaitingMessage[] = []
  #isWorking = false
  #isPaused = false
  #isClosed = false

  constructor(parts: PhoenixSessionParts) {
    const { link, now, query, realtime, seat } = parts
    const parameters = new URLSearchParams(query)
    const version = parameters.get('vsn') ?? '1.0.0'
    this.#parts = parts
    this.#version = version === '2.0.0' ? '2.0.0' : '1.0.0'
    this.#key = tokenOfKey(parameters.get('apikey') ?? '')
    this.#queue = createSendQueue({
      ...{ pipe: link, now, waiting: seat.waiting },
      onTooSlow: () => this.#end(CLOSE_TOO_SLOW, 'the client reads too slowly'),
    })
    this.#rate = createMessageRate(link, now)
    this.#adopted = realtime.adopt(this)
    if (version !== '2.0.0' && version !== '1.0.0') this.#end(CLOSE_UNSUPPORTED, 'vsn must be 1.0.0 or 2.0.0')
  }

  receive(bytes: Buffer, form: 'text' | 'binary'): void {
    if (this.#isClosed) return
    this.#rate.count()
    this.#waiting.push({ bytes, form })
    if (this.#waiting.length >= QUEUED_MESSAGES_MAX && !this.#isPaused) {
      this.#isPaused = true
      this.#rate.pause()
    }
    if (!this.#isWorking) void this.#work()
  }

  /** Closes the connection because the gateway stops. Clients reconnect by themselves, at different times. */
  leave(retryAfterMs: number): void {
    this.#end(CLOSE_GOING_AWAY, JSON.stringify({ retry_after_ms: retryAfterMs }))
  }

  /** Ends the channels of callers whose token has been revoked. */
  revoke(isRevoked: (identity: Identity) => boolean): void {
    for (const [topic, channel] of this.#channels) {
      if (isRevoked(channel.identity)) this.#close(topic, channel, 'the token has been revoked')
    }
  }

  /** Called when the socket is closed. */
  closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#adopted.release()
    this.#rate.end()
    this.#queue.close()
    this.#waiting.length = 0
    for (const channel of this.#channels.values()) channel.end()
    this.#channels.clear()
  }

  #end(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#parts.link.close(code, reason)
    this.closed()
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
  async #process({ bytes, form }: WaitingMessage): Promise<void> {
    let frame: ClientFrame | null = null
    try {
      frame = parseFrame(bytes, form, this.#version)
      await this.#handle(frame)
    } catch (error) {
      if (this.#isClosed) return
      this.#adopted.count.error(error)
      this.#reply(frame ?? UNREADABLE, 'error', { reason: messageOf(error) })
    }
  }

  async #handle(frame: ClientFrame): Promise<void> {
    const { topic, event, payload } = frame
    if (topic === 'phoenix') {
      if (event !== 'heartbeat') throw unknownEvent(event)
      return this.#reply(frame, 'ok', {})
    }
    if (!isChannelTopic(topic)) throw new GatewayError('NOT_FOUND', 'a topic must be realtime:<name>, or phoenix')
    if (event === 'phx_join') return this.#join(frame)
    const channel = this.#channels.get(topic)
    // The message is for an earlier channel of this topic.
    const isEarlier = frame.joinRef !== null && channel?.joinRef != null && channel.joinRef !== frame.joinRef
    if (channel === undefined || isEarlier) throw new GatewayError('NOT_FOUND', 'unmatched topic: join it first')
    switch (event) {
      case 'phx_leave':
        this.#channels.delete(topic)
        channel.end()
        this.#reply(frame, 'ok', {})
        return channel.sendClosed()
      case 'access_token':
        return this.#renew(topic, channel, payload)
      case 'broadcast':
        await channel.broadcast(payload)
        if (channel.acknowledges) this.#reply(frame, 'ok', {})
        return
      case 'presence':
        throw new GatewayError('PARSE_ERROR', 'presence is not supported')
      default:
        throw unknownEvent(event)
    }
  }

  async #join(frame: ClientFrame): Promise<void> {
    const { topic, payload } = frame
    const request = readJoin(payload)
    const identity = await this.#parts.identify(request.token ?? this.#key)
    if (this.#isClosed) return
    const earlier = this.#channels.get(topic)
    if (earlier !== undefined) {
      this.#channels.delete(topic)
      earlier.end()
      earlier.sendClosed()
    }
    await this.#open(frame.joinRef ?? frame.ref, topic, request, identity, answer => this.#reply(frame, 'ok', answer))
  }

  async #open(
    joinRef: string | null,
    topic: string,
    request: ReturnType<typeof readJoin>,
    identity: Identity,
    answered: (answer: object) => void,
  ): Promise<void> {
    const { seat } = this.#parts
    seat.claim(identity)
    this.#assertRoom()
    const channel = new Channel(
      {
        ...this.#parts,
        ...{ topic, joinRef, request, version: this.#version, outbox: this.#queue, count: this.#adopted.count },
        assertRoom: () => this.#assertRoom(),
        expired: () => this.#close(topic, channel, 'the token has expired'),
      },
      identity,
    )
    this.#channels.set(topic, channel)
    const answer = await channel.join().catch(error => {
      if (this.#channels.get(topic) === channel) this.#channels.delete(topic)
      throw error
    })
    if (this.#isClosed) return channel.end()
    answered(answer)
    channel.begin()
  }

  #assertRoom(): void {
    const held = [...this.#channels.values()].reduce((sum, channel) => sum + channel.held, 0)
    this.#parts.seat.assertRoom('subscription', held)
  }

  /** With a token of another caller, the channel is subscribed again with the rights of that caller. */
  async #renew(topic: string, channel: Channel, payload: ClientFrame['payload']): Promise<void> {
    try {
      const identity = await this.#parts.identify(tokenIn(payload) ?? this.#key)
      if (this.#isClosed || this.#channels.get(topic) !== channel) return
      if (isSameCaller(channel.identity, identity)) return channel.renew(identity)
      this.#channels.delete(topic)
      channel.end()
      await this.#open(channel.joinRef, topic, channel.request, identity, () => {})
    } catch (error) {
      this.#adopted.count.error(error)
      this.#close(topic, channel, messageOf(error))
    }
  }

  /** Ends a channel with a message. */
  #close(topic: string, channel: Channel, message: string): void {
    if (this.#channels.get(topic) === channel) this.#channels.delete(topic)
    channel.end()
    channel.sendSystem('error', message)
    channel.sendClosed()
  }

  #reply(
    { ref, joinRef, topic }: Pick<ClientFrame, 'ref' | 'joinRef' | 'topic'>,
    status: 'ok' | 'error',
    response: object,
  ): void {
    const payload = JSON.stringify({ status, response })
    this.#queue.send(printFrame({ ref, joinRef: joinRef ?? ref, topic, event: 'phx_reply', payload }, this.#version))
  }
}

/** The error for a message that cannot be parsed has no topic of the client. */
const UNREADABLE = { ref: null, joinRef: null, topic: 'phoenix' }

function isSameCaller(one: Identity, other: Identity): boolean {
  return one.role === other.role && one.tenantId === other.tenantId && one.userId === other.userId
}

function unknownEvent(event: string): GatewayError {
  return new GatewayError('NOT_FOUND', `unknown event ${JSON.stringify(event)}`)
}
