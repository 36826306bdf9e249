/** Client messages on `/ws` (docs/reference/realtime.md#client-messages): JSON text becomes one of these, or a refusal that says what was expected. */
import { GatewayError } from '../errors.ts'
import { type JsonObject, type JsonValue, parseJsonBody, partOf } from '../json/json-body.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import type { Operation } from './change.ts'

/** `id` is the client's own name for what it asks; null where it gave none. */
export type ClientMessage = { readonly id: string | null } & (
  | { readonly type: 'auth'; readonly token: string }
  | { readonly type: 'ping' }
  | {
      readonly type: 'subscribe'
      readonly channel: string
      readonly filter: string
      readonly select: string | undefined
      readonly events: readonly Operation[]
      readonly since: string | null
    }
  | { readonly type: 'unsubscribe'; readonly channel: string | null }
  | {
      readonly type: 'live_query'
      readonly svc: string
      readonly parameters: JsonValue | null
      readonly table: string
      readonly intervalMs: number
    }
  | { readonly type: 'stop_live_query' }
)

export type MessageType = ClientMessage['type']

export type MessageOf<T extends MessageType> = Extract<ClientMessage, { readonly type: T }>

/** A whole message. */
export const MESSAGE_BYTES_MAX: number = 64 * 1024

/** What a client calls its things is kept and said again with each notification. */
export const ID_CHARACTERS_MAX = 128

/** What each message may have besides `type` and `id`. */
export const FIELDS = {
  subscribe: ['channel', 'filter', 'select', 'events', 'since'],
  unsubscribe: ['channel'],
  live_query: ['svc', 'table', 'interval_ms', 'parameters'],
  stop_live_query: [],
  auth: ['token'],
  ping: [],
} as const

const INTERVAL = { default: 1_000, min: 100, max: 3_600_000 }

const EVENTS: Readonly<Record<string, Operation>> = { insert: 'INSERT', update: 'UPDATE', delete: 'DELETE' }

/** Of a message that was refused: its `id`, if it could be read. */
export function idOf(message: Buffer): string | null {
  try {
    const { id } = JSON.parse(message.toString()) as { readonly id?: unknown }
    return typeof id === 'string' && id.length <= ID_CHARACTERS_MAX ? id : null
  } catch {
    return null
  }
}

/** Throws `PARSE_ERROR`. */
export function parseMessage(message: Buffer): ClientMessage {
  const body = parseJsonBody(message, Number.POSITIVE_INFINITY)
  if (body.kind !== 'object')
    throw refused('a message is a JSON object: {"type": "subscribe", "channel": "svc_table_orders"}')
  const fields = new Fields(body)
  const type = fields.required('type') as MessageType
  if (!Object.hasOwn(FIELDS, type))
    throw refused(`there is no message type "${shorten(type)}"${near(type, Object.keys(FIELDS))}`)
  fields.refuseOthers(type, ['type', 'id', ...FIELDS[type]])
  const id = fields.text('id') ?? null
  if (id !== null && id.length > ID_CHARACTERS_MAX) throw refused(`"id" has more than ${ID_CHARACTERS_MAX} characters`)
  switch (type) {
    case 'auth':
      return { type, id, token: fields.required('token') }
    case 'ping':
      return { type, id }
    case 'subscribe':
      return {
        ...{ type, id, channel: fields.required('channel'), filter: fields.text('filter') ?? '' },
        ...{ select: fields.text('select'), events: fields.events(), since: fields.text('since') ?? null },
      }
    case 'unsubscribe': {
      const channel = fields.text('channel') ?? null
      if (channel === null && id === null) throw refused('unsubscribe needs "channel" or "id"')
      return { type, id, channel }
    }
    case 'live_query':
      return {
        ...{ type, id, svc: fields.required('svc'), table: fields.required('table') },
        ...{ parameters: fields.value('parameters'), intervalMs: fields.interval() },
      }
    case 'stop_live_query':
      if (id === null) throw refused('stop_live_query needs "id"')
      return { type, id }
  }
}

class Fields {
  readonly #body: JsonObject

  constructor(body: JsonObject) {
    this.#body = body
  }

  value(name: string): JsonValue | null {
    const member = this.#body.members.find(({ key }) => key === name)
    return member === undefined || member.type === 'null' ? null : partOf(this.#body, member)
  }

  text(name: string): string | undefined {
    const value = this.value(name)
    if (value === null) return undefined
    if (value.type !== 'string') throw refused(`"${name}" must be a string`)
    const text = JSON.parse(value.bytes.toString()) as string
    if (text.includes('\0')) throw refused(`"${name}" has a NUL character, which PostgreSQL cannot store`)
    return text
  }

  required(name: string): string {
    const text = this.text(name)
    if (text === undefined || text === '') throw refused(`the message needs "${name}", a string`)
    return text
  }

  events(): readonly Operation[] {
    const value = this.value('events')
    if (value === null) return Object.values(EVENTS)
    const events = value.type === 'array' ? (JSON.parse(value.bytes.toString()) as readonly unknown[]) : []
    const operations = events.map(event => (typeof event === 'string' ? EVENTS[event] : undefined))
    if (operations.length === 0 || operations.length > 3 || !operations.every(operation => operation !== undefined)) {
      throw refused('"events" must be an array of "insert", "update", "delete", at least one of them')
    }
    return operations
  }

  interval(): number {
    const value = this.value('interval_ms')
    if (value === null) return INTERVAL.default
    const ms = value.type === 'integer' ? Number(value.bytes.toString()) : Number.NaN
    if (!(ms >= INTERVAL.min && ms <= INTERVAL.max)) {
      throw refused(`"interval_ms" must be an integer from ${INTERVAL.min} to ${INTERVAL.max}`)
    }
    return ms
  }

  refuseOthers(type: string, known: readonly string[]): void {
    const other = this.#body.members.find(({ key }) => !known.includes(key))
    if (other === undefined) return
    throw refused(`${type} takes no "${shorten(other.key)}"${near(other.key, known)}`)
  }
}

function near(name: string, known: readonly string[]): string {
  const found = nearest(name, known)
  return found === null ? `; it is one of ${known.join(', ')}` : `; did you mean "${found}"?`
}

function refused(message: string): GatewayError {
  return new GatewayError('PARSE_ERROR', message)
}
