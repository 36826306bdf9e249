/**
 * The SQL that `svc install` runs and prints (docs/guides/installation.md): schema `svc` with the change log, the outbox, and the triggers that fill both. Each statement can be
 * run again on what it made before; all of them are one transaction.
 */
import { quoteLiteral } from '../language/sql/quote.ts'
import { CAPTURE, CAPTURE_TRIGGERS } from './capture.ts'
import { CHOSEN, MEND } from './captured.ts'
import { CHANGE_LOG, CLUSTER } from './change-log.ts'
import { type FeedRole, feedRoleOf, makeFeedRole, RIGHTS, SERVED } from './feed-role.ts'
import { OUTBOX } from './outbox.ts'
import { SCHEMA_WATCH } from './schema-watch.ts'

/** Counts the shapes of schema `svc`. */
export const INSTALLED_VERSION = 3

/** Owns what runs when anybody writes, and has no right to anything else. Of the whole server: other databases may have it too, so it stays. */
export const OWNER = 'svc_capture'

/** Writes to a table wait as long as its trigger does; shorter than an application's patience, and whoever installs can try again. */
const LOCK_TIMEOUT = "SET LOCAL lock_timeout = '3s'"

export interface Choice {
  readonly schema: string
  /** Null: every table of the schema, those to come as well. */
  readonly table: string | null
}

export interface InstallOptions {
  /** The role under which gateways run requests. */
  readonly role: string
  /** The role under which they read the log and deliver webhooks; `<role>_feed`, with the password of `role`, if left out. */
  readonly feed?: FeedRole | undefined
  /** Of whose tables changes are captured, if any; what was chosen before is forgotten. */
  readonly chosen: readonly Choice[]
  /** Whoever installs may make event triggers and roles. */
  readonly superuser: boolean
}

export function installScript({ role, feed = feedRoleOf(role), chosen, superuser }: InstallOptions): readonly string[] {
  return [
    LOCK_TIMEOUT,
    // The event triggers of an installation that is there already have nothing to do.
    "SET LOCAL svc.mending = 'on'",
    'CREATE SCHEMA IF NOT EXISTS svc',
    'REVOKE ALL ON SCHEMA svc FROM PUBLIC',
    ...INSTALLATION,
    ...CHANGE_LOG,
    ...OUTBOX,
    ...SERVED,
    ...CHOSEN,
    ...CAPTURE,
    MEND,
    'REVOKE ALL ON ALL FUNCTIONS IN SCHEMA svc FROM PUBLIC',
    'REVOKE ALL ON ALL TABLES IN SCHEMA svc FROM PUBLIC',
    'DELETE FROM svc.chosen',
    ...chosen.map(
      ({ schema, table }) =>
        `INSERT INTO svc.chosen ("schema", "table") VALUES (${quoteLiteral(schema)}, ${quoteLiteral(table ?? '')})`,
    ),
    ...(superuser ? [...ownedApart(), ...SCHEMA_WATCH, 'REVOKE ALL ON FUNCTION svc.schema_changed() FROM PUBLIC'] : []),
    makeFeedRole(role, feed, superuser),
    `INSERT INTO svc.served (role, feed) VALUES (${quoteLiteral(role)}, ${quoteLiteral(feed.role)}) ON CONFLICT (role) DO UPDATE SET feed = excluded.feed`,
    RIGHTS,
    `INSERT INTO svc.installation (version, cluster) VALUES (${INSTALLED_VERSION}, ${CLUSTER}) ON CONFLICT (one) DO UPDATE SET version = excluded.version`,
    'SELECT svc.mend()',
    // Gateways that run look again.
    "SELECT pg_notify('svc_schema', '')",
  ]
}

/** What is still to be delivered goes as well. */
export function uninstallScript({ superuser }: Pick<InstallOptions, 'superuser'>): readonly string[] {
  const events = ['DROP EVENT TRIGGER IF EXISTS svc_schema_changed', 'DROP EVENT TRIGGER IF EXISTS svc_schema_dropped']
  return [
    LOCK_TIMEOUT,
    LOCK_EVERYTHING,
    ...(superuser ? events : []),
    'DROP SCHEMA IF EXISTS svc CASCADE',
    "SELECT pg_notify('svc_schema', '')",
  ]
}

/** Tables of schema `svc` in the order in which triggers, and gateways that read the log, come by them. Others follow. */
const LOCKED_IN_ORDER = ['change', 'webhook_trigger', 'webhook', 'webhook_attempt', 'webhook_dead', 'installation']
const LOCK_ATTEMPTS_MAX = 6

/**
 * `DROP SCHEMA` locks tables in the order in which they were made, and captured tables last. Writers and gateways that run lock them in another order, so one of
 * the two would be ended as a deadlock. Whoever waits here gives up before a deadlock is looked for (`deadlock_timeout`, 1 s), lets everything go, and tries again.
 */
const LOCK_EVERYTHING = `DO $$ DECLARE
  captured constant text := (SELECT string_agg(each.name, ', ' ORDER BY each.name) FROM (
    SELECT DISTINCT t.tgrelid::regclass::text AS name FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    WHERE p.pronamespace = to_regnamespace('svc') AND c.relnamespace <> p.pronamespace AND c.relkind IN ('r', 'p') AND NOT t.tgisinternal) AS each);
  own constant text := (SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY array_position(ARRAY[${LOCKED_IN_ORDER.map(name => `'${name}'`).join(', ')}], c.relname::text), c.relname)
    FROM pg_catalog.pg_class AS c WHERE c.relnamespace = to_regnamespace('svc') AND c.relkind IN ('r', 'p') AND NOT c.relispartition);
BEGIN
  FOR attempt IN 1..${LOCK_ATTEMPTS_MAX} LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '500ms', true);
      BEGIN
        IF captured IS NOT NULL THEN EXECUTE 'LOCK TABLE ' || captured || ' IN ACCESS EXCLUSIVE MODE'; END IF;
      EXCEPTION WHEN insufficient_privilege THEN NULL;
      END;
      IF own IS NOT NULL THEN EXECUTE 'LOCK TABLE ' || own || ' IN ACCESS EXCLUSIVE MODE'; END IF;
      EXIT;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
      IF attempt = ${LOCK_ATTEMPTS_MAX} THEN RAISE; END IF;
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', '3s', true);
END $$`

/** As a text for `psql`. */
export function printScript(statements: readonly string[]): string {
  return ['BEGIN', ...statements, 'COMMIT'].map(statement => `${statement};\n`).join('\n')
}

const INSTALLATION: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS svc.installation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  epoch uuid NOT NULL DEFAULT gen_random_uuid(),
  cluster text NOT NULL,
  forgotten xid8 NOT NULL DEFAULT '0',
  installed_at timestamptz NOT NULL DEFAULT now()
)`,
  `COMMENT ON TABLE svc.installation IS 'Changes are known from behind transaction "forgotten" on, of the cluster and database that "cluster" names; "epoch" is another when numbers of transactions begin anew.'`,
]

/**
 * A column's type may bring a cast to JSON, and the triggers would run it with the rights of their owner. Tables and what fills them belong to a role that nobody
 * logs in as; what makes triggers and hears of changes of the schema has to belong to who may do that.
 */
function ownedApart(): readonly string[] {
  const functions = [...CAPTURE_TRIGGERS.map(trigger => trigger.function), 'forget_changes', 'forget_attempts', 'store']
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
    ...functions.map(name => `ALTER FUNCTION svc.${name}() OWNER TO ${OWNER}`),
  ]
}
