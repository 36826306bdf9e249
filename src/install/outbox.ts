/**
 * The outbox of webhooks (decision 0023): deliveries, written in the transaction of the change; attempts, kept for a week; dead letters.
 * Which changes are wanted is registered by the gateways, which have read the file with the triggers; where they go and how they are signed stays with them.
 */

/** Days for which attempts are kept, today included. */
export const ATTEMPT_DAYS = 7
export const ATTEMPT_SLOTS: number = ATTEMPT_DAYS + 1

export const DAY_OF_NOW: string = `(extract(epoch FROM clock_timestamp())::bigint / 86400 % ${ATTEMPT_SLOTS})::smallint`

/** Of a webhook: whose turn it takes. Everybody without a tenant is one. */
export const TURN = `(coalesce(tenant, '') COLLATE "C")`

/** What whoever fills the outbox gives of a webhook, in this order. */
export const TOLD = 'trigger, "schema", "table", operation, new, old, created_at, key, tenant'

/** And what a statement adds that hands it to `svc.told`. */
export const TICKET = 'ticket'

/**
 * The id of a webhook, of whose row `row` is the name: the same as long as it waits. A write pays for every value that is made and stored, so it is made of what the row has
 * anyway, and stored only with dead letters and what is sent again. Its number alone would come twice when the database is restored to an earlier time.
 */
export function idOf(row: string): string {
  const written = `(extract(epoch FROM ${row}.created_at) * 1000000)::bigint`
  const digest = `pg_catalog.sha256(pg_catalog.convert_to(${row}.seq || ' ' || ${written}, 'UTF8'))`
  return `coalesce(${row}.id, 'msg_' || pg_catalog.encode(pg_catalog.substr(${digest}, 1, 16), 'hex'))`
}

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
  `COMMENT ON TABLE svc.webhook_trigger IS 'Which changes are wanted: of writes through a gateway (a session with svc.origin), or of all. by_key: those of one row are told in their order.'`,
  'CREATE INDEX IF NOT EXISTS webhook_trigger_table ON svc.webhook_trigger ("table", "schema")',
  'CREATE SEQUENCE IF NOT EXISTS svc.webhook_seq',
  // What is inserted is deleted soon: its space must be found again before the table has grown.
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
  // Version 1 stored every id.
  'ALTER TABLE svc.webhook ALTER COLUMN id DROP NOT NULL',
  `COMMENT ON TABLE svc.webhook IS 'Webhooks that are to be delivered. id: of those that are sent again; the others have one made of seq and created_at. key: of the row, where the order of its changes is to be kept. due_at: nobody takes it before; while leased_by delivers it, when that has failed.'`,
  `CREATE INDEX IF NOT EXISTS webhook_turn ON svc.webhook (trigger, ${TURN}, due_at, seq)`,
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
  // Tickets of gateways that run; only what they hash to is kept.
  'CREATE TABLE IF NOT EXISTS svc.ticket (hash bytea PRIMARY KEY, valid_until timestamptz NOT NULL)',
  `CREATE OR REPLACE VIEW svc.told AS SELECT NULL::text AS trigger, NULL::text AS "schema", NULL::text AS "table", NULL::text AS operation, NULL::json AS new, NULL::json AS old,
  NULL::timestamptz AS created_at, NULL::text AS key, NULL::text AS tenant, NULL::text AS ticket WHERE false`,
  `COMMENT ON VIEW svc.told IS 'Takes webhooks of tables without capture triggers from the statements that gateways make. The ticket is known to gateways alone, and always a bound parameter.'`,
  `CREATE OR REPLACE FUNCTION svc.store() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM svc.ticket AS t WHERE t.hash = sha256(convert_to(NEW.ticket, 'UTF8')) AND t.valid_until > clock_timestamp()) THEN
    RAISE insufficient_privilege USING MESSAGE = 'svc.told takes webhooks from gateways only';
  END IF;
  INSERT INTO svc.webhook (${TOLD})
    VALUES (NEW.trigger, NEW."schema", NEW."table", NEW.operation, NEW.new, NEW.old, NEW.created_at, NEW.key, NEW.tenant);
  RETURN NEW;
END $$`,
  'DROP TRIGGER IF EXISTS svc_store ON svc.told',
  'CREATE TRIGGER svc_store INSTEAD OF INSERT ON svc.told FOR EACH ROW EXECUTE FUNCTION svc.store()',
]
