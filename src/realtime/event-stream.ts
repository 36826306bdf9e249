/**
 * Changes of a table as server-sent events (docs/reference/realtime.md#server-sent-events), for clients
 * without WebSocket: a session with one subscription whose messages are events.
 */
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import { decodeComponent } from '../rest/parameters/query-string.ts'
import type { Realtime } from './realtime.ts'
import type { Link } from './session.ts'
import { SMALL_CHARACTERS, type WaitingBytes } from './waiting-bytes.ts'

/** Interval of comments that show proxies and clients that the stream is alive. */
const KEEP_ALIVE_MS = 15_000

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** Limit on the characters of `Last-Event-ID`; resume tokens are much shorter. */
const EVENT_ID_CHARACTERS_MAX = 1_024

/** The dependencies of event streams. */
export interface EventStreamParts {
  readonly realtime: Pick<Realtime, 'admit' | 'open'>
  /** The client's address, as the key of its limits. */
  readonly holderOf: (incoming: Incoming) => string | number
}

/**
 * Answers a request for the changes of a table.
 * @throws GatewayError as a rejection, if the caller cannot subscribe.
 */
export type AnswerEvents = (table: string, incoming: Incoming, identity: Identity) => Promise<Answer>

/** True for a list request that asks for changes. */
export function asksForEvents({ method, query, headers }: Pick<Incoming, 'method' | 'query' | 'headers'>): boolean {
  return method === 'GET' && headers.accept?.includes('text/event-stream') === true && /(^|&)live=true(&|$)/.test(query)
}

/** Creates the function that answers these requests. */
export function createEventStreams({ realtime, holderOf }: EventStreamParts): AnswerEvents {
  return async (table, incoming, identity) => {
    const message = subscribeMessage(table, incoming)
    const seat = realtime.admit(holderOf(incoming), identity)
    const stream = createStream(seat.waiting)
    const session = realtime.open(stream.link, identity, seat)
    let isOpen = true
    const close = () => {
      if (!isOpen) return
      isOpen = false
      session.closed()
      seat.leave()
      stream.end()
    }
    incoming.onAbort(close)
    session.receive(Buffer.from(message), 'text')
    const first = await stream.first
    const error = errorIn(first)
    if (error !== null) {
      close()
      stream.drop()
      throw error
    }
    return { status: 200, headers: HEADERS, body: stream.events(close) }
  }
}

const HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // Asks proxies not to buffer the events.
  'X-Accel-Buffering': 'no',
}

/** The message that subscribes. Everything in the query string except `live` and `select` is the filter. */
function subscribeMessage(table: string, { query, headers }: Incoming): string {
  const filters: string[] = []
  let select: string | undefined
  for (const pair of query.split('&')) {
    const [name = '', value = ''] = pair.split('=', 2)
    if (name === 'select') select = decodeComponent(value)
    else if (pair !== 'live=true') filters.push(pair)
  }
  const last = headers['last-event-id']
  const since = typeof last === 'string' && last !== '' ? last : null
  if (since !== null && since.length > EVENT_ID_CHARACTERS_MAX)
    throw new GatewayError('PARSE_ERROR', 'Last-Event-ID is not the id of an event')
  return JSON.stringify({
    ...{ type: 'subscribe', channel: `svc_table_${table}`, filter: filters.join('&') },
    ...(select === undefined ? {} : { select }),
    ...(since === null ? {} : { since }),
  })
}

interface Stream {
  readonly link: Link
  /** The first message; empty if there was none. */
  readonly first: Promise<string>
  /** The events; `closed` is called at the end. */
  events(closed: () => void): AsyncGenerator<Buffer>
  end(): void
  /** Drops what waits, because nothing is sent. */
  drop(): void
}

/** The messages of a session as a stream of bytes. */
function createStream(bytes: Omit<WaitingBytes, 'assign'>): Stream {
  let waiting: string[] = []
  let characters = 0
  let isOver = false
  let wake: () => void = () => {}
  let settle: (first: string) => void = () => {}
  const first = new Promise<string>(resolve => {
    settle = resolve
  })

  function push(event: string): void {
    waiting.push(event)
    characters += event.length
    bytes.take(event.length)
    wake()
  }

  function end(): void {
    isOver = true
    settle('')
    wake()
  }

  function wait(): Promise<void> {
    if (isOver || waiting.length > 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(() => wake(), KEEP_ALIVE_MS)
      wake = () => {
        clearTimeout(timer)
        wake = () => {}
        resolve()
      }
    })
  }

  function drop(): void {
    bytes.handOver(characters)
    waiting = []
    characters = 0
  }

  function take(): Buffer {
    const taken = waiting.length === 0 ? KEEP_ALIVE : Buffer.from(waiting.join(''))
    drop()
    return taken
  }

  return {
    first,
    link: {
      send(text) {
        settle(text)
        if (isOver) return
        // The client continues after its last event.
        if (characters > SMALL_CHARACTERS && bytes.refusal() !== null) end()
        else push(printEvent(text))
      },
      get buffered() {
        return characters
      },
      pause() {},
      resume() {},
      close(_, reason) {
        const delay = /"retry_after_ms":(\d+)/.exec(reason)?.[1]
        if (delay !== undefined) push(`retry: ${delay}\n\n`)
        end()
      },
    },
    async *events(closed) {
      try {
        while (!isOver) {
          await wait()
          yield take()
        }
        if (waiting.length > 0) yield take()
      } finally {
        closed()
        drop()
      }
    },
    end,
    drop,
  }
}

/** An event has the resume token of its message as its id, which the client sends when it reconnects. */
function printEvent(message: string): string {
  const token = /"token":"([^"\\]+)"\}$/.exec(message)?.[1]
  return `${token === undefined ? '' : `id: ${token}\n`}data: ${message}\n\n`
}

/** The error of a message; null if it is not one. */
function errorIn(message: string): GatewayError | null {
  if (message === '') return new GatewayError('UNAVAILABLE', 'the subscription ended before its first event; try again')
  const { type, code, message: text, details, hint } = JSON.parse(message) as ErrorMessage
  return type === 'error' ? new GatewayError(code, text, { details, ...(hint === undefined ? {} : { hint }) }) : null
}

interface ErrorMessage {
  readonly type: string
  readonly code: ErrorCode
  readonly message: string
  readonly details?: unknown
  readonly hint?: string
}
