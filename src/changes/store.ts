/**
 * The statements that store changes. Columns travel as arrays: of JSON, PostgreSQL would parse each row
 * twice, which costs as much as storing it.
 */
import { SLOT_OF_NOW } from '../install/change-log.ts'
import { OUTBOX_COLUMNS, traceSql } from '../install/outbox.ts'
import type { Command } from '../postgres/types.ts'
import { toArrayLiteral } from '../text/array-text.ts'

/** A row of the change log. */
export interface Entry {
  readonly schema: string
  readonly table: string
  /** `B` for a bulk change. */
  readonly operation: 'I' | 'U' | 'D' | 'B'
  /** The key of the row and, if it has changed, the one before, as JSON. */
  readonly key: string | null
  readonly was: string | null
  /** The row as JSON. */
  readonly before: string | null
  readonly after: string | null
  /** The transaction that made the change. */
  readonly writer: string
}

/** A row of the change log about one row. */
export interface RowEntry extends Entry {
  readonly operation: keyof typeof OPERATIONS
}

/** False for a bulk change. */
export function isOfRow(entry: Entry): entry is RowEntry {
  return entry.operation !== 'B'
}

/** A change that webhooks can be for. */
export interface Delivery extends RowEntry {
  /** The trace of a write through a gateway, or empty; null for other writes. */
  readonly trace: string | null
}

const LOG = `INSERT INTO svc.change (slot, "schema", "table", operation, key, was, old, new, writer)
  SELECT (SELECT ${SLOT_OF_NOW}), r.* FROM unnest($1::text[], $2::text[], $3::"char"[], $4::jsonb[], $5::jsonb[],
    $6::json[], $7::json[], $8::xid8[]) AS r`

const DELIVER = `INSERT INTO svc.webhook (${OUTBOX_COLUMNS}, traceparent)
SELECT h.name, d.s, d.t, d.operation, d.a, d.b, clock_timestamp(), CASE WHEN h.by_key THEN d.k::text END,
  coalesce(d.a, d.b) ->> h.tenant_column, ${traceSql('d.g')}
FROM unnest($1::text[], $2::text[], $3::text[], $4::jsonb[], $5::json[], $6::json[], $7::text[]) WITH ORDINALITY
  AS d(s, t, operation, k, b, a, g, n)
JOIN svc.webhook_trigger AS h ON h."table" = d.t AND h."schema" = d.s AND d.operation = ANY (h.operations)
WHERE h.source = 'database' OR d.g IS NOT NULL ORDER BY d.n`

const OPERATIONS = { I: 'INSERT', U: 'UPDATE', D: 'DELETE' } as const

/** Stores entries in their order. */
export function logEntries(entries: readonly Entry[]): Command {
  const of = (value: (entry: Entry) => string | null) => toArrayLiteral(entries.map(value))
  return {
    text: LOG,
    parameters: [
      ...[of(({ schema }) => schema), of(({ table }) => table), of(({ operation }) => operation)],
      ...[of(({ key }) => key), of(({ was }) => was), of(({ before }) => before), of(({ after }) => after)],
      of(({ writer }) => writer),
    ],
  }
}

/** Stores the webhooks of changes in their order. */
export function storeDeliveries(changes: readonly Delivery[]): Command {
  const of = (value: (change: Delivery) => string | null) => toArrayLiteral(changes.map(value))
  return {
    text: DELIVER,
    parameters: [
      ...[of(({ schema }) => schema), of(({ table }) => table), of(({ operation }) => OPERATIONS[operation])],
      ...[of(({ key }) => key), of(({ before }) => before), of(({ after }) => after), of(({ trace }) => trace)],
    ],
  }
}
