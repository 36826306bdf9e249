/**
 * Claims webhooks from `svc.webhook` under a lease. When the lease expires – by the database's clock, which
 * all gateways share – the webhook is due again, so nothing needs cleaning up after a gateway has died.
 * A claim is bounded, however many webhooks are queued: it visits a limited number of tenants by skipping
 * through the index from one to the next, and takes the first webhooks of each tenant that has any due. A
 * tenant with thousands of webhooks gets the same share as a tenant with one.
 */
import { webhookIdSql } from '../../install/outbox.ts'
import type { RowOperation } from '../trigger.ts'
import type { OutboxCommand, Rows, RunInTransaction } from './transaction.ts'

/** Limit on the tenants of one trigger that a claim visits. */
export const TENANTS_VISITED_MAX = 64

/** Limit on the bytes of rows in one claim, as JSON. The first row is always taken, whatever its size. */
export const CLAIM_BYTES_MAX: number = 8 * 1024 * 1024

/** Limit on the bytes of one webhook, new and old row together. Larger ones are never read. */
export const ROWS_BYTES_MAX: number = 16 * 1024 * 1024

/**
 * How long a webhook is put off because an earlier one with the same key is pending. Completing the earlier
 * one makes it due immediately.
 */
const PARKED_SECONDS_MAX = 60

/** A request for webhooks of one trigger. */
export interface ClaimRequest {
  readonly trigger: string
  /** The tenant to visit first; empty starts from the beginning. */
  readonly from: string
  readonly slots: number
  readonly leaseMs: number
}

/** The result of a claim. */
export interface Claim {
  /** The tenant at which the next visit begins; empty if all tenants were visited. */
  readonly next: ReadonlyMap<string, string>
  /** True if webhooks were put off because an earlier one with the same key is pending. */
  readonly parked: boolean
  /** The claimed webhooks, oldest first. */
  readonly webhooks: readonly ClaimedRow[]
}

/** A webhook as claimed from the database. */
export interface ClaimedRow {
  readonly seq: string
  readonly id: string
  readonly trigger: string
  readonly schema: string
  readonly table: string
  readonly operation: RowOperation
  /** Rows as JSON; both null if they exceed the size limit. */
  readonly after: string | null
  readonly before: string | null
  readonly bytes: number
  readonly createdAtMs: number
  readonly key: string | null
  /** Attempts made so far. */
  readonly tries: number
  /** The header `traceparent` of the change; null without a trace. */
  readonly traceparent: string | null
}

const TENANT = `coalesce(w.tenant, '') COLLATE "C"`

