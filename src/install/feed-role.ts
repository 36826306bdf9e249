/**
 * The feed role: the login role under which gateways read the change log and deliver webhooks. Request SQL
 * runs as the gateway's own role, which has no access to either, cannot become the feed role, and cannot log
 * in as it (decision 0028).
 */
import { quoteLiteral } from '../language/sql/quote.ts'
import { CALLED_BY_REQUESTS } from './idempotency-keys.ts'

/** A feed role and its password. */
export interface FeedRole {
  readonly role: string
  /**
   * How the role logs in. `copied`: with the password of the gateway's role, copied by each installation;
   * `kept`: with its existing password, or none if the role is created; otherwise with a SCRAM verifier that
   * is set when the role is created.
   */
  readonly password: 'copied' | 'kept' | { readonly verifier: string }
}

/** PostgreSQL truncates longer names (PostgreSQL manual, 4.1.1: NAMEDATALEN). */
const NAME_BYTES_MAX = 63
const SUFFIX = '_feed'

/** The default feed role of a gateway's role. */
export function feedRoleOf(role: string): FeedRole {
  const bytes = Buffer.from(role).subarray(0, NAME_BYTES_MAX - SUFFIX.length)
  return { role: `${new TextDecoder().decode(bytes).replace(/\ufffd+$/, '')}${SUFFIX}`, password: 'copied' }
}

/** The table of gateway roles with their feed roles. */
export const GATEWAY_ROLES: readonly string[] = [
  'CREATE TABLE IF NOT EXISTS svc.served (role text PRIMARY KEY, feed text NOT NULL)',
  `COMMENT ON TABLE svc.served IS 'Roles of gateways, each with the role that ` +
    `reads the change log and delivers webhooks for it.'`,
]

/** Creates the role. A verifier is copied without being shown; only superusers can read it. */
export function createFeedRole(role: string, { role: feed, password }: FeedRole, superuser: boolean): string {
  const copies = password === 'copied' && superuser
  const verifier = copies
    ? `(SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = ${quoteLiteral(role)}
  AND rolpassword LIKE 'SCRAM-SHA-256$%')`
    : typeof password === 'object'
      ? quoteLiteral(password.verifier)
      : 'NULL'
  const follow = `
  ELSIF verifier <> coalesce((SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = feed), '') THEN
    EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L', feed, verifier);`
  return `DO $$ DECLARE
  feed constant text := ${quoteLiteral(feed)};
  verifier constant text := ${verifier};
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = feed) THEN
    EXECUTE format('CREATE ROLE %I LOGIN PASSWORD %L', feed, verifier);${copies ? follow : ''}
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`
}

/** Lets the role read the write-ahead log. Roles belong to the whole server: changed only if needed. */
export function allowReplication(feed: string): string {
  return `DO $$ DECLARE feed constant text := ${quoteLiteral(feed)}; BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = feed AND NOT rolreplication) THEN
    EXECUTE format('ALTER ROLE %I REPLICATION', feed);
  END IF;
END $$`
}

/**
 * Revokes all rights in schema \`svc\` from everyone but the owners, and grants the intended ones again,
 * because earlier versions granted gateways all of them. A gateway's role may only detect what is installed,
 * and use idempotency keys with a ticket (idempotency-keys.ts).
 */
export const RIGHTS: string = `DO $$ DECLARE it record; BEGIN
  FOR it IN SELECT DISTINCT CASE c.relkind WHEN 'S' THEN 'SEQUENCE'
    ELSE 'TABLE' END AS kind, c.relname AS name, a.grantee
    FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS a
    WHERE c.relnamespace = 'svc'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
      AND a.grantee NOT IN (0, c.relowner)
  LOOP EXECUTE format('REVOKE ALL ON %s svc.%I FROM %s', it.kind, it.name, it.grantee::regrole); END LOOP;
  FOR it IN SELECT DISTINCT p.oid::regprocedure AS name, a.grantee
    FROM pg_catalog.pg_proc AS p CROSS JOIN LATERAL pg_catalog.aclexplode(p.proacl) AS a
    WHERE p.pronamespace = 'svc'::regnamespace AND a.grantee NOT IN (0, p.proowner)
  LOOP EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', it.name, it.grantee::regrole); END LOOP;
  FOR it IN SELECT s.role, s.feed FROM svc.served AS s
    JOIN pg_catalog.pg_roles AS r ON r.rolname = s.role JOIN pg_catalog.pg_roles AS f ON f.rolname = s.feed
  LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA svc TO %I, %I', it.role, it.feed);
    EXECUTE format('GRANT SELECT ON svc.installation, svc.served, svc.selected, svc.wal TO %I, %I', it.role, it.feed);
    EXECUTE format('GRANT EXECUTE ON FUNCTION ${CALLED_BY_REQUESTS.join(', ')} TO %I', it.role);
    EXECUTE format('GRANT SELECT ON svc.change TO %I', it.feed);
    -- It stores what it decodes.
    IF EXISTS (SELECT FROM svc.wal) THEN
      EXECUTE format('GRANT INSERT ON svc.change TO %I', it.feed);
      EXECUTE format('GRANT USAGE ON SEQUENCE svc.change_seq TO %I', it.feed);
      EXECUTE format('GRANT UPDATE ON svc.wal TO %I', it.feed);
      EXECUTE format('GRANT EXECUTE ON FUNCTION svc.await_writers(xid8[]) TO %I', it.feed);
    END IF;
    EXECUTE format(
      'GRANT SELECT, INSERT, UPDATE, DELETE ON svc.webhook_trigger, svc.webhook, svc.webhook_dead, svc.ticket TO %I',
      it.feed);
    EXECUTE format('GRANT SELECT, INSERT ON svc.webhook_attempt TO %I', it.feed);
    -- What is sent again comes behind what waits.
    EXECUTE format('GRANT USAGE ON SEQUENCE svc.webhook_seq TO %I', it.feed);
    EXECUTE format('GRANT EXECUTE ON FUNCTION svc.repair(), svc.forget_changes(), svc.forget_attempts() TO %I',
      it.feed);
    EXECUTE format('GRANT EXECUTE ON FUNCTION svc.forget_keys() TO %I', it.feed);
  END LOOP;
END $$`
