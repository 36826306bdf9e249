/**
 * Registers triggers in the database (`svc.webhook_trigger`), which tells it the changes to store. The
 * gateway that read its events file last wins; gateways that share a database share that file.
 */
import { webhookIdSql } from '../../install/outbox.ts'
import type { RowOperation } from '../trigger.ts'
import type { RunInTransaction } from './transaction.ts'

/** A trigger as registered in the database. */
export interface TriggerRegistration {
  readonly name: string
  readonly schema: string
  readonly table: string
  readonly operations: readonly RowOperation[]
  readonly source: 'gateway' | 'database'
  readonly byKey: boolean
  readonly tenantColumn: string | null
}

/** Serializes gateways, because each replaces the whole registration. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('svc.webhook_trigger'))`

const UNREGISTER = `DELETE FROM svc.webhook_trigger AS t
WHERE t.name NOT IN (SELECT json_array_elements($1::json) ->> 'name') RETURNING t.name`

const REGISTER = `INSERT INTO svc.webhook_trigger AS t (name, "schema", "table", operations, source, by_key,
  tenant_column)
SELECT r.name, r."schema", r."table", r.operations, r.source, r.by_key, r.tenant_column
FROM json_to_recordset($1::json)
  AS r(name text, "schema" text, "table" text, operations text[], source text, by_key boolean, tenant_column text)
ON CONFLICT (name) DO UPDATE SET "schema" = excluded."schema", "table" = excluded."table",
  operations = excluded.operations,
  source = excluded.source,
  by_key = excluded.by_key, tenant_column = excluded.tenant_column
WHERE (t."schema", t."table", t.operations, t.source, t.by_key, t.tenant_column) IS DISTINCT FROM
  (excluded."schema", excluded."table", excluded.operations, excluded.source, excluded.by_key, excluded.tenant_column)`

/** Replaces all registrations in one transaction; returns the names that were removed. */
export async function registerTriggers(
  ask: RunInTransaction,
  registrations: readonly TriggerRegistration[],
): Promise<readonly string[]> {
  const rows = JSON.stringify(
    registrations.map(({ name, schema, table, operations, source, byKey, tenantColumn }) => ({
      ...{ name, schema, table, operations, source, by_key: byKey, tenant_column: tenantColumn },
    })),
  )
  const [, removed = []] = await ask(
    { text: LOCK, parameters: [] },
    { text: UNREGISTER, parameters: [rows] },
    { text: REGISTER, parameters: [rows] },
  )
  return removed.flatMap(([name]) => (name == null ? [] : [name]))
}

/** Webhooks without a trigger that are processed by one statement; the rest follow. */
export const ORPHAN_BATCH = 500

/**
 * Age at which a webhook without a trigger is given up. Another gateway may read a changed events file later
 * than this one.
 */
const ORPHANED_FOR_SECONDS = 60

/** Finds the triggers of queued webhooks by skipping through the index from one to the next. */
const DEAD_LETTER_ORPHANS = `WITH RECURSIVE triggers AS (
  SELECT (SELECT w.trigger FROM svc.webhook AS w ORDER BY w.trigger LIMIT 1) AS name
  UNION ALL
  SELECT (SELECT w.trigger FROM svc.webhook AS w WHERE w.trigger > t.name ORDER BY w.trigger LIMIT 1)
  FROM triggers AS t WHERE t.name IS NOT NULL
),
orphans AS MATERIALIZED (
  SELECT w.seq FROM triggers AS t CROSS JOIN LATERAL (
    SELECT w.seq FROM svc.webhook AS w
    WHERE w.trigger = t.name AND w.due_at <= now() AND w.created_at < now() - interval '${ORPHANED_FOR_SECONDS} seconds'
    LIMIT ${ORPHAN_BATCH} FOR UPDATE SKIP LOCKED
  ) AS w
  WHERE t.name IS NOT NULL
    AND NOT EXISTS (SELECT FROM json_array_elements_text($1::json) AS known(name) WHERE known.name = t.name)
    AND NOT EXISTS (SELECT FROM svc.webhook_trigger AS r WHERE r.name = t.name)
  LIMIT ${ORPHAN_BATCH}
),
gone AS (DELETE FROM svc.webhook AS w USING orphans AS o WHERE w.seq = o.seq RETURNING w.*)
INSERT INTO svc.webhook_dead (id, trigger, "schema", "table", operation, new, old, created_at, key, tenant,
  tries, reason)
SELECT ${webhookIdSql('gone')}, trigger, "schema", "table", operation, new, old, created_at, key, tenant, tries,
  'the trigger no longer exists or is disabled'
FROM gone
ON CONFLICT (id) DO NOTHING RETURNING id`

/**
 * Moves webhooks whose trigger is neither in `known` nor registered by any gateway to the dead letters;
 * returns how many.
 */
export async function deadLetterOrphans(ask: RunInTransaction, known: readonly string[]): Promise<number> {
  const [buried = []] = await ask({ text: DEAD_LETTER_ORPHANS, parameters: [JSON.stringify(known)] })
  return buried.length
}
