/** Server messages on `/ws` (docs/reference/realtime.md#server-messages). Rows and keys are JSON text already, as PostgreSQL wrote it, and are put in as they are. */
import { GatewayError } from '../errors.ts'
import type { Operation } from './change.ts'
import type { Seen } from './look.ts'

/** The part of a notification that is the same for everybody who is told of this operation; what is before it names the subscription. */
export function printSeen({ change, key, row }: Seen, operation: Operation, table: string): string {
  const old = operation === 'INSERT' ? 'null' : key
  const now = operation === 'DELETE' ? null : row
  return `"operation":"${operation}","table":${JSON.stringify(table)},"key":${key},"new":${now ?? 'null'},"old":${old},"timestamp":${JSON.stringify(utc(change.at))},"txid":${JSON.stringify(change.txid)}`
}

export function printNotification(id: string, channel: string, seen: string, token: string): string {
  return `{"type":"notification","id":${JSON.stringify(id)},"channel":${JSON.stringify(channel)},${seen},"token":${JSON.stringify(token)}}`
}

export function printRows(id: string, table: string, rows: string, count: number, seq: number): string {
  return `{"type":"notification","id":${JSON.stringify(id)},"table":${JSON.stringify(table)},"rows":${rows},"count":${count},"seq":${seq}}`
}

/** What else there may be in a message of a type, besides `id`. */
export const SAID = {
  subscribed: ['channel', 'token', 'table'],
  resync: ['channel', 'reason', 'token'],
  unsubscribed: ['channel'],
  authenticated: ['expires_at'],
  pong: [],
  error: ['code', 'message', 'details', 'hint'],
} as const

type Said = typeof SAID

/** `id` null: it answers nothing that had a name. */
export function printMessage<T extends keyof Said>(
  type: T,
  id: string | null,
  rest?: Readonly<Partial<Record<Said[T][number], unknown>>>,
): string {
  return JSON.stringify({ type, ...(id === null ? {} : { id }), ...rest })
}

/** What is no error for callers says nothing about itself. */
export function printError(id: string | null, error: unknown): string {
  const known = error instanceof GatewayError ? error : new GatewayError('INTERNAL', 'an unexpected error occurred')
  const { code, message, details, hint } = known
  return printMessage('error', id, {
    ...{ code, message },
    ...(details === undefined ? {} : { details }),
    ...(hint === undefined ? {} : { hint }),
  })
}

function utc(at: string): string {
  const time = new Date(at)
  return Number.isNaN(time.getTime()) ? at : time.toISOString()
}
