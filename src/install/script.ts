/**
 * The SQL that `svc install` runs and prints (docs/guides/installation.md): schema `svc` with the change log,
 * the outbox, and the triggers that fill both. Each statement can be run again on its earlier result; all of
 * them form one transaction.
 */
import { quoteLiteral } from '../language/sql/quote.ts'
import { CAPTURE, CAPTURE_TRIGGERS } from './capture.ts'
import { REPAIR, SELECTED_TABLES } from './captured-tables.ts'
import { CHANGE_LOG, CLUSTER } from './change-log.ts'
import { allowReplication, createFeedRole, type FeedRole, feedRoleOf, GATEWAY_ROLES, RIGHTS } from './feed-role.ts'
import { IDEMPOTENCY_KEYS, KEY_FUNCTIONS } from './idempotency-keys.ts'
import { OUTBOX } from './outbox.ts'
import { SCHEMA_EVENT_TRIGGERS } from './schema-event-triggers.ts'
import {
  type CaptureMode,
  DROP_UNUSED_PUBLICATION,
  REMOVE_WAL_CAPTURE,
  setCaptureMode,
  WAL_TABLES,
} from './wal-capture.ts'

/** The version of schema `svc`. */
export const INSTALLED_VERSION = 5

/**
 * The role that owns whatever runs during writes, and that has no other rights. It belongs to the whole
 * server and other databases may use it too, so it is never dropped.
 */
export const OWNER = 'svc_capture'

/**
 * Writes to a table wait while its trigger is created; shorter than applications' timeouts, and the
 * installation can be retried.
 */
const LOCK_TIMEOUT = "SET LOCAL lock_timeout = '3s'"

/** The statement of the script that changes the captured tables, and waits for writes in progress on them. */
export const CAPTURE_TABLES = 'SELECT svc.repair()'

/** A selected table or schema. */
export interface TableSelection {
  readonly schema: string
  /** The table; null selects every table of the schema, including later ones. */
  readonly table: string | null
}

/** Options of an installation. */
export interface InstallOptions {
  /** The role under which gateways run requests. */
  readonly role: string
  /** The feed role; `<role>_feed` with the password of `role` by default. */
  readonly feed?: FeedRole | undefined
  /** The tables to capture; replaces an earlier selection. */
  readonly selected: readonly TableSelection[]
  /** True if the installing role may create event triggers and roles. */
  readonly superuser: boolean
  /** How changes are captured; by triggers by default. From the log, the slot is created afterwards. */
  readonly capture?: CaptureMode | undefined
}

/** The statements of an installation. */
export function installScript({
  role,
  feed = feedRoleOf(role),
  selected,
  superuser,
  capture = 'triggers',
}: InstallOptions): readonly string[] {
  return [
    LOCK_TIMEOUT,
    // Disables the event triggers of an existing installation.
    "SET LOCAL svc.repairing = 'on'",
    'CREATE SCHEMA IF NOT EXISTS svc',
    'REVOKE ALL ON SCHEMA svc FROM PUBLIC',
    LOCK_READER,
    RENAME_EARLIER,
    ...INSTALLATION,
    ...CHANGE_LOG,
    ...OUTBOX,
    ...IDEMPOTENCY_KEYS,
    ...GATEWAY_ROLES,
    ...SELECTED_TABLES,
    ...WAL_TABLES,
    ...setCaptureMode(capture),
    ...CAPTURE,
    REPAIR,
    'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA svc FROM PUBLIC',
    'REVOKE ALL ON ALL TABLES IN SCHEMA svc FROM PUBLIC',
    'DELETE FROM svc.selected',
    ...selected.map(
      ({ schema, table }) =>
        `INSERT INTO svc.selected ("schema", "table") VALUES (${quoteLiteral(schema)}, ${quoteLiteral(table ?? '')})`,
    ),
    ...(superuser
      ? [...separateOwnership(), ...SCHEMA_EVENT_TRIGGERS, 'REVOKE ALL ON FUNCTION svc.schema_changed() FROM PUBLIC']
      : []),
    createFeedRole(role, feed, superuser),
    `INSERT INTO svc.served (role, feed) VALUES (${quoteLiteral(role)}, ${quoteLiteral(feed.role)})
  ON CONFLICT (role) DO UPDATE SET feed = excluded.feed`,
    ...(capture === 'wal' && superuser ? [allowReplication(feed.role)] : []),
    RIGHTS,
    `INSERT INTO svc.installation (version, cluster) VALUES (${INSTALLED_VERSION}, ${CLUSTER})
  ON CONFLICT (one) DO UPDATE SET version = excluded.version`,
    CAPTURE_TABLES,
    DROP_UNUSED_PUBLICATION,
    // Running gateways check again.
    "SELECT pg_notify('svc_schema', '')",
  ]
}

/** The statements that uninstall everything, including undelivered webhooks. */
export function uninstallScript({ superuser }: Pick<InstallOptions, 'superuser'>): readonly string[] {
  const events = ['DROP EVENT TRIGGER IF EXISTS svc_schema_changed', 'DROP EVENT TRIGGER IF EXISTS svc_schema_dropped']
  return [
    LOCK_TIMEOUT,
    LOCK_ALL,
    ...(superuser ? events : []),
    REMOVE_WAL_CAPTURE,
    'DROP SCHEMA IF EXISTS svc CASCADE',
    "SELECT pg_notify('svc_schema', '')",
  ]
}

