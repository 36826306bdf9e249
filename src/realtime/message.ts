/** Client messages on `/ws` (docs/reference/realtime.md#client-messages), parsed from JSON text. */

import type { ChangeOperation } from '../compile/row-images.ts'
import { GatewayError } from '../errors.ts'
import { type JsonValue, type ObjectOutline, parseJsonBody, partOf } from '../json/json-body.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'

/** A message. `id` is the client's own name for the request; null if it gave none. */
export type ClientMessage = { readonly id: string | null } & (
  | { readonly type: 'auth'; readonly token: string }
  | { readonly type: 'ping' }
  | {
      readonly type: 'subscribe'
      readonly channel: string
      readonly filter: string
      readonly select: string | undefined
      readonly events: readonly ChangeOperation[]
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

/** The type of a message. */
export type MessageType = ClientMessage['type']

/** A message of one type. */
export type MessageOf<T extends MessageType> = Extract<ClientMessage, { readonly type: T }>

/** Limit on the bytes of a message. */
export const CLIENT_MESSAGE_BYTES_MAX: number = 64 * 1024

/** Limit on the characters of an `id`, which is stored and repeated in each notification. */
export const ID_CHARACTERS_MAX = 128

/** The fields that each message can have in addition to `type` and `id`. */
export const CLIENT_FIELDS = {
  subscribe: ['channel', 'filter', 'select', 'events', 'since'],
  unsubscribe: ['channel'],
  live_query: ['svc', 'table', 'interval_ms', 'parameters'],
  stop_live_query: [],
  auth: ['token'],
  ping: [],
} as const

const INTERVAL = { default: 1_000, min: 100, max: 3_600_000 }

const EVENTS: Readonly<Record<string, ChangeOperation>> = { insert: 'INSERT', update: 'UPDATE', delete: 'DELETE' }

/** The `id` of a message that was refused, if it can be read. */
export function messageId(message: Buffer): string | null {
  try {
    const { id } = JSON.parse(message.toString()) as { readonly id?: unknown }
    return typeof id === 'string' && id.length <= ID_CHARACTERS_MAX ? id : null
  } catch {
    return null
  }
}

/**
 * Parses a message.
 * @throws GatewayError `PARSE_ERROR`
 */
export function parseMessage(message: Buffer): ClientMessage {
  const body = parseJsonBody(message, Number.POSITIVE_INFINITY)
  if (body.kind !== 'object')
    throw refused('a message must be a JSON object, such as {"type": "subscribe", "channel": "svc_table_orders"}')
  const fields = new MessageFields(body)
  const type = fields.required('type') as MessageType
  if (!Object.hasOwn(CLIENT_FIELDS, type))
    throw refused(`unknown message type "${shorten(type)}"${near(type, Object.keys(CLIENT_FIELDS))}`)
  fields.refuseUnknown(type, ['type', 'id', ...CLIENT_FIELDS[type]])
  const id = fields.text('id') ?? null
  if (id !== null && id.length > ID_CHARACTERS_MAX)
    throw refused(`"id" has ${id.length} characters; the limit is ${ID_CHARACTERS_MAX}`)
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
      if (channel === null && id === null) throw refused('unsubscribe requires "channel" or "id"')
      return { type, id, channel }
    }
    case 'live_query':
      return {
        ...{ type, id, svc: fields.required('svc'), table: fields.required('table') },
        ...{ parameters: fields.value('parameters'), intervalMs: fields.interval() },
      }
    case 'stop_live_query':
      if (id === null) throw refused('stop_live_query requires "id"')
      return { type, id }
  }
}

class MessageFields {
  readonly #body: ObjectOutline

  constructor(body: ObjectOutline) {
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
    if (text.includes('\0')) throw refused(`"${name}" contains a NUL character, which PostgreSQL cannot store`)
    return text
  }

  required(name: string): string {
    const text = this.text(name)
    if (text === undefined || text === '') throw refused(`the message requires "${name}", a non-empty string`)
    return text
  }

  events(): readonly ChangeOperation[] {
    const value = this.value('events')
    if (value === null) return Object.values(EVENTS)
    const events = value.type === 'array' ? (JSON.parse(value.bytes.toString()) as readonly unknown[]) : []
    const operations = events.map(event => (typeof event === 'string' ? EVENTS[event] : undefined))
    if (operations.length === 0 || operations.length > 3 || !operations.every(operation => operation !== undefined)) {
      throw refused('"events" must be a non-empty array of "insert", "update" or "delete"')
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

  refuseUnknown(type: string, known: readonly string[]): void {
    const other = this.#body.members.find(({ key }) => !known.includes(key))
    if (other === undefined) return
    throw refused(`${type} has no field "${shorten(other.key)}"${near(other.key, known)}`)
  }
}

function near(name: string, known: readonly string[]): string {
  const found = nearest(name, known)
  return found === null ? `; expected one of ${known.join(', ')}` : `; did you mean "${found}"?`
}

function refused(message: string): GatewayError {
  return new GatewayError('PARSE_ERROR', message)
}
