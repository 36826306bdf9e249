/** The state of an installation made by `svc install`, as a gateway detects it. */
import type { Query } from '../catalog/introspect.ts'
import { CAPTURED_TABLES } from './captured-tables.ts'
import { CLUSTER } from './change-log.ts'
import { INSTALLED_VERSION } from './script.ts'

/** A usable installation. */
export interface Installation {
  /** Transaction numbers are comparable only within one epoch. */
  readonly epoch: string
  /** True if the log was written in this cluster and database, rather than in one that this is a copy of. */
  readonly isHere: boolean
  /** The feed role. */
  readonly feed: string
  /** Captured tables, without partitions, as `schema.table`. */
  readonly captured: ReadonlySet<string>
  /** Those of them that are captured from the write-ahead log instead of by triggers. */
  readonly fromWal: ReadonlySet<string>
  /** True if changes are captured from the write-ahead log, where a table allows it. */
  readonly usesWal: boolean
  /** Selected tables and partitions whose capture is incomplete. */
  readonly broken: readonly string[]
}

/** An installation that cannot be used. */
export interface Unusable {
  readonly reason: string
  readonly fix: string
}

const OTHER_ROLE: Unusable = {
  reason: 'it was created for another role.',
  fix: 'Run svc install again, with the role of this gateway as --role.',
}

const PRESENT = `SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'svc' AND c.relname = 'installation'`

const VERSION = 'SELECT version FROM svc.installation'

const STATE = `SELECT cluster = ${CLUSTER}, epoch || '.' || (SELECT timeline_id
  FROM pg_catalog.pg_control_checkpoint()),
  (SELECT s.feed FROM svc.served AS s WHERE s.role = current_user),
  EXISTS (SELECT FROM svc.wal) FROM svc.installation`

const TABLES = `SELECT f.root_schema || '.' || f.root_table, f."schema" || '.' || f."table",
  bool_and(f.whole) OVER (PARTITION BY f.root_schema, f.root_table), f.whole, f.source
  FROM (${CAPTURED_TABLES}) AS f`

/** Opens a session of the feed role. Rejects with `FeedError` if that role cannot log in. */
export type OpenFeed = (role: string) => Promise<Query>

/** The feed role cannot log in; retrying does not help until a password, role or configuration is changed. */
export class FeedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FeedError'
  }
}

/**
 * Like `inspectInstallation`, but repairs missing triggers where possible, and starts a new log in a database
 * that was copied from another. An installation whose feed role cannot log in is unusable, because its log
 * cannot be read.
 */
export async function readInstallation(ask: Query, openFeed: OpenFeed): Promise<Installation | Unusable | null> {
  const found = await inspectInstallation(ask)
  if (found === null || 'reason' in found) return found
  const feed = await openFeed(found.feed).catch(unusableFeed)
  if ('reason' in feed) return feed
  if (!found.isHere) await feed('SELECT svc.forget_changes()', [])
  if (found.broken.length > 0) await feed('SELECT svc.repair()', []).catch(() => {})
  return found.isHere && found.broken.length === 0 ? found : inspectInstallation(ask)
}

/** Describes a `FeedError`; rejects with any other error, such as an unavailable database. */
export function unusableFeed(error: unknown): Unusable {
  if (!(error instanceof FeedError)) throw error
  return {
    reason: error.message,
    fix:
      'Allow the role in pg_hba.conf (and in the pooler, if there is one), run svc install again as a ' +
      "superuser to give it the password of the gateway's role, or set feed_url.",
  }
}

/** Inspects the installation without changing anything. Null if nothing is installed. */
export async function inspectInstallation(ask: Query): Promise<Installation | Unusable | null> {
  const [[allowed] = []] = await ask(PRESENT, [])
  if (allowed === undefined) return null
  if (allowed !== 't') return OTHER_ROLE
  const [[version] = []] = await ask(VERSION, [])
  if (Number(version) !== INSTALLED_VERSION) {
    const reason = `it has version ${version}, but this gateway requires version ${INSTALLED_VERSION}.`
    const newer = Number(version) > INSTALLED_VERSION
    return { reason, fix: newer ? 'Run the version of the gateway that installed it.' : 'Run svc install again.' }
  }
  const [[isHere, epoch, feed, usesWal] = []] = await ask(STATE, [])
  if (feed == null) return OTHER_ROLE
  const tables = await ask(TABLES, [])
  return {
    epoch: epoch ?? '',
    isHere: isHere === 't',
    feed,
    captured: new Set(tables.flatMap(([root, , all]) => (all === 't' && root != null ? [root] : []))),
    fromWal: new Set(
      tables.flatMap(([root, , all, , source]) => (all === 't' && root != null && source === 'wal' ? [root] : [])),
    ),
    usesWal: usesWal === 't',
    broken: tables.flatMap(([, table, , whole]) => (whole === 't' || table == null ? [] : [table])),
  }
}
