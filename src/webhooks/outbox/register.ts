/**
 * Which changes the database is to write down (`svc.webhook_trigger`): those of the events file of the gateway that has read it last. Gateways that share a database
 * share the file.
 */
import { idOf } from '../../install/outbox.ts'
import type { Happened } from '../trigger.ts'
import type { Ask } from './ask.ts'

export interface Registration {
  readonly name: string
  readonly schema: string
  readonly table: string
  readonly operations: readonly Happened[]
  readonly source: 'gateway' | 'database'
  readonly byKey: boolean
  readonly tenantColumn: string | null
}

/** One gateway after the other: each replaces the whole. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('svc.webhook_trigger'))`

const FORGET = `DELETE FROM svc.webhook_trigger AS t WHERE t.name NOT IN (SELECT json_array_elements($1::json) ->> 'name') RETURNING t.name`

const REGISTER = `INSERT INTO svc.webhook_trigger AS t (name, "schema", "table", operations, source, by_key, tenant_column)
SELECT r.name, r."schema", r."table", r.operations, r.source, r.by_key, r.tenant_column
FROM json_to_recordset($1::json) AS r(name text, "schema" text, "table" text, operations text[], source text, by_key boolean, tenant_column text)
ON CONFLICT (name) DO UPDATE SET "schema" = excluded."schema", "table" = excluded."table", operations = excluded.operations, source = excluded.source,
  by_key = excluded.by_key, tenant_column = excluded.tenant_column
WHERE (t."schema", t."table", t.operations, t.source, t.by_key, t.tenant_column) IS DISTINCT FROM
  (excluded."schema", excluded."table", excluded.operations, excluded.source, excluded.by_key, excluded.tenant_column)`

/** A ticket is good for so long after it was last registered; outboxes do it anew all the time. */
const TICKET_VALID_SECONDS = 600

const ADMIT = `INSERT INTO svc.ticket AS t (hash, valid_until)
VALUES (pg_catalog.sha256(pg_catalog.convert_to($1, 'UTF8')), now() + interval '${TICKET_VALID_SECONDS} seconds')
ON CONFLICT (hash) DO UPDATE SET valid_until = excluded.valid_until`

const EXPIRE = 'DELETE FROM svc.ticket WHERE valid_until < now()'

/** From now on, statements with this ticket may write down webhooks. */
export async function admit(ask: Ask, ticket: string): Promise<void> {
  await ask({ text: ADMIT, parameters: [ticket] }, { text: EXPIRE, parameters: [] })
}

/** In one transaction; answers the names that were registered and are not any more. */
export async function register(ask: Ask, registrations: readonly Registration[]): Promise<readonly string[]> {
  const rows = JSON.stringify(
    registrations.map(({ name, schema, table, operations, source, byKey, tenantColumn }) => ({
      ...{ name, schema, table, operations, source, by_key: byKey, tenant_column: tenantColumn },
    })),
  )
  const [, gone = []] = await ask(
    { text: LOCK, parameters: [] },
    { text: FORGET, parameters: [rows] },
    { text: REGISTER, parameters: [rows] },
  )
  return gone.flatMap(([name]) => (name == null ? [] : [name]))
}

/** Buried at a time; there is a next time. */
export const BURIED_AT_ONCE = 500

/** A gateway may have read its file a moment ago, and another one not yet. */
const ORPHANED_FOR_SECONDS = 60

/** Triggers are found by skipping through the index from one to the next. */
const BURY = `WITH RECURSIVE triggers AS (
  SELECT (SELECT w.trigger FROM svc.webhook AS w ORDER BY w.trigger LIMIT 1) AS name
  UNION ALL
  SELECT (SELECT w.trigger FROM svc.webhook AS w WHERE w.trigger > t.name ORDER BY w.trigger LIMIT 1) FROM triggers AS t WHERE t.name IS NOT NULL
),
orphans AS MATERIALIZED (
  SELECT w.seq FROM triggers AS t CROSS JOIN LATERAL (
    SELECT w.seq FROM svc.webhook AS w
    WHERE w.trigger = t.name AND w.due_at <= now() AND w.created_at < now() - interval '${ORPHANED_FOR_SECONDS} seconds'
    LIMIT ${BURIED_AT_ONCE} FOR UPDATE SKIP LOCKED
  ) AS w
  WHERE t.name IS NOT NULL AND NOT EXISTS (SELECT FROM json_array_elements_text($1::json) AS known(name) WHERE known.name = t.name)
    AND NOT EXISTS (SELECT FROM svc.webhook_trigger AS r WHERE r.name = t.name)
  LIMIT ${BURIED_AT_ONCE}
),
gone AS (DELETE FROM svc.webhook AS w USING orphans AS o WHERE w.seq = o.seq RETURNING w.*)
INSERT INTO svc.webhook_dead (id, trigger, "schema", "table", operation, new, old, created_at, key, tenant, tries, reason)
SELECT ${idOf('gone')}, trigger, "schema", "table", operation, new, old, created_at, key, tenant, tries, 'there is no such trigger any more, or it is disabled' FROM gone
ON CONFLICT (id) DO NOTHING RETURNING id`

/** Makes dead letters of webhooks whose trigger is neither `known` nor registered by anybody; answers how many. */
export async function buryOrphans(ask: Ask, known: readonly string[]): Promise<number> {
  const [buried = []] = await ask({ text: BURY, parameters: [JSON.stringify(known)] })
  return buried.length
}
