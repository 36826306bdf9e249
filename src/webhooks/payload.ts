/** The body of a webhook (docs/guides/webhooks.md#request-body). Rows are PostgreSQL's own JSON, passed through: no digit is lost. */
import { pickMembers } from './members.ts'
import type { Told, Trigger } from './trigger.ts'

export interface Change {
  readonly table: string
  readonly happened: Told
  /** Rows as JSON objects; null where there is none. */
  readonly after: string | null
  readonly before: string | null
  readonly atMs: number
}

/** Receivers have limits too, mostly this one. */
export const PAYLOAD_BYTES_MAX = 1_048_576

export function printPayload({ name, columns }: Pick<Trigger, 'name' | 'columns'>, change: Change): Buffer {
  const wanted = columns === null ? null : new Set(columns)
  const row = (json: string | null) => (json === null ? 'null' : wanted === null ? json : pickMembers(json, wanted))
  const { table, happened, after, before, atMs } = change
  const head = `{"trigger":${JSON.stringify(name)},"table":${JSON.stringify(table)},"operation":"${happened}"`
  const data = `"data":{"new":${row(after)},"old":${row(before)}}`
  return Buffer.from(`${head},${data},"timestamp":"${new Date(atMs).toISOString()}"}`)
}
