/** One channel of a socket: its caller, the changes that it receives, and its topic of broadcasts. */
import { randomBytes } from 'node:crypto'
import { readableColumns, type View } from '../access/rights.ts'
import { resourceName, type Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import type { SessionCounts } from '../realtime/counts.ts'
import type { Hub } from '../realtime/hub.ts'
import type { SendQueue } from '../realtime/send-queue.ts'
import { createTokenLife, type TokenLife } from '../realtime/token-life.ts'
import { shorten } from '../text/shorten.ts'
import type { Broadcasts } from './broadcasts.ts'
import { ChangeFeed } from './change-feed.ts'
import { NAME_CHARACTERS_MAX, printFrame, type SerializerVersion, TOPIC_PREFIX } from './frame.ts'
import type { ChangesRequest, JoinRequest } from './join.ts'

/** The parts of the gateway that channels use. */
export interface ChannelServices {
  readonly hub: Pick<Hub, 'subscribe'>
  readonly broadcasts: Pick<Broadcasts, 'join' | 'send'>
  /** The schemas that are served. */
  readonly schemas: readonly string[]
  /** The schema and rights of a caller. */
  readonly view: (identity: Identity) => View
  /** True if every change to a table, `schema.name`, is captured. */
  readonly isCaptured: (table: string) => boolean
  /** The caller with the session in which the rows of a schema are read. */
  readonly subscriber: (identity: Identity, schema: string) => Identity
  /** Monotonic milliseconds, and milliseconds since the epoch. */
  readonly now: () => number
  readonly clock: () => number
}

/** The dependencies of a channel. */
export interface ChannelParts extends ChannelServices {
  readonly topic: string
  readonly joinRef: string | null
  readonly request: JoinRequest
  readonly version: SerializerVersion
  readonly outbox: SendQueue
  readonly count: SessionCounts
  /** @throws {GatewayError} if the socket cannot have another subscription. */
  readonly assertRoom: () => void
  /** Called when the token of the caller has expired. */
  readonly expired: () => void
}

interface Feed {
  readonly schema: string
  readonly feed: ChangeFeed
}

/** A channel of one client. */
export class Channel {
  readonly #parts: ChannelParts
  readonly #tokenLife: TokenLife
  readonly #feeds = new Set<Feed>()
  readonly #sender = randomBytes(9).toString('base64url')
  #identity: Identity
  #leaveTopic = () => {}
  #isOver = false

  constructor(parts: ChannelParts, identity: Identity) {
    this.#parts = parts
    this.#identity = identity
    this.#tokenLife = createTokenLife(parts.clock, { expiring() {}, expired: parts.expired })
  }

  get identity(): Identity {
    return this.#identity
  }

  get request(): JoinRequest {
    return this.#parts.request
  }

  get joinRef(): string | null {
    return this.#parts.joinRef
  }

  /** The number of subscriptions, and the channel itself. */
  get held(): number {
    return this.#feeds.size + 1
  }

  /**
   * Subscribes. Returns the answer to `phx_join`.
   * @throws {GatewayError} as a rejection, if a part of it is refused; the channel has ended then.
   */
  async join(): Promise<object> {
    const { topic, request, broadcasts } = this.#parts
    try {
      for (const [index, changes] of request.changes.entries()) {
        await this.#subscribe(changes, index + 1)
        this.#assertOpen()
      }
      const membership = broadcasts.join(this.#identity, topic, {
        sender: this.#sender,
        includesSelf: request.broadcast.includesSelf,
        receive: (event, payload) => this.#receive(event, payload),
      })
      this.#leaveTopic = membership.leave
      // Changes do not need the listening connection; broadcasts do.
      if (request.changes.length === 0) await membership.ready
      this.#assertOpen()
    } catch (error) {
      this.end()
      throw error
    }
    return { postgres_changes: request.changes.map(({ written }, index) => ({ id: index + 1, ...written })) }
  }

  /**
   * The socket can be closed, or the token revoked, while a part of the join is waiting for the database. A
   * topic that is joined after that would never be left.
   */
  #assertOpen(): void {
    if (this.#isOver) throw new GatewayError('UNAVAILABLE', 'the channel was closed before it was joined')
  }

  /** Starts delivery after the response to `phx_join` has been sent. */
  begin(): void {
    this.#tokenLife.begin(this.#identity.expiresAt)
    for (const { feed } of this.#feeds) feed.begin()
    if (this.#parts.request.changes.length > 0) this.sendSystem('ok', 'Subscribed to PostgreSQL')
  }

  /** Continues with a new token of the same caller. */
  renew(identity: Identity): void {
    this.#identity = identity
    this.#tokenLife.begin(identity.expiresAt)
    for (const item of this.#feeds) {
      try {
        item.feed.subscription?.renew(this.#parts.subscriber(identity, item.schema))
      } catch (error) {
        this.#drop(item, error)
      }
    }
  }

  /** Sends a broadcast of the client to the other members of the topic. */
  async broadcast({ event, payload = {} }: Readonly<Record<string, unknown>>): Promise<void> {
    if (typeof event !== 'string' || event.length > NAME_CHARACTERS_MAX) {
      throw new GatewayError('PARSE_ERROR', `event must be a string of at most ${NAME_CHARACTERS_MAX} characters`)
    }
    const { topic, broadcasts } = this.#parts
    await broadcasts.send(this.#identity, [{ topic, sender: this.#sender, event, payload }])
  }

  get acknowledges(): boolean {
    return this.#parts.request.broadcast.isAcknowledged
  }

  /** Sends a message about the state of the channel. */
  sendSystem(status: 'ok' | 'error', message: string): void {
    this.#parts.outbox.send(this.#printSystem(status, message))
  }

  /** Sends the message that the channel is closed. */
  sendClosed(): void {
    this.#parts.outbox.send(this.#print('phx_close', '{}'))
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#tokenLife.end()
    this.#leaveTopic()
    for (const { feed } of this.#feeds) feed.end()
    this.#feeds.clear()
  }

  // --- changes ---

  async #subscribe(request: ChangesRequest, id: number): Promise<void> {
    const { schema, table } = request
    const { schemas, view } = this.#parts
    if (!schemas.includes(schema)) {
      throw new GatewayError('NOT_FOUND', `schema "${shorten(schema)}" is not served; use ${schemas.join(' or ')}`)
    }
    const { catalog } = view(this.#identity)
    if (table !== null) {
      const found = catalog.tables.get(resourceName({ schema, name: table }, catalog.schemas))
      if (found === undefined || found.schema !== schema)
        throw new GatewayError('NOT_FOUND', `there is no table "${shorten(table)}" in schema "${shorten(schema)}"`)
      return this.#watch(request, found, id)
    }
    const captured = [...catalog.tables.values()].filter(
      of => of.schema === schema && of.primaryKey.length > 0 && this.#parts.isCaptured(`${of.schema}.${of.name}`),
    )
    for (const of of captured) {
      await this.#watch(request, of, id).catch(error => {
        // The caller receives the changes of the tables that it can read.
        if (!(error instanceof GatewayError && error.code === 'FORBIDDEN')) throw error
      })
    }
  }

  async #watch(request: ChangesRequest, table: Table, id: number): Promise<void> {
    const { hub, view, outbox, count, now, assertRoom, subscriber } = this.#parts
    assertRoom()
    const columns = readableColumns(table, view(this.#identity).rights)
    const feed = new ChangeFeed({
      ...{ id, request, outbox, count, now, table: { schema: table.schema, name: table.name, columns } },
      print: (event, payload) => this.#print(event, payload),
      printSystem: (status, message) => this.#printSystem(status, message),
      ended: error => this.#drop(item, error),
    })
    const item: Feed = { schema: request.schema, feed }
    const asked = { table: table.resource, filter: request.filter, select: undefined, since: null }
    const subscription = await hub.subscribe(asked, subscriber(this.#identity, request.schema), feed)
    feed.made(subscription)
    if (this.#isOver) feed.end()
    else this.#feeds.add(item)
  }

  #drop(item: Feed, error: unknown): void {
    this.#feeds.delete(item)
    item.feed.end()
    this.#parts.count.error(error)
    this.sendSystem('error', messageOf(error))
  }

  // --- broadcasts ---

  #receive(event: string, payload: string): void {
    this.#parts.outbox.notify(
      this.#broadcastRecipient,
      nextKey(),
      this.#print('broadcast', `{"type":"broadcast","event":${JSON.stringify(event)},"payload":${payload}}`),
    )
  }

  readonly #broadcastRecipient = {
    resyncText: () => this.#printSystem('error', 'broadcasts were dropped, because the client reads too slowly'),
    markLost: () => this.#parts.count.resync('slow reader'),
  }

  // --- messages ---

  #print(event: string, payload: string): string {
    const { topic, joinRef, version } = this.#parts
    return printFrame({ joinRef, ref: null, topic, event, payload }, version)
  }

  #printSystem(status: 'ok' | 'error', message: string): string {
    const channel = this.#parts.topic.slice(TOPIC_PREFIX.length)
    return this.#print('system', JSON.stringify({ channel, extension: 'postgres_changes', message, status }))
  }
}

let keys = 0

/** Broadcasts never replace each other. */
function nextKey(): string {
  keys = (keys + 1) % Number.MAX_SAFE_INTEGER
  return String(keys)
}

/** The message of an error for a client. */
export function messageOf(error: unknown): string {
  return error instanceof GatewayError ? error.message : 'an unexpected error occurred'
}

/** Reports whether a topic is that of a channel. */
export function isChannelTopic(topic: string): boolean {
  return topic.startsWith(TOPIC_PREFIX) && topic.length > TOPIC_PREFIX.length
}
