/**
 * The outbox of webhooks (decision 0023): deliveries, written in the transaction of the change; attempts,
 * kept for a week; dead letters. Gateways register the triggers that they have read from their events file;
 * URLs and secrets stay with the gateways.
 */

/** Days for which attempts are kept, including today. */
export const ATTEMPT_DAYS = 7
export const ATTEMPT_SLOTS: number = ATTEMPT_DAYS + 1

export const DAY_OF_NOW: string = `(extract(epoch FROM clock_timestamp())::bigint / 86400 % ${ATTEMPT_SLOTS})::smallint`

/** The fairness key of a webhook. All webhooks without a tenant share one. */
export const FAIRNESS_KEY = `(coalesce(tenant, '') COLLATE "C")`

/** The columns given by whatever fills the outbox, in this order. */
export const OUTBOX_COLUMNS = 'trigger, "schema", "table", operation, new, old, created_at, key, tenant'

/**
 * The id of a webhook, whose row is named `row`: constant while it is queued. Every value stored costs time
 * in the write, so the id is derived from columns that the row has anyway, and stored only with dead letters
 * and redelivered webhooks. The sequence number alone would be reused when the database is restored to an
 * earlier state.
 */
export function webhookIdSql(row: string): string {
  const written = `(extract(epoch FROM ${row}.created_at) * 1000000)::bigint`
  const digest = `pg_catalog.sha256(pg_catalog.convert_to(${row}.seq || ' ' || ${written}, 'UTF8'))`
  return `coalesce(${row}.id, 'msg_' || pg_catalog.encode(pg_catalog.substr(${digest}, 1, 16), 'hex'))`
}

/**
 * The trace of the request that made the change, as the gateway has set it (run/settings.ts). Any session can
 * do so, so everything else than a header of version 00 is ignored.
 */
export function traceSql(text: string): string {
  return `substring(${text} from '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$')`
}

const TRACE_COLUMN = `traceparent text DEFAULT
  ${traceSql("current_setting('svc.traceparent', true)")}`

const CHANGED = `trigger text NOT NULL,
  "schema" text NOT NULL,
  "table" text NOT NULL,
  operation text NOT NULL,
  new json,
  old json,
  created_at timestamptz NOT NULL`

export const OUTBOX: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS svc.webhook_trigger (
  name text PRIMARY KEY,
  "schema" text NOT NULL,
  "table" text NOT NULL,
  operations text[] NOT NULL,
  source text NOT NULL CHECK (source IN ('gateway', 'database')),
  by_key boolean NOT NULL,
  tenant_column text
)`,
  `COMMENT ON TABLE svc.webhook_trigger IS 'Registered triggers: for writes through a gateway (a session with ` +
    `svc.origin), or for all writes. by_key: changes to one row are delivered in order.'`,
  'CREATE INDEX IF NOT EXISTS webhook_trigger_table ON svc.webhook_trigger ("table", "schema")',
  'CREATE SEQUENCE IF NOT EXISTS svc.webhook_seq',
  // Inserted rows are deleted soon: their space must be reused before the table grows.
  `CREATE TABLE IF NOT EXISTS svc.webhook (
  seq bigint PRIMARY KEY DEFAULT nextval('svc.webhook_seq'),
  id text,
  ${CHANGED},
  key text,
  tenant text,
  tries integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT now(),
  leased_by text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)`,
  // Earlier versions created the table without this column.
  `ALTER TABLE svc.webhook ADD COLUMN IF NOT EXISTS ${TRACE_COLUMN}`,
  // Version 1 stored every id.
  'ALTER TABLE svc.webhook ALTER COLUMN id DROP NOT NULL',
  `COMMENT ON TABLE svc.webhook IS 'Queued webhooks. id: only of redelivered ones; otherwise it is derived from ` +
    'seq and created_at. key: the key of the row, if its changes are delivered in order. due_at: not claimed before ' +
    `this time; while leased_by is delivering it, the end of the lease.'`,
  `CREATE INDEX IF NOT EXISTS webhook_turn ON svc.webhook (trigger, ${FAIRNESS_KEY}, due_at, seq)`,
  'CREATE INDEX IF NOT EXISTS webhook_key ON svc.webhook (trigger, key, seq) WHERE key IS NOT NULL',
  `CREATE TABLE IF NOT EXISTS svc.webhook_dead (
  id text COLLATE "C" PRIMARY KEY,
  ${CHANGED},
  key text,
  tenant text,
  tries integer NOT NULL,
  reason text NOT NULL,
  status integer,
  answer text,
  message text,
  given_up_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
)`,
  'CREATE INDEX IF NOT EXISTS webhook_dead_at ON svc.webhook_dead (given_up_at, id)',
  `CREATE TABLE IF NOT EXISTS svc.webhook_attempt (
  day smallint NOT NULL DEFAULT ${DAY_OF_NOW},
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  webhook text NOT NULL,
  trigger text NOT NULL,
  try integer NOT NULL,
  outcome text NOT NULL,
  duration_ms integer NOT NULL,
  status integer,
  answer text,
  message text
) PARTITION BY LIST (day)`,
  ...Array.from(
    { length: ATTEMPT_SLOTS },
    (_, day) =>
      `CREATE TABLE IF NOT EXISTS svc.webhook_attempt_${day} PARTITION OF svc.webhook_attempt FOR VALUES IN (${day})`,
  ),
  'CREATE INDEX IF NOT EXISTS webhook_attempt_webhook ON svc.webhook_attempt (webhook)',
  `CREATE OR REPLACE FUNCTION svc.forget_attempts() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  today constant smallint := ${DAY_OF_NOW};
  oldest constant timestamptz := clock_timestamp() - interval '${ATTEMPT_DAYS} days';
  stale boolean;
  did boolean := false;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('svc.forget_attempts')) THEN RETURN false; END IF;
  FOR day IN 0..${ATTEMPT_SLOTS - 1} LOOP
    EXECUTE format('SELECT at < $1 FROM svc.%I LIMIT 1', 'webhook_attempt_' || day) INTO stale USING oldest;
    CONTINUE WHEN stale IS NOT TRUE;
    IF day <> today THEN EXECUTE format('TRUNCATE svc.%I', 'webhook_attempt_' || day);
    ELSE EXECUTE format('DELETE FROM svc.%I WHERE at < $1', 'webhook_attempt_' || day) USING oldest;
    END IF;
    did := true;
  END LOOP;
  RETURN did;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$`,
  // Earlier releases let statements of gateways insert.
  'DROP VIEW IF EXISTS svc.gateway_webhook',
  'DROP FUNCTION IF EXISTS svc.store()',
]
