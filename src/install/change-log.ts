/**
 * The change log (decision 0021): the changes to rows, written in the transaction of the change. It is a ring
 * of tables, one for each hour of a day plus two: an hour that has expired is deleted by truncating a table,
 * and no table is created while the gateway runs.
 */

/** Hours that are kept, including the current one. */
export const RETENTION_HOURS = 25
export const SLOTS: number = RETENTION_HOURS + 1

/** Limit on the rows of one statement that are logged individually. */
export const ROWS_MAX = 1_000

export const SLOT_OF_NOW: string = `(extract(epoch FROM clock_timestamp())::bigint / 3600 % ${SLOTS})::smallint`

/** Identifies the cluster and database in which transaction numbers are valid. */
export const CLUSTER = `(SELECT system_identifier FROM pg_catalog.pg_control_system()) || '.' ||
  (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())`

/** Creates the change log. */
export const CHANGE_LOG: readonly string[] = [
  'CREATE SEQUENCE IF NOT EXISTS svc.change_seq',
  `CREATE TABLE IF NOT EXISTS svc.change (
  slot smallint NOT NULL DEFAULT ${SLOT_OF_NOW},
  seq bigint NOT NULL DEFAULT nextval('svc.change_seq'),
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  "schema" text NOT NULL,
  "table" text NOT NULL,
  operation "char" NOT NULL,
  key jsonb,
  was jsonb,
  old json,
  new json,
  writer xid8
) PARTITION BY LIST (slot)`,
  // Also for installations of earlier versions.
  'ALTER TABLE svc.change ADD COLUMN IF NOT EXISTS writer xid8',
  `COMMENT ON TABLE svc.change IS 'Changes to rows of the last day. operation: I, U, D, or B for a bulk change, ` +
    'which has no key; new then has the values of columns that policies read, if they are few. was: the key before ' +
    `the change, if it changed. For a partition, the table is the partitioned table.'`,
  ...slots(slot => `CREATE TABLE IF NOT EXISTS svc.change_${slot} PARTITION OF svc.change FOR VALUES IN (${slot})`),
  'CREATE INDEX IF NOT EXISTS change_xid ON svc.change (xid, seq)',
  `CREATE OR REPLACE FUNCTION svc.forget_changes() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
  here constant text := ${CLUSTER};
  now_slot constant smallint := ${SLOT_OF_NOW};
  oldest constant timestamptz := clock_timestamp() - interval '${RETENTION_HOURS} hours';
  gone xid8;
  newest xid8;
  first_at timestamptz;
  last_at timestamptz;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('svc.forget_changes')) THEN RETURN false; END IF;
  IF (SELECT cluster FROM svc.installation) <> here THEN
    TRUNCATE svc.change;
    UPDATE svc.installation SET cluster = here, epoch = gen_random_uuid(), forgotten = pg_current_xact_id();
    RETURN true;
  END IF;
  FOR slot IN 0..${SLOTS - 1} LOOP
    EXECUTE format(
      'SELECT (SELECT at FROM svc.%1$I ORDER BY xid LIMIT 1), (SELECT at FROM svc.%1$I ORDER BY xid DESC LIMIT 1)',
      'change_' || slot)
      INTO first_at, last_at;
    CONTINUE WHEN first_at IS NULL OR first_at >= oldest;
    IF last_at < oldest AND slot <> now_slot THEN
      EXECUTE format('SELECT xid FROM svc.%I ORDER BY xid DESC LIMIT 1', 'change_' || slot) INTO gone;
      EXECUTE format('TRUNCATE svc.%I', 'change_' || slot);
    ELSE
      EXECUTE format(
        'WITH gone AS (DELETE FROM svc.%I WHERE at < $1 RETURNING xid) SELECT xid FROM gone ORDER BY xid DESC LIMIT 1',
        'change_' || slot)
        INTO gone USING oldest;
    END IF;
    IF newest IS NULL OR gone > newest THEN newest := gone; END IF;
  END LOOP;
  UPDATE svc.installation SET forgotten = newest WHERE forgotten < newest;
  RETURN newest IS NOT NULL;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$`,
]

function slots(statement: (slot: number) => string): readonly string[] {
  return Array.from({ length: SLOTS }, (_, slot) => statement(slot))
}
