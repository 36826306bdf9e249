/**
 * The statements that store changes. The log is filled by COPY, which costs less than half of an INSERT.
 * Columns of the outbox travel as arrays: of JSON, PostgreSQL would parse each row twice.
 */
import { OUTBOX_COLUMNS, traceSql } from '../install/outbox.ts'
import { Writer } from '../postgres/protocol/writer.ts'
import type { Command } from '../postgres/types.ts'
import { toArrayLiteral } from '../text/array-text.ts'
import type { Row } from './row-json.ts'

/** When and where a batch is stored. */
export interface Stamp {
  /** The time, as JSON has it, and in microseconds since the year 2000. */
  readonly at: string
  readonly microseconds: bigint
  /** The part of the log for this time. */
  readonly slot: number
}

/** A row of the change log. */
export interface Entry {
  readonly schema: string
  readonly table: string
  /** `B` for a bulk change. */
  readonly operation: 'I' | 'U' | 'D' | 'B'
  /** The key of the row and, if it has changed, the one before, as JSON. */
  readonly key: string | null
  readonly was: string | null
  /** The row before, as JSON. */
  readonly before: string | null
  /** The values of the columns that read policies use, as JSON. */
  readonly after: string | null
  /** The transaction that made the change. */
  readonly writer: bigint
}

/** A row change. */
export interface DecodedChange {
  readonly operation: 'I' | 'U' | 'D'
  /** The row before; null if it did not exist or was not sent. */
  readonly before: Row | null
  readonly after: Row | null
}

/** A change that webhooks can be for. */
export interface Delivery {
  readonly schema: string
  readonly table: string
  readonly operation: keyof typeof OPERATIONS
  readonly key: string | null
  /** The row as JSON. */
  readonly before: string | null
  readonly after: string | null
  /** The trace of a write through a gateway, or empty; null for other writes. */
  readonly trace: string | null
}

/** In the binary format, PostgreSQL parses neither lines nor times. */
const LOG = `COPY svc.change (slot, at, "schema", "table", operation, key, was, old, new, writer)
  FROM STDIN (FORMAT binary)`
const COLUMNS = 10

const DELIVER = `INSERT INTO svc.webhook (${OUTBOX_COLUMNS}, traceparent)
SELECT h.name, d.s, d.t, d.operation, d.a, d.b, clock_timestamp(), CASE WHEN h.by_key THEN d.k::text END,
  coalesce(d.a, d.b) ->> h.tenant_column, ${traceSql('d.g')}
FROM unnest($1::text[], $2::text[], $3::text[], $4::jsonb[], $5::json[], $6::json[], $7::text[]) WITH ORDINALITY
  AS d(s, t, operation, k, b, a, g, n)
JOIN svc.webhook_trigger AS h ON h."table" = d.t AND h."schema" = d.s AND d.operation = ANY (h.operations)
WHERE h.source = 'database' OR d.g IS NOT NULL ORDER BY d.n`

const OPERATIONS = { I: 'INSERT', U: 'UPDATE', D: 'DELETE' } as const

/** Stores entries in their order. */
export function logEntries({ slot, microseconds }: Stamp, entries: readonly Entry[]): Command {
  const writer = new Writer(64 * 1024)
  writer.bytes(SIGNATURE)
  for (const { schema, table, operation, key, was, before, after, writer: xid } of entries) {
    writer.int16(COLUMNS)
    writer.int32(2)
    writer.int16(slot)
    writer.int32(8)
    writer.int64(microseconds)
    writeText(writer, schema)
    writeText(writer, table)
    writeText(writer, operation)
    writeText(writer, key, JSONB_VERSION)
    writeText(writer, was, JSONB_VERSION)
    writeText(writer, before)
    writeText(writer, after)
    writer.int32(8)
    writer.int64(xid)
  }
  writer.int16(-1)
  return { text: LOG, parameters: [], input: writer.take() }
}

/** The head of the format (PostgreSQL manual, COPY): its signature, no flags and no extension. */
const SIGNATURE = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const JSONB_VERSION = 1

function writeText(writer: Writer, text: string | null, version: number | null = null): void {
  if (text === null) {
    writer.int32(-1)
    return
  }
  const length = writer.beginField()
  if (version !== null) writer.uint8(version)
  writer.string(text)
  writer.endField(length)
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
