/** The statements by which a gateway reads the change log (decision 0022), and their answers as data. */
import type { Command, Database, Result, Row } from '../postgres/types.ts'
import { parseSnapshot, type Snapshot } from './snapshot.ts'

/** What triggers wrote down of one row, or of more than they name. */
export interface LogEntry {
  readonly txid: string
  readonly at: string
  /** `schema.name`. */
  readonly table: string
  readonly operation: 'I' | 'U' | 'D' | 'B'
  readonly key: string | null
  /** The key before, where it was another. */
  readonly was: string | null
  /** The row before; null as well where it is too large to be judged. */
  readonly old: string | null
  /** What the column of `routeBy` was and is, as JSON text; null: not known, or there was no row. Of many at once, a JSON list of all values as the second. */
  readonly routes: readonly [before: string | null, after: string | null]
}

export interface LogAnswer {
  readonly snapshot: Snapshot
  /** In the order in which they were written: whoever changes a row that another transaction has changed writes after that one is committed. */
  readonly entries: readonly LogEntry[]
  /** Numbers of transactions mean the same as long as it is the same. */
  readonly epoch: string
  /** What this transaction and earlier ones wrote may be gone. */
  readonly forgotten: bigint
}

/** A row that was larger is not read. */
const OLD_BYTES_MAX = 64 * 1024

/** What runs for longer reads more than anybody can be told of. */
const TIMEOUT_MS = 5_000

/** How many rows the log has is never what it had when statistics were made; the index is always right. Compiling (JIT) takes longer than the statement. */
const SETTINGS: Command = {
  text: "SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('statement_timeout', $1, true)",
  parameters: [String(TIMEOUT_MS)],
}

const ENTRY = `SELECT seq, xid, at, "schema" || '.' || "table" AS name, operation, key, was, old, new FROM svc.change`

/**
 * What is visible now and was not in the snapshot of `$1` and `$2`, in the tables of `$4`; `$3` rows at most; with the columns that `$5` names for some of the tables. A row without an entry comes as well: the snapshot
 * is told in any case.
 */
const CHANGES = `SELECT (SELECT pg_current_snapshot())::text, c.xid, to_json(c.at) #>> '{}', c.name, c.operation, c.key, c.was,
  CASE WHEN octet_length(c.old::text) <= ${OLD_BYTES_MAX} THEN c.old END,
  c.old -> ($5::json ->> c.name), c.new -> ($5::json ->> c.name)
FROM (VALUES (1)) AS always LEFT JOIN LATERAL (
  SELECT * FROM (${ENTRY} WHERE xid >= $1::xid8 UNION ALL ${ENTRY} WHERE xid = ANY ($2::xid8[])) AS unseen
  WHERE name = ANY ($4::text[]) LIMIT $3::int
) AS c ON true ORDER BY c.seq`

/**
 * After the rows, so that rows which were thrown away meanwhile are known to be. Transactions that were not on disk when a server crashed may have their numbers
 * given again: another start is another epoch. A standby does not know which transactions are open.
 */
const STATE: Command = {
  text: `SELECT concat_ws('.', epoch, (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()), extract(epoch FROM pg_postmaster_start_time())),
  forgotten, pg_is_in_recovery() FROM svc.installation`,
  parameters: [],
}

/** `tables`: with the column that tells whom a change concerns. `since` null: nothing but where the log is now. More than `rowsMax` entries are answered as one more than that. */
export async function readLog(
  database: Pick<Database, 'run'>,
  since: Snapshot | null,
  tables: ReadonlyMap<string, string | null>,
  rowsMax: number,
): Promise<LogAnswer> {
  const parameters = [
    since === null ? null : String(since.xmax),
    since === null ? null : `{${since.open.join(',')}}`,
    String(rowsMax + 1),
    `{${[...tables.keys()].map(quoted).join(',')}}`,
    JSON.stringify(Object.fromEntries([...tables].filter(([, column]) => column !== null))),
  ]
  const [, found, state] = await database.run([SETTINGS, { text: CHANGES, parameters }, STATE]).result
  const rows = found?.rows ?? []
  return {
    snapshot: parseSnapshot(rows[0]?.[0]?.toString() ?? ''),
    entries: rows.filter(([, xid]) => xid != null).map(entryOf),
    ...stateOf(state),
  }
}

/** The tables of all entries that are visible now and were not in the snapshot of `$1` and `$2`. */
const CHANGED_TABLES = `SELECT (SELECT pg_current_snapshot())::text,
  (SELECT coalesce(json_agg(DISTINCT unseen.name), '[]') FROM (
    SELECT "schema" || '.' || "table" AS name FROM svc.change WHERE xid >= $1::xid8
    UNION ALL SELECT "schema" || '.' || "table" FROM svc.change WHERE xid = ANY ($2::xid8[])
  ) AS unseen)`

/** `schema.name` of each table that has changed. `since` null: nothing but where the log is now. */
export async function readChangedTables(
  database: Pick<Database, 'run'>,
  since: Snapshot | null,
): Promise<Omit<LogAnswer, 'entries'> & { readonly tables: readonly string[] }> {
  const parameters = since === null ? [null, null] : [String(since.xmax), `{${since.open.join(',')}}`]
  const [, found, state] = await database.run([SETTINGS, { text: CHANGED_TABLES, parameters }, STATE]).result
  const [snapshot, tables] = found?.rows[0] ?? []
  return {
    snapshot: parseSnapshot(snapshot?.toString() ?? ''),
    tables: JSON.parse(tables?.toString() ?? '[]') as readonly string[],
    ...stateOf(state),
  }
}

/** Throws where the log cannot be followed. */
function stateOf(state: Result | undefined): Pick<LogAnswer, 'epoch' | 'forgotten'> {
  const [epoch, forgotten, standby] = state?.rows[0] ?? []
  if (epoch == null || forgotten == null) throw new Error('svc.installation is empty')
  if (standby?.toString() === 't') throw new Error('the change log cannot be read on a standby')
  return { epoch: epoch.toString(), forgotten: BigInt(forgotten.toString()) }
}

function entryOf([, xid, at, name, operation, key, was, old, before, after]: Row): LogEntry {
  return {
    ...{
      txid: String(xid),
      at: String(at),
      table: String(name),
      operation: String(operation) as LogEntry['operation'],
    },
    ...{ key: key?.toString() ?? null, was: was?.toString() ?? null, old: old?.toString() ?? null },
    routes: [before?.toString() ?? null, after?.toString() ?? null],
  }
}

/** An element of an array's text (PostgreSQL manual, 8.15.2). */
function quoted(name: string): string {
  return `"${name.replace(/["\\]/g, '\\$&')}"`
}
