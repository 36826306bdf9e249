/**
 * Messages between the clients of a topic. They are sent with `NOTIFY`, so they reach the clients of every
 * process and every gateway of the database. The listening connection is open while a topic has members.
 */
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import { callerKey } from '../limits/budget.ts'
import type { Database } from '../postgres/types.ts'
import { createChannels } from '../realtime/channels.ts'
import type { OpenListener } from '../realtime/realtime.ts'
import { toGatewayError } from '../run/errors.ts'

const CHANNEL = 'svc_broadcast'

/** Limit on the bytes of a message; PostgreSQL's own is 8 000 (PostgreSQL manual, NOTIFY). */
export const BROADCAST_BYTES_MAX = 7_900

/** The fraction of a second's messages that can be sent in one burst. */
const BURST_SECONDS = 1

/** A member of a topic. */
export interface TopicMember {
  /** The name of its connection, which its own messages carry. */
  readonly sender: string
  readonly includesSelf: boolean
  /** `payload`: JSON text. */
  receive(event: string, payload: string): void
}

/** The dependencies of broadcasts. */
export interface BroadcastsParts {
  readonly database: Pick<Database, 'run'>
  /** Null if the gateway has only a pooled connection, on which it cannot listen. */
  readonly openListener: OpenListener | null
  /** Messages of one tenant per second; 0 means no limit. */
  readonly perSecond: number
  readonly now: () => number
}

/** The topics with their members. */
export class Broadcasts {
  readonly #parts: BroadcastsParts
  readonly #topics = new Map<string, Set<TopicMember>>()
  /**
   * The time until which each tenant has used its messages; only for tenants that sent some in the last
   * second.
   */
  readonly #usedUntil = new Map<string, number>()
  readonly #channels

  constructor(parts: BroadcastsParts) {
    this.#parts = parts
    const { openListener } = parts
    const open =
      openListener === null
        ? null
        : (hearing: Parameters<OpenListener>[0]) => openListener(hearing, async () => undefined)
    this.#channels = createChannels(open, {
      notification: (_, text) => this.#deliver(text),
      // A broadcast is sent once, to the clients that are connected.
      gap() {},
    })
  }

  /**
   * Adds a member; resolves once it receives every later message, and rejects if the gateway cannot listen.
   * Returns the function that removes it.
   */
  join(identity: Identity, topic: string, member: TopicMember): { readonly ready: Promise<void>; leave(): void } {
    const key = keyOf(identity, topic)
    const members = this.#topics.get(key) ?? new Set()
    this.#topics.set(key, members)
    members.add(member)
    const listen = async () => this.#channels.listen(CHANNEL)
    const ready = listen()
    ready.catch(() => {})
    let isMember = true
    return {
      ready,
      leave: () => {
        if (!isMember) return
        isMember = false
        members.delete(member)
        if (members.size === 0) this.#topics.delete(key)
        this.#channels.unlisten(CHANNEL)
      },
    }
  }

  /**
   * Sends messages to the members of their topics: all of them, or none.
   * @throws {GatewayError} as a rejection: `PARSE_ERROR` if one is too long, `RATE_LIMITED` if the tenant has
   * sent too many.
   */
  async send(identity: Identity, messages: readonly BroadcastMessage[]): Promise<void> {
    if (messages.length === 0) return
    const texts = messages.map(message => printMessage(identity, message))
    this.#take(callerKey(identity), texts.length)
    const commands = texts.map(text => ({ text: 'SELECT pg_notify($1, $2)', parameters: [CHANNEL, text] }))
    try {
      await this.#parts.database.run(commands).result
    } catch (error) {
      throw toGatewayError(error, { statements: [], access: 'read write' })
    }
  }

  close(): void {
    this.#topics.clear()
    this.#channels.close()
  }

  #deliver(text: string): void {
    const { key, sender, event, payload } = readMessage(text)
    const members = this.#topics.get(key)
    if (members === undefined) return
    const printed = JSON.stringify(payload)
    for (const member of members) {
      if (member.sender !== sender || member.includesSelf) member.receive(event, printed)
    }
  }

  #take(owner: string, count: number): void {
    const { perSecond, now } = this.#parts
    if (perSecond === 0) return
    const at = now()
    for (const [other, until] of this.#usedUntil) {
      if (until > at) break
      this.#usedUntil.delete(other)
    }
    const until = Math.max(at, this.#usedUntil.get(owner) ?? at) + (count * 1_000) / perSecond
    if (until - at > BURST_SECONDS * 1_000) {
      throw new GatewayError(
        'RATE_LIMITED',
        `more than ${perSecond} broadcasts in a second (postgrest.realtime_broadcasts_per_sec); send fewer`,
      )
    }
    this.#usedUntil.delete(owner)
    this.#usedUntil.set(owner, until)
  }
}

/** A message of a client. */
export interface BroadcastMessage {
  readonly topic: string
  /** The name of the connection that sends it; empty without one. */
  readonly sender: string
  readonly event: string
  readonly payload: unknown
}

interface SentMessage {
  readonly key: string
  readonly sender: string
  readonly event: string
  readonly payload: unknown
}

/** Messages of other programs on the notification channel have another form and are ignored. */
function readMessage(text: string): SentMessage {
  try {
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value) && value.length === 4) {
      const [key, sender, event, payload] = value as unknown[]
      if (typeof key === 'string' && typeof sender === 'string' && typeof event === 'string')
        return { key, sender, event, payload }
    }
  } catch {
    // Not JSON.
  }
  return { key: '', sender: '', event: '', payload: null }
}

function printMessage(identity: Identity, { topic, sender, event, payload }: BroadcastMessage): string {
  const text = printed([keyOf(identity, topic), sender, event, payload])
  const bytes = Buffer.byteLength(text)
  if (bytes <= BROADCAST_BYTES_MAX) return text
  const limit = `${BROADCAST_BYTES_MAX} bytes with its topic and event`
  throw new GatewayError('PARSE_ERROR', `a broadcast can have at most ${limit}; this one has ${bytes}`)
}

/** @throws {GatewayError} `PARSE_ERROR` for a payload that is nested too deeply to be printed. */
function printed(value: readonly unknown[]): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw new GatewayError('PARSE_ERROR', 'the payload of a broadcast is nested too deeply')
  }
}

function keyOf({ tenantId }: Identity, topic: string): string {
  return JSON.stringify([tenantId, topic])
}
