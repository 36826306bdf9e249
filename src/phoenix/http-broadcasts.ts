/**
 * Broadcasts of callers without a socket: `POST /realtime/v1/api/broadcast` with a list of messages, and
 * `/{topic}/events/{event}` below it with the payload of one.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import { BROADCAST_BYTES_MAX, type BroadcastMessage, type Broadcasts } from './broadcasts.ts'
import { isRecord, NAME_CHARACTERS_MAX, TOPIC_PREFIX } from './frame.ts'
import { tokenOfKey } from './join.ts'

const ROUTE = '/realtime/v1/api/broadcast'

/** Limit on the messages of one request. */
const MESSAGES_MAX = 100

/** The dependencies of the route. */
export interface HttpBroadcastsParts {
  readonly broadcasts: Pick<Broadcasts, 'send'>
  /** The caller of a token; null for requests without one. */
  readonly identify: (token: string | null) => Identity | Promise<Identity>
  /** The response to a request that needs no caller; null for any other request. */
  readonly preflight: (incoming: Incoming) => Answer | null
  /** Adds the headers of every response. */
  readonly finish: (answer: Answer, incoming: Incoming) => Answer
}

/** The route, as the pipeline calls it. */
export class HttpBroadcasts {
  /** The name of the route, for logs and metrics. */
  readonly route: string = ROUTE
  readonly #parts: HttpBroadcastsParts

  constructor(parts: HttpBroadcastsParts) {
    this.#parts = parts
  }

  owns(path: string): boolean {
    return path === ROUTE || path.startsWith(`${ROUTE}/`)
  }

  /**
   * The caller: that of `Authorization`, or of the API key if it is a token.
   * @throws {GatewayError} also as a rejection.
   */
  identify({ headers }: { readonly headers: IncomingHttpHeaders }): Identity | Promise<Identity> {
    const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
    const { apikey } = headers
    return this.#parts.identify(tokenOfKey(bearer ?? (typeof apikey === 'string' ? apikey : '')))
  }

  /** The response to a request that needs no caller; null for any other request. */
  preflight(incoming: Incoming): Answer | null {
    return this.#parts.preflight(incoming)
  }

  /**
   * Sends all messages of the request, or none.
   * @throws {GatewayError} as a rejection.
   */
  async answer(incoming: Incoming, caller: Identity): Promise<Answer> {
    if (incoming.method !== 'POST') {
      throw new GatewayError('METHOD_NOT_ALLOWED', `${incoming.method} is not possible here; use POST`, {
        headers: { Allow: 'POST' },
      })
    }
    await this.#parts.broadcasts.send(caller, messagesOf(incoming))
    return this.#parts.finish({ status: 202, headers: {}, body: null }, incoming)
  }
}

function messagesOf({ path, query, headers, body }: Incoming): readonly BroadcastMessage[] {
  const [, topic, events, event, ...rest] = path.slice(ROUTE.length).split('/')
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
  if (type !== '' && type !== 'application/json') throw refused(`the body must be application/json, not ${type}`)
  // A larger body cannot consist of messages that can be sent.
  const bytesMax = MESSAGES_MAX * BROADCAST_BYTES_MAX
  if (body.length > bytesMax) throw refused(`the body has ${body.length} bytes; it can have at most ${bytesMax}`)
  const value = parsed(body)
  if (topic !== undefined) {
    if (events !== 'events' || event === undefined || rest.length > 0) throw unknownRoute()
    const isPrivate = new URLSearchParams(query).get('private') === 'true'
    // The server has refused paths with invalid escapes.
    const names = { topic: decodeURIComponent(topic), event: decodeURIComponent(event) }
    return [messageOf({ ...names, payload: value, private: isPrivate })]
  }
  const messages = isRecord(value) ? value.messages : undefined
  if (!Array.isArray(messages)) throw refused('the body must be {"messages": [{"topic": …, "event": …, "payload": …}]}')
  if (messages.length > MESSAGES_MAX) {
    throw refused(`a request can have at most ${MESSAGES_MAX} messages; this one has ${messages.length}`)
  }
  return messages.map(messageOf)
}

function messageOf(written: unknown): BroadcastMessage {
  if (!isRecord(written)) throw refused('each message must be an object')
  const { topic, event, payload = {}, private: isPrivate = false } = written
  if (isPrivate !== false) throw refused('private channels are not supported; remove private')
  return { topic: TOPIC_PREFIX + nameOf(topic, 'topic'), event: nameOf(event, 'event'), sender: '', payload }
}

function nameOf(value: unknown, what: string): string {
  if (typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX) return value
  throw refused(`${what} must be a string of 1 to ${NAME_CHARACTERS_MAX} characters`)
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    throw refused('the body is not JSON')
  }
}

function refused(message: string): GatewayError {
  return new GatewayError('PARSE_ERROR', message)
}

function unknownRoute(): GatewayError {
  return new GatewayError('NOT_FOUND', `messages are sent to ${ROUTE} or ${ROUTE}/{topic}/events/{event}`)
}
