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
  /** Tables with a name of their own – no partitions – whose changes are all written down, as `schema.table`. */
  readonly captured: ReadonlySet<string>
  /** Tables, partitions among them, that were chosen and lack what captures them. */
  readonly broken: readonly string[]
}

export interface Unusable {
  readonly reason: string
  readonly fix: string
}

const PRESENT = `SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'svc' AND c.relname = 'installation'`

const STATE = `SELECT version, cluster = ${CLUSTER}, epoch || '.' || (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()) FROM svc.installation`

const TABLES = `SELECT f.root_schema || '.' || f.root_table, f."schema" || '.' || f."table", bool_and(f.whole) OVER (PARTITION BY f.root_schema, f.root_table), f.whole
  FROM (${CAPTURED_TABLES}) AS f`

/**
 * As `inspectInstallation`; what is missing of the triggers is mended, as far as that may be done, and a database that was copied from another begins its log
 * anew.
 */
export async function readInstallation(ask: Query): Promise<Installation | Unusable | null> {
  const found = await inspectInstallation(ask)
  if (found === null || 'reason' in found) return found
  if (!found.isHere) await ask('SELECT svc.forget_changes()', [])
  if (found.broken.length > 0) await ask('SELECT svc.mend()', []).catch(() => {})
  return found.isHere && found.broken.length === 0 ? found : inspectInstallation(ask)
}

/** Null: nothing is installed. Changes nothing. */
export async function inspectInstallation(ask: Query): Promise<Installation | Unusable | null> {
  const [[allowed] = []] = await ask(PRESENT, [])
  if (allowed === undefined) return null
  if (allowed !== 't') {
    return { reason: 'it was made for another role.', fix: 'Run svc install again, with --role of this gateway.' }
  }
  const [[version, isHere, epoch] = []] = await ask(STATE, [])
  if (Number(version) !== INSTALLED_VERSION) {
    const reason = `it has version ${version}, and this gateway knows version ${INSTALLED_VERSION}.`
    const newer = Number(version) > INSTALLED_VERSION
    return { reason, fix: newer ? 'Run the gateway that came with it.' : 'Run svc install again.' }
  }
  const tables = await ask(TABLES, [])
  return {
    epoch: epoch ?? '',
    isHere: isHere === 't',
    captured: new Set(tables.flatMap(([root, , all]) => (all === 't' && root != null ? [root] : []))),
    broken: tables.flatMap(([, table, , whole]) => (whole === 't' || table == null ? [] : [table])),
  }
}
