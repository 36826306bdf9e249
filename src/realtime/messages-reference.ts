/** The tables of messages in `docs/reference/realtime.md`. Its test compares the two, and rewrites the page with `-u`. */
import type { ResyncReason } from './group.ts'
import type { FIELDS, MessageType } from './message.ts'

interface Field {
  /** Without it the message is refused. */
  readonly needed: boolean
  readonly about: string
  readonly example: unknown
}

type Fields = typeof FIELDS

/** Every message with every field has its words here, or this does not compile. */
export const CLIENT_MESSAGES: {
  readonly [T in MessageType]: { readonly about: string; readonly fields: Readonly<Record<Fields[T][number], Field>> }
} = {
  subscribe: {
    about: 'changes of a table, as far as the caller may see them',
    fields: {
      channel: needed('`svc_table_<table>`', 'svc_table_orders'),
      filter: optional('the query string of a list, filters alone', 'status=paid'),
      select: optional('as in a list', 'id,status'),
      events: optional('some of `insert`, `update`, `delete`', ['insert', 'update']),
      since: optional('a token', 'a.1'),
    },
  },
  unsubscribe: {
    about: 'ends all subscriptions to the channel, or the one of this id; one of the two is needed',
    fields: { channel: optional('as it was subscribed to', 'svc_table_orders') },
  },
  live_query: {
    about: 'its rows now, and whenever they are others',
    fields: {
      svc: needed('a query that reads', 'get orders limit 1'),
      table: needed('its main table', 'orders'),
      interval_ms: optional('from 100 to 3 600 000, by default 1 000', 500),
      parameters: optional('as in `POST /api/_query`', { status: 'paid' }),
    },
  },
  stop_live_query: { about: 'ends the one of this id, which is needed', fields: {} },
  auth: {
    about: 'who calls, or a new token of the same tenant and user',
    fields: { token: needed('a token as in `Authorization`', 'eyJhbGciOi…') },
  },
  ping: { about: 'is answered by `pong`', fields: {} },
}

function needed(about: string, example: unknown): Field {
  return { needed: true, about, example }
}

function optional(about: string, example: unknown): Field {
  return { needed: false, about, example }
}

interface ServerMessage {
  readonly type: string
  readonly fields: readonly string[]
  readonly about: string
}

export const SERVER_MESSAGES: readonly ServerMessage[] = [
  {
    type: 'subscribed',
    fields: ['id', 'channel', 'token'],
    about: 'the subscription has begun: every later change will be delivered',
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
    about: 'changes may have been missed: read the rows again. Of a live query, `id` and `reason`; its rows follow',
  },
  { type: 'unsubscribed', fields: ['id', 'channel'], about: 'a subscription or a live query has ended' },
  { type: 'authenticated', fields: ['id', 'expires_at'], about: 'the token was accepted' },
  { type: 'pong', fields: ['id'], about: 'answers `ping`' },
  {
    type: 'error',
    fields: ['id', 'code', 'message', 'details', 'hint'],
    about: 'codes as in [errors](errors.md); of a warning that the token expires soon `UNAUTHORIZED`',
  },
]

const REASONS: Readonly<Record<ResyncReason, string>> = {
  bulk: 'one statement wrote more than 1 000 rows (without triggers, 500), or rows that cannot be named; or `TRUNCATE`',
  'unknown before': 'a row is not to be seen now, and nobody can tell whether it was before',
  dependency: 'a table has changed by which policies decide, or without triggers one whose changes cascade here',
  epoch: 'the server was started again, the log begins anew, or what came since was thrown away',
  'connection lost': 'the connection that hears of changes broke and stands again; without triggers only',
  'schema changed': 'the table, its policies, or what captures its changes are others than before',
  token: '`since` names a place that is not known any more',
  'slow reader': 'the client takes less than there is to tell',
  'too many changes': 'they come faster than the database can be asked',
  unavailable: 'the database could not be asked',
}

export function printClientMessages(): string {
  const rows = Object.entries(CLIENT_MESSAGES).map(([type, { about, fields }]) => {
    const described = Object.entries<Field>(fields).map(([name, field]) => `\`${name}\`${mark(field)}: ${field.about}`)
    return `| \`${type}\` |${described.length > 0 ? ` ${described.join('; ')}` : ''} | ${about} |`
  })
  return `| \`type\` | Fields, those with * needed | |\n|---|---|---|\n${rows.join('\n')}\n`
}

function mark(field: Field): string {
  return field.needed ? '*' : ''
}

export function printServerMessages(): string {
  const rows = SERVER_MESSAGES.map(
    ({ type, fields, about }) => `| \`${type}\` | ${fields.map(field => `\`${field}\``).join(', ')} | ${about} |`,
  )
  return `| \`type\` | Fields | |\n|---|---|---|\n${rows.join('\n')}\n`
}

export function printReasons(): string {
  const rows = Object.entries(REASONS).map(([reason, about]) => `| \`${reason}\` | ${about} |`)
  return `| \`reason\` of a \`resync\` | |\n|---|---|\n${rows.join('\n')}\n`
}
