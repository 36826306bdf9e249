/**
 * Server messages on `/ws` (docs/reference/realtime.md#server-messages). Rows and keys are JSON text
 * printed by PostgreSQL and inserted unchanged.
 */

import type { ChangeOperation } from '../compile/row-images.ts'
import { GatewayError } from '../errors.ts'
import type { VisibleChange } from './visibility-query.ts'

/**
 * The part of a notification that is the same for all recipients of this operation; the part before it
 * identifies the subscription.
 */
export function printChange(
  { change, key, row: visibleRow }: VisibleChange,
  operation: ChangeOperation,
  table: string,
): string {
  const old = operation === 'INSERT' ? 'null' : key
  const now = operation === 'DELETE' ? null : visibleRow
  const row = `"table":${JSON.stringify(table)},"key":${key},"new":${now ?? 'null'},"old":${old}`
  const transaction = `"timestamp":${JSON.stringify(utc(change.at))},"txid":${JSON.stringify(change.txid)}`
  return `"operation":"${operation}",${row},${transaction}`
}

/** A notification of a change. */
export function printNotification(id: string, channel: string, change: string, token: string): string {
  const head = `"type":"notification","id":${JSON.stringify(id)},"channel":${JSON.stringify(channel)}`
  return `{${head},${change},"token":${JSON.stringify(token)}}`
}

/** A notification with the rows of a live query. */
export function printRowsMessage(id: string, table: string, rows: string, count: number, seq: number): string {
  const head = `"type":"notification","id":${JSON.stringify(id)},"table":${JSON.stringify(table)}`
  return `{${head},"rows":${rows},"count":${count},"seq":${seq}}`
}

/** The fields that a message of each type can have in addition to `id`. */
export const SERVER_FIELDS = {
  subscribed: ['channel', 'token', 'table'],
  resync: ['channel', 'reason', 'token'],
  unsubscribed: ['channel'],
  authenticated: ['expires_at'],
  pong: [],
  error: ['code', 'message', 'details', 'hint'],
} as const

type ServerFields = typeof SERVER_FIELDS

/** Prints a message. `id` null: it does not respond to a message with an id. */
export function printMessage<T extends keyof ServerFields>(
  type: T,
  id: string | null,
  rest?: Readonly<Partial<Record<ServerFields[T][number], unknown>>>,
): string {
  return JSON.stringify({ type, ...(id === null ? {} : { id }), ...rest })
}

/** Prints an error. Unexpected errors reveal nothing. */
export function printError(id: string | null, error: unknown): string {
  const known = error instanceof GatewayError ? error : new GatewayError('INTERNAL', 'an unexpected error occurred')
  const { code, message, details, hint } = known
  return printMessage('error', id, {
    ...{ code, message },
    ...(details === undefined ? {} : { details }),
    ...(hint === undefined ? {} : { hint }),
  })
}

/** A time as ISO 8601 in UTC. */
export function utc(at: string): string {
  const time = new Date(at)
  return Number.isNaN(time.getTime()) ? at : time.toISOString()
}
