/** What `svc install` has made in a database, as a gateway finds it. */
import type { Query } from '../catalog/introspect.ts'
import { CAPTURED_TABLES } from './captured.ts'
import { CLUSTER } from './change-log.ts'
import { INSTALLED_VERSION } from './script.ts'

export interface Installation {
  /** Numbers of transactions mean the same as long as it is the same. */
  readonly epoch: string
  /** The log was written in this cluster and database, and not in one that this is a copy of. */
  readonly isHere: boolean
  /** The role that reads the change log and delivers webhooks. */
  readonly feed: string
  /** Tables with a name of their own – no partitions – whose changes are all written down, as `schema.table`. */
  readonly captured: ReadonlySet<string>
  /** Tables, partitions among them, that were chosen and lack what captures them. */
  readonly broken: readonly string[]
}

export interface Unusable {
  readonly reason: string
  readonly fix: string
}

const OF_ANOTHER_ROLE: Unusable = {
  reason: 'it was made for another role.',
  fix: 'Run svc install again, with --role of this gateway.',
}

const PRESENT = `SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'svc' AND c.relname = 'installation'`

const VERSION = 'SELECT version FROM svc.installation'

const STATE = `SELECT cluster = ${CLUSTER}, epoch || '.' || (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()),
  (SELECT s.feed FROM svc.served AS s WHERE s.role = current_user) FROM svc.installation`

const TABLES = `SELECT f.root_schema || '.' || f.root_table, f."schema" || '.' || f."table", bool_and(f.whole) OVER (PARTITION BY f.root_schema, f.root_table), f.whole
  FROM (${CAPTURED_TABLES}) AS f`

/** A session of the feed role. Rejects with `FeedError` when that role cannot log in. */
export type OpenFeed = (role: string) => Promise<Query>

/** Trying again does not help until somebody changes a password, a role or the configuration. */
export class FeedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FeedError'
  }
}

/**
 * As `inspectInstallation`; what is missing of the triggers is repaired, as far as that is possible, and a database that was copied from another starts a new log. An
 * installation whose feed role cannot log in cannot be used: nobody could read the log.
 */
export async function readInstallation(ask: Query, openFeed: OpenFeed): Promise<Installation | Unusable | null> {
  const found = await inspectInstallation(ask)
  if (found === null || 'reason' in found) return found
  const feed = await openFeed(found.feed).catch(unusableFeed)
  if ('reason' in feed) return feed
  if (!found.isHere) await feed('SELECT svc.forget_changes()', [])
  if (found.broken.length > 0) await feed('SELECT svc.mend()', []).catch(() => {})
  return found.isHere && found.broken.length === 0 ? found : inspectInstallation(ask)
}

/** Rejects with what is not about the feed role: the database is away. */
export function unusableFeed(error: unknown): Unusable {
  if (!(error instanceof FeedError)) throw error
  return {
    reason: error.message,
    fix: "Admit it in pg_hba.conf (and in the pooler, if there is one), run svc install again as a superuser, which gives it the password of the gateway's role, or set feed_url.",
  }
}

/** Null: nothing is installed. Changes nothing. */
export async function inspectInstallation(ask: Query): Promise<Installation | Unusable | null> {
  const [[allowed] = []] = await ask(PRESENT, [])
  if (allowed === undefined) return null
  if (allowed !== 't') return OF_ANOTHER_ROLE
  const [[version] = []] = await ask(VERSION, [])
  if (Number(version) !== INSTALLED_VERSION) {
    const reason = `it has version ${version}, and this gateway knows version ${INSTALLED_VERSION}.`
    const newer = Number(version) > INSTALLED_VERSION
    return { reason, fix: newer ? 'Run the gateway that came with it.' : 'Run svc install again.' }
  }
  const [[isHere, epoch, feed] = []] = await ask(STATE, [])
  if (feed == null) return OF_ANOTHER_ROLE
  const tables = await ask(TABLES, [])
  return {
    epoch: epoch ?? '',
    isHere: isHere === 't',
    feed,
    captured: new Set(tables.flatMap(([root, , all]) => (all === 't' && root != null ? [root] : []))),
    broken: tables.flatMap(([, table, , whole]) => (whole === 't' || table == null ? [] : [table])),
  }
}
