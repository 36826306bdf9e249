/**
 * The body of a webhook (docs/guides/webhooks.md#request-body). Rows are PostgreSQL's own JSON, passed
 * through unparsed, so that numbers keep all digits.
 */
import { pickMembers } from './pick-members.ts'
import type { PayloadOperation, Trigger } from './trigger.ts'

/** A change as it appears in a body. */
export interface WebhookChange {
  readonly table: string
  readonly operation: PayloadOperation
  /** Rows as JSON objects; null for a missing row. */
  readonly after: string | null
  readonly before: string | null
  readonly atMs: number
}

/** Limit on the bytes of a body. Most receivers have a limit of this size. */
export const PAYLOAD_BYTES_MAX = 1_048_576

/** Why a body is not sent. */
export function bodyTooLarge(bytes: number): string {
  return (
    `the body has ${bytes} bytes; the limit is ${PAYLOAD_BYTES_MAX}. Set ` +
    '"columns" of the trigger to the ones needed'
  )
}

/** Builds the body. Only the trigger's columns are included, if it has any. */
export function printPayload({ name, columns }: Pick<Trigger, 'name' | 'columns'>, change: WebhookChange): Buffer {
  const wanted = columns === null ? null : new Set(columns)
  const row = (json: string | null) => (json === null ? 'null' : wanted === null ? json : pickMembers(json, wanted))
  const { table, operation, after, before, atMs } = change
  const head = `{"trigger":${JSON.stringify(name)},"table":${JSON.stringify(table)},"operation":"${operation}"`
  const data = `"data":{"new":${row(after)},"old":${row(before)}}`
  return Buffer.from(`${head},${data},"timestamp":"${new Date(atMs).toISOString()}"}`)
}