/** Tables of schema `svc` in the order in which triggers and gateways lock them. Others follow. */
const LOCKED_IN_ORDER = [
  'wal',
  'change',
  'webhook_trigger',
  'webhook',
  'webhook_attempt',
  'webhook_dead',
  'installation',
]
const LOCK_ATTEMPTS_MAX = 6

/**
 * Takes locks in short attempts, each of which ends before the deadlock check (`deadlock_timeout`, 1 s) and
 * releases what it has.
 */
function lockInAttempts(lock: string): string {
  return `FOR attempt IN 1..${LOCK_ATTEMPTS_MAX} LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '500ms', true);
      ${lock}
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF attempt = ${LOCK_ATTEMPTS_MAX} THEN RAISE; END IF;
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', '3s', true);`
}

/** A gateway that reads the write-ahead log locks these in the same order. */
const LOCK_READER = `DO $$ BEGIN
  IF to_regclass('svc.wal') IS NULL THEN RETURN; END IF;
  IF NOT EXISTS (SELECT FROM svc.wal) THEN RETURN; END IF;
  ${lockInAttempts('LOCK TABLE svc.wal, svc.change IN ACCESS EXCLUSIVE MODE;')}
END $$`

/**
 * `DROP SCHEMA` locks tables in the order of their creation, and captured tables last. Writers and running
 * gateways lock them in another order, so one side would be terminated because of a deadlock.
 */
const LOCK_ALL = `DO $$ DECLARE
  captured constant text := (SELECT string_agg(each.name, ', ' ORDER BY each.name) FROM (
    SELECT DISTINCT t.tgrelid::regclass::text AS name FROM pg_catalog.pg_trigger AS t
      JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    WHERE p.pronamespace = to_regnamespace('svc') AND c.relnamespace <> p.pronamespace
      AND c.relkind IN ('r', 'p') AND NOT t.tgisinternal) AS each);
  own constant text := (SELECT string_agg(c.oid::regclass::text, ', '
    ORDER BY array_position(ARRAY[${LOCKED_IN_ORDER.map(name => `'${name}'`).join(', ')}], c.relname::text), c.relname)
    FROM pg_catalog.pg_class AS c WHERE c.relnamespace = to_regnamespace('svc') AND c.relkind IN ('r', 'p')
      AND NOT c.relispartition);
BEGIN
  ${lockInAttempts(`BEGIN
        IF captured IS NOT NULL THEN EXECUTE 'LOCK TABLE ' || captured || ' IN ACCESS EXCLUSIVE MODE'; END IF;
      EXCEPTION WHEN insufficient_privilege THEN NULL;
      END;
      IF own IS NOT NULL THEN EXECUTE 'LOCK TABLE ' || own || ' IN ACCESS EXCLUSIVE MODE'; END IF;`)}
END $$`

/** The script as text for `psql`. */
export function printScript(statements: readonly string[]): string {
  return ['BEGIN', ...statements, 'COMMIT'].map(statement => `${statement};\n`).join('\n')
}

/** Gives objects of versions before 5 their present names. */
const RENAME_EARLIER = `DO $$ BEGIN
  ALTER TABLE IF EXISTS svc.chosen RENAME TO selected;
  DROP VIEW IF EXISTS svc.told;
  IF to_regprocedure('svc.mend()') IS NOT NULL THEN ALTER FUNCTION svc.mend() RENAME TO repair; END IF;
END $$`

const INSTALLATION: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS svc.installation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  epoch uuid NOT NULL DEFAULT gen_random_uuid(),
  cluster text NOT NULL,
  forgotten xid8 NOT NULL DEFAULT '0',
  installed_at timestamptz NOT NULL DEFAULT now()
)`,
  `COMMENT ON TABLE svc.installation IS 'The log is complete after transaction "forgotten", in the cluster and ` +
    `database identified by "cluster"; "epoch" changes when transaction numbers start again.'`,
]

/**
 * A column's type may have a cast to JSON, which the triggers would run with the rights of their owner. So
 * tables and the functions that fill them belong to a role that cannot log in; functions that create triggers
 * and react to schema changes belong to a role that may do so.
 */
function separateOwnership(): readonly string[] {
  const names = [...CAPTURE_TRIGGERS.map(trigger => trigger.function), 'forget_changes', 'forget_attempts']
  const functions = [...names.map(name => `svc.${name}()`), ...Object.values(KEY_FUNCTIONS)]
  return [
    `DO $$ BEGIN
  IF to_regrole('${OWNER}') IS NULL THEN CREATE ROLE ${OWNER} NOLOGIN; END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`,
    `GRANT USAGE ON SCHEMA svc TO ${OWNER}`,
    `DO $$ DECLARE it record; BEGIN
  FOR it IN SELECT c.oid::regclass AS relation FROM pg_catalog.pg_class AS c
    WHERE c.relnamespace = 'svc'::regnamespace AND c.relkind IN ('r', 'p', 'S')
  LOOP EXECUTE format('ALTER TABLE %s OWNER TO ${OWNER}', it.relation); END LOOP;
END $$`,
    ...functions.map(name => `ALTER FUNCTION ${name} OWNER TO ${OWNER}`),
  ]
}
