/** What `svc install` has made in a database, as a gateway finds it. */
import { CAPTURED_TABLES } from './captured.ts'
import { CLUSTER } from './change-log.ts'
import { INSTALLED_VERSION } from './script.ts'

/** A question to the database; rows of texts. */
export type Ask = (
  text: string,
  parameters: readonly (string | null)[],
) => Promise<readonly (readonly (string | null)[])[]>

export interface Installation {
  /** Numbers of transactions mean the same as long as it is the same. */
  readonly epoch: string
  /** Tables with a name of their own – no partitions – whose changes are all written down, as `schema.table`. */
  readonly captured: ReadonlySet<string>
  /** Tables, partitions among them, that were chosen and lack what captures them. */
  readonly broken: readonly string[]
}

/** `reason` says what is to be done. */
export interface Unusable {
  readonly reason: string
}

const PRESENT = `SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'svc' AND c.relname = 'installation'`

const STATE = `SELECT version, cluster = ${CLUSTER}, epoch || '.' || (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()) FROM svc.installation`

const TABLES = `SELECT f.root_schema || '.' || f.root_table, f."schema" || '.' || f."table", bool_and(f.whole) OVER (PARTITION BY f.root_schema, f.root_table), f.whole
  FROM (${CAPTURED_TABLES}) AS f`

/**
 * Null: nothing is installed. What is missing of the triggers is mended first, as far as that may be done; a database that was copied from another starts a new
 * log.
 */
export async function readInstallation(ask: Ask): Promise<Installation | Unusable | null> {
  const [[allowed] = []] = await ask(PRESENT, [])
  if (allowed === undefined) return null
  if (allowed !== 't') {
    return { reason: 'Schema svc is installed for another role; run svc install again with --role of this gateway.' }
  }
  const [[version, isHere] = []] = await ask(STATE, [])
  if (Number(version) !== INSTALLED_VERSION) {
    const newer = Number(version) > INSTALLED_VERSION
    return {
      reason: newer
        ? `Schema svc has version ${version}, this gateway knows ${INSTALLED_VERSION}; run the gateway that installed it.`
        : `Schema svc has version ${version}, this gateway needs ${INSTALLED_VERSION}; run svc install again.`,
    }
  }
  if (isHere !== 't') await ask('SELECT svc.forget_changes()', [])
  let tables = await ask(TABLES, [])
  if (tables.some(([, , , whole]) => whole !== 't')) {
    await ask('SELECT svc.mend()', []).catch(() => {})
    tables = await ask(TABLES, [])
  }
  const [[, , epoch] = []] = await ask(STATE, [])
  return {
    epoch: epoch ?? '',
    captured: new Set(tables.flatMap(([root, , all]) => (all === 't' && root != null ? [root] : []))),
    broken: tables.flatMap(([, table, , whole]) => (whole === 't' || table == null ? [] : [table])),
  }
}