const CLAIM = `WITH RECURSIVE asked AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1::json) AS a(trigger text, "from" text, places integer, lease_ms bigint)
),
visits AS (
  SELECT a.trigger, 1 AS step, (
    SELECT ${TENANT} FROM svc.webhook AS w WHERE w.trigger = a.trigger AND ${TENANT} >= a."from"
    ORDER BY ${TENANT} LIMIT 1
  ) AS tenant FROM asked AS a
  UNION ALL
  SELECT v.trigger, v.step + 1, (
    SELECT ${TENANT} FROM svc.webhook AS w WHERE w.trigger = v.trigger AND ${TENANT} > v.tenant
    ORDER BY ${TENANT} LIMIT 1
  ) FROM visits AS v WHERE v.tenant IS NOT NULL AND v.step <= ${TENANTS_VISITED_MAX}
),
with_due AS MATERIALIZED (
  SELECT v.trigger, v.tenant, v.step, row_number() OVER (PARTITION BY v.trigger ORDER BY v.step) AS turn,
    count(*) OVER (PARTITION BY v.trigger) AS tenants
  FROM visits AS v CROSS JOIN LATERAL (
    SELECT FROM svc.webhook AS w WHERE w.trigger = v.trigger AND ${TENANT} = v.tenant AND w.due_at <= now() LIMIT 1
  ) AS due
  WHERE v.tenant IS NOT NULL AND v.step <= ${TENANTS_VISITED_MAX}
),
picked AS MATERIALIZED (
  SELECT a.trigger, a.lease_ms, w.* FROM asked AS a JOIN with_due AS d ON d.trigger = a.trigger AND d.turn <= a.places
  CROSS JOIN LATERAL (
    SELECT w.seq, w.key, w.due_at,
      coalesce(octet_length(w.new::text), 0) + coalesce(octet_length(w.old::text), 0) AS bytes
    FROM svc.webhook AS w
    WHERE w.trigger = d.trigger AND ${TENANT} = d.tenant AND w.due_at <= now()
    ORDER BY w.due_at, w.seq LIMIT greatest(1, a.places / least(d.tenants, a.places)) FOR UPDATE SKIP LOCKED
  ) AS w
),
judged AS MATERIALIZED (
  SELECT p.*, sum(p.bytes) OVER (ORDER BY p.due_at, p.seq) - p.bytes AS bytes_before,
    p.key IS NOT NULL AND EXISTS (
      SELECT FROM svc.webhook AS e WHERE e.trigger = p.trigger AND e.key = p.key AND e.seq < p.seq
    ) AS waits
  FROM picked AS p
),
waiting AS MATERIALIZED (
  SELECT j.seq, held.seq IS NOT NULL AS is_held FROM judged AS j LEFT JOIN LATERAL (
    SELECT e.seq FROM svc.webhook AS e
    WHERE e.trigger = j.trigger AND e.key = j.key AND e.seq < j.seq
    ORDER BY e.seq LIMIT 1 FOR KEY SHARE SKIP LOCKED
  ) AS held ON true WHERE j.waits
),
parked AS (
  UPDATE svc.webhook AS w SET due_at = now() +
    CASE WHEN p.is_held THEN interval '${PARKED_SECONDS_MAX} seconds' ELSE interval '50 milliseconds' END
  FROM waiting AS p WHERE w.seq = p.seq RETURNING w.trigger
),
taken AS (
  UPDATE svc.webhook AS w SET due_at = now() + j.lease_ms * interval '1 millisecond', leased_by = $2
  FROM judged AS j WHERE w.seq = j.seq AND NOT j.waits AND j.bytes_before < ${CLAIM_BYTES_MAX}
  RETURNING w.seq, ${webhookIdSql('w')} AS id, w.trigger, w."schema", w."table", w.operation,
    CASE WHEN j.bytes <= ${ROWS_BYTES_MAX} THEN w.new END AS new,
    CASE WHEN j.bytes <= ${ROWS_BYTES_MAX} THEN w.old END AS old, j.bytes,
    floor(extract(epoch FROM w.created_at) * 1000)::bigint AS created_at, w.key, w.tries, w.traceparent
)
SELECT a.trigger, coalesce(
    (SELECT min(d.tenant) FROM with_due AS d WHERE d.trigger = a.trigger AND d.turn = a.places + 1),
    (SELECT v.tenant FROM visits AS v WHERE v.trigger = a.trigger AND v.step = ${TENANTS_VISITED_MAX + 1}),
    ''),
  EXISTS (SELECT FROM parked AS p WHERE p.trigger = a.trigger),
  t.seq, t.id, t."schema", t."table", t.operation, t.new, t.old, t.bytes, t.created_at, t.key, t.tries, t.traceparent
FROM asked AS a LEFT JOIN taken AS t ON t.trigger = a.trigger ORDER BY t.seq`

/** Claims webhooks. `gateway` identifies the holder of the leases. */
export async function claim(ask: RunInTransaction, gateway: string, requests: readonly ClaimRequest[]): Promise<Claim> {
  const [rows = []] = await ask(claimCommand(gateway, requests))
  return toClaim(rows)
}

function claimCommand(gateway: string, requests: readonly ClaimRequest[]): OutboxCommand {
  const requested = requests.map(({ trigger, from, slots, leaseMs }) => ({
    trigger,
    from,
    places: slots,
    lease_ms: leaseMs,
  }))
  return { text: CLAIM, parameters: [JSON.stringify(requested), gateway] }
}

function toClaim(rows: Rows): Claim {
  return {
    next: new Map(rows.map(([trigger, next]) => [trigger ?? '', next ?? ''])),
    parked: rows.some(([, , parked]) => parked === 't'),
    webhooks: rows.flatMap(
      ([trigger, , , seq, id, schema, table, operation, after, before, bytes, createdAt, key, tries, traceparent]) =>
        seq == null
          ? []
          : [
              {
                ...{ seq, id: id ?? '', trigger: trigger ?? '', schema: schema ?? '', table: table ?? '' },
                ...{
                  operation: operation as RowOperation,
                  after: after ?? null,
                  before: before ?? null,
                  bytes: Number(bytes),
                },
                ...{ createdAtMs: Number(createdAt), key: key ?? null, tries: Number(tries) },
                traceparent: traceparent ?? null,
              },
            ],
    ),
  }
}
