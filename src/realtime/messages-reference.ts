/**
 * The message tables in `docs/reference/realtime.md`. The test compares them with the page; `-u` updates it.
 */

import type { CLIENT_FIELDS, MessageType } from './message.ts'
import type { ResyncReason } from './visibility-group.ts'

/** A field of a message. */
interface DescribedField {
  /** True if the message is refused without it. */
  readonly required: boolean
  readonly about: string
  readonly example: unknown
}

type Fields = typeof CLIENT_FIELDS

/** Descriptions of all client messages; a missing one is a compile error. */
export const CLIENT_MESSAGES: {
  readonly [T in MessageType]: {
    readonly about: string
    readonly fields: Readonly<Record<Fields[T][number], DescribedField>>
  }
} = {
  subscribe: {
    about: 'subscribe to the changes of a table that the caller can see',
    fields: {
      channel: required('`svc_table_<table>`', 'svc_table_orders'),
      filter: optional('filters as in the query string of a list', 'status=paid'),
      select: optional('as in a list', 'id,status'),
      events: optional('some of `insert`, `update`, `delete`', ['insert', 'update']),
      since: optional('a resume token', 'a.1'),
    },
  },
  unsubscribe: {
    about: 'end all subscriptions to the channel, or the subscription with this `id`; one of the two is required',
    fields: { channel: optional('as in `subscribe`', 'svc_table_orders') },
  },
  live_query: {
    about: 'receive the rows of a query now, and again whenever the result changes',
    fields: {
      svc: required('a read query', 'get orders limit 1'),
      table: required('its main table', 'orders'),
      interval_ms: optional('from 100 to 3 600 000, by default 1 000', 500),
      parameters: optional('as in `POST /api/_query`', { status: 'paid' }),
    },
  },
  stop_live_query: { about: 'end the live query with this `id`, which is required', fields: {} },
  auth: {
    about: 'identify the caller, or replace the token by a new one of the same tenant and user',
    fields: { token: required('a token as in `Authorization`', 'eyJhbGciOi…') },
  },
  ping: { about: 'receive a `pong`', fields: {} },
}

function required(about: string, example: unknown): DescribedField {
  return { required: true, about, example }
}

function optional(about: string, example: unknown): DescribedField {
  return { required: false, about, example }
}

/** A message of the server. */
interface ServerMessage {
  readonly type: string
  readonly fields: readonly string[]
  readonly about: string
}

/** Descriptions of all server messages. */
export const SERVER_MESSAGES: readonly ServerMessage[] = [
  {
    type: 'subscribed',
    fields: ['id', 'channel', 'token'],
    about: 'the subscription has begun; all later changes will be delivered',
  },
  { type: 'subscribed', fields: ['id', 'table'], about: 'a live query has begun' },
  {
    type: 'notification',
    fields: ['id', 'channel', 'operation', 'table', 'key', 'new', 'old', 'timestamp', 'txid', 'token'],
    about: 'a row has changed',
  },
  { type: 'notification', fields: ['id', 'table', 'rows', 'count', 'seq'], about: 'the rows of a live query' },
  {
    type: 'resync',
    fields: ['id', 'channel', 'reason', 'token'],
    about:
      'changes may have been missed; read the rows again. For a live query, the message has `id` and `reason`, ' +
      'and its rows follow',
  },
  { type: 'unsubscribed', fields: ['id', 'channel'], about: 'a subscription or a live query has ended' },
  { type: 'authenticated', fields: ['id', 'expires_at'], about: 'the token was accepted' },
  { type: 'pong', fields: ['id'], about: 'the response to `ping`' },
  {
    type: 'error',
    fields: ['id', 'code', 'message', 'details', 'hint'],
    about:
      'a request failed, with a code from [errors](errors.md); or `UNAUTHORIZED` as a warning that the token ' +
      'expires soon',
  },
]

const REASONS: Readonly<Record<ResyncReason, string>> = {
  bulk:
    'one statement wrote more than 1 000 rows (500 if the table is not captured) or rows without a usable key, ' +
    'or the table was truncated',
  'unknown before': 'a row is not visible now, and the gateway cannot determine whether it was visible before',
  dependency:
    'a table that the policies read has changed; if this one is not captured, also one whose changes cascade to it',
  epoch: 'PostgreSQL was restarted, the change log started over, or the entries since then have been removed',
  'connection lost': 'the listener lost its connection and has reconnected; only for tables that are not captured',
  'schema changed': 'the table, its policies or its capture source changed',
  token: '`since` names a position that is no longer known',
  'slow reader': 'the client reads more slowly than changes arrive',
  'too many changes': 'changes arrive faster than the gateway can evaluate them',
  unavailable: 'the database did not answer',
}

/** Prints the table of client messages. */
export function printClientMessages(): string {
  const rows = Object.entries(CLIENT_MESSAGES).map(([type, { about, fields }]) => {
    const described = Object.entries<DescribedField>(fields).map(
      ([name, field]) => `\`${name}\`${mark(field)}: ${field.about}`,
    )
    return `| \`${type}\` |${described.length > 0 ? ` ${described.join('; ')}` : ''} | ${about} |`
  })
  return `| \`type\` | Fields (* required) | Meaning |\n|---|---|---|\n${rows.join('\n')}\n`
}

function mark(field: DescribedField): string {
  return field.required ? '*' : ''
}

/** Prints the table of server messages. */
export function printServerMessages(): string {
  const rows = SERVER_MESSAGES.map(
    ({ type, fields, about }) => `| \`${type}\` | ${fields.map(field => `\`${field}\``).join(', ')} | ${about} |`,
  )
  return `| \`type\` | Fields | Meaning |\n|---|---|---|\n${rows.join('\n')}\n`
}

/** Prints the table of resync reasons. */
export function printReasons(): string {
  const rows = Object.entries(REASONS).map(([reason, about]) => `| \`${reason}\` | ${about} |`)
  return `| \`reason\` of a \`resync\` | Meaning |\n|---|---|\n${rows.join('\n')}\n`
}
