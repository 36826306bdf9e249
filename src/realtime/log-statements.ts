/** The statements that read the change log (decision 0022). */
import { type Lsn, parseLsn } from '../postgres/replication/lsn.ts'
import type { Command, Database, Result, ResultRow } from '../postgres/types.ts'
import { toArrayLiteral } from '../text/array-text.ts'
import type { RouteValue } from './route.ts'
import { parseSnapshot, type Snapshot } from './snapshot.ts'

/** An entry of the change log: one row, or a bulk change. */
export interface LogEntry {
  /** The transaction that made the change. */
  readonly txid: string
  /** The transaction that stored it, if another one: the reader of the write-ahead log. */
  readonly storedBy: string | null
  readonly at: string
  /** `schema.name`. */
  readonly table: string
  readonly operation: 'I' | 'U' | 'D' | 'B'
  readonly key: string | null
  /** The key before the change, if it changed. */
  readonly oldKey: string | null
  /** The row before the change; null also if it is too large to be evaluated. */
  readonly old: string | null
  /**
   * The values of the routing column before and after, as JSON text; null if unknown or without a row.
   * For a bulk change, the second is a JSON array of all values.
   */
  readonly routes: readonly [before: string | null, after: string | null]
}

/** The result of reading the log. */
export interface LogResult {
  readonly snapshot: Snapshot
  /**
   * In the order in which they were written: a transaction that changes a row after another one writes its
   * entry after that one has committed.
   */
  readonly entries: readonly LogEntry[]
  /** Transaction numbers are comparable only within one epoch. */
  readonly epoch: string
  /** Entries of this and earlier transactions may have been deleted. */
  readonly deletedUpTo: bigint
  /** True if changes are captured from the write-ahead log. The next read then asks for its positions. */
  readonly usesWal: boolean
  /** Null if they were not asked for. */
  readonly wal: WalPositions | null
}

/** Where a read continues. */
export interface ReadFrom {
  readonly snapshot: Snapshot
  /** As in the result of the read before. */
  readonly usesWal: boolean
}

/** Limit on the bytes of an old row; larger ones are not read. */
export const OLD_BYTES_MAX: number = 64 * 1024

/** Statement timeout. A slower read would return more entries than can be delivered. */
const TIMEOUT_MS = 5_000

/**
 * Statistics of the log are always outdated, but its index is reliable, so sequential scans are disabled. JIT
 * compilation takes longer than the statement.
 */
const SETTINGS: Command = {
  text: `SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
  set_config('statement_timeout', $1, true)`,
  parameters: [String(TIMEOUT_MS)],
}

const ENTRY = `SELECT seq, xid, at, "schema" || '.' || "table" AS name, operation, key, was, old, new,
  writer FROM svc.change`

/**
 * The entries visible now that were not visible in the snapshot of `$1` and `$2`, in the tables of `$4`, at
 * most `$3` rows, with the routing columns that `$5` names for some tables. Without an entry there is still
 * one row, because the snapshot is always needed.
 */
const CHANGES = changes('')

/**
 * The same entries, those of the first transactions if there are more than `$3`, without those of the first
 * table that have other values in the routing column `$6` than `$7`.
 */
const CHANGES_IN_PARTS = changes(`AND CASE operation
    WHEN 'I' THEN ${isOther('new')}
    WHEN 'D' THEN ${isOther('old')}
    WHEN 'U' THEN ${isOther('old')} AND ${isOther('new')}
  END IS NOT TRUE ORDER BY xid, seq`)

/** The same entries as in `CHANGES`, without those of the transaction that reads them. */
const CHANGES_OF_OTHERS = changes('AND xid <> pg_current_xact_id()')

function changes(selection: string): string {
  return `SELECT (SELECT pg_current_snapshot())::text, c.xid, to_json(c.at) #>> '{}', c.name,
  c.operation, c.key, c.was,
  CASE WHEN octet_length(c.old::text) <= ${OLD_BYTES_MAX} THEN c.old END,
  c.old -> ($5::json ->> c.name), c.new -> ($5::json ->> c.name), c.writer
FROM (VALUES (1)) AS always LEFT JOIN LATERAL (
  SELECT * FROM (${ENTRY} WHERE xid >= $1::xid8 UNION ALL ${ENTRY} WHERE xid = ANY ($2::xid8[])) AS unseen
  WHERE name = ANY ($4::text[]) ${selection} LIMIT $3::int
) AS c ON true ORDER BY c.seq`
}

/** True if a row's routing value is known and not one of `$7`; null if it is unknown. */
function isOther(row: 'old' | 'new'): string {
  const value = `(${row} -> $6::text)`
  const isOfTable = '$7::text[] IS NOT NULL AND name = ($4::text[])[1]'
  return `(${isOfTable} AND ${value} IS NOT NULL AND ${value}::text <> ALL ($7::text[]))`
}

/**
 * Read after the entries, so that deleted entries are noticed. A server may reuse the numbers of transactions
 * that were not on disk when it crashed, so another server start is another epoch. A standby cannot list open
 * transactions.
 */
const STATE: Command = {
  text: `SELECT concat_ws('.', epoch, (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()),
  extract(epoch FROM pg_postmaster_start_time())),
  forgotten, pg_is_in_recovery(), EXISTS (SELECT FROM svc.wal) FROM svc.installation`,
  parameters: [],
}

/** Read before the entries, which are then at least those up to the stored position. */
const WAL: Command = {
  text: 'SELECT stored, CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() END FROM svc.wal',
  parameters: [],
}

/** How far the reader of the write-ahead log is. */
export interface WalPositions {
  /** Every transaction that committed before this position is in the change log. */
  readonly stored: Lsn
  /** The end of the write-ahead log. */
  readonly end: Lsn
}

/**
 * Reads the log. `tables`: the tables with their routing columns. `from` null reads only the current
 * position. If there are more than `rowsMax` entries, one more than that is returned.
 */
export async function readLog(
  database: Pick<Database, 'run'>,
  from: ReadFrom | null,
  tables: ReadonlyMap<string, string | null>,
  rowsMax: number,
): Promise<LogResult> {
  const parameters = parametersOf(from?.snapshot ?? null, tables, rowsMax)
  return resultOf(database, { text: CHANGES, parameters }, from?.usesWal ?? false)
}

/**
 * Reads the entries of the first transactions. If there are more than `rowsMax` entries, one more than that
 * is returned, and the last transaction may be incomplete. `route`: entries with other known routing values
 * are left out.
 */
export async function readLogPart(
  database: Pick<Database, 'run'>,
  since: Snapshot,
  tables: ReadonlyMap<string, string | null>,
  { rowsMax, route }: { readonly rowsMax: number; readonly route: RouteValue | null },
): Promise<LogResult> {
  const values = route === null ? null : toArrayLiteral(route.values)
  const parameters = [...parametersOf(since, tables, rowsMax), route?.column ?? null, values]
  return resultOf(database, { text: CHANGES_IN_PARTS, parameters }, false)
}

/** Reads what `readLog` reads, in a transaction that stores changes, without those. */
export function joinedCommands(
  from: ReadFrom,
  tables: ReadonlyMap<string, string | null>,
  rowsMax: number,
): readonly Command[] {
  const parameters = parametersOf(from.snapshot, tables, rowsMax)
  return [SETTINGS, WAL, { text: CHANGES_OF_OTHERS, parameters }, STATE]
}

/** The result of `joinedCommands`. @throws Error if the log cannot be followed */
export function joinedResult([, wal, found, state]: readonly Result[]): LogResult {
  return logResult(wal, found, state)
}

function parametersOf(since: Snapshot | null, tables: ReadonlyMap<string, string | null>, rowsMax: number) {
  return [
    since === null ? null : String(since.xmax),
    since === null ? null : `{${since.open.join(',')}}`,
    String(rowsMax + 1),
    toArrayLiteral([...tables.keys()]),
    JSON.stringify(Object.fromEntries([...tables].filter(([, column]) => column !== null))),
  ]
}

async function resultOf(database: Pick<Database, 'run'>, statement: Command, asksWal: boolean): Promise<LogResult> {
  const { wal, found, state } = await runRead(database, statement, asksWal)
  return logResult(wal, found, state)
}

function logResult(wal: Result | undefined, found: Result | undefined, state: Result | undefined): LogResult {
  const rows = found?.rows ?? []
  return {
    snapshot: parseSnapshot(rows[0]?.[0]?.toString() ?? ''),
    entries: rows.filter(([, xid]) => xid != null).map(entryOf),
    ...stateOf(state),
    wal: walOf(wal),
  }
}

/** `asksWal`: a read without positions has no statement for them. */
async function runRead(database: Pick<Database, 'run'>, statement: Command, asksWal: boolean) {
  const results = await database.run([SETTINGS, ...(asksWal ? [WAL] : []), statement, STATE]).result
  const [found, state] = results.slice(-2)
  return { wal: asksWal ? results[1] : undefined, found, state }
}

/** The tables of all entries visible now that were not visible in the snapshot of `$1` and `$2`. */
const CHANGED_TABLES = `SELECT (SELECT pg_current_snapshot())::text,
  (SELECT coalesce(json_agg(DISTINCT unseen.name), '[]') FROM (
    SELECT "schema" || '.' || "table" AS name FROM svc.change WHERE xid >= $1::xid8
    UNION ALL SELECT "schema" || '.' || "table" FROM svc.change WHERE xid = ANY ($2::xid8[])
  ) AS unseen)`

/** The tables that have changed. */
export interface ChangedTablesResult extends Omit<LogResult, 'entries'> {
  readonly tables: readonly string[]
}

/** Reads which tables have changed, as `schema.name`. `from` null reads only the current position. */
export async function readChangedTables(
  database: Pick<Database, 'run'>,
  from: ReadFrom | null,
): Promise<ChangedTablesResult> {
  const parameters = from === null ? [null, null] : [String(from.snapshot.xmax), `{${from.snapshot.open.join(',')}}`]
  const statement = { text: CHANGED_TABLES, parameters }
  const { wal, found, state } = await runRead(database, statement, from?.usesWal ?? false)
  const [snapshot, tables] = found?.rows[0] ?? []
  return {
    wal: walOf(wal),
    snapshot: parseSnapshot(snapshot?.toString() ?? ''),
    tables: JSON.parse(tables?.toString() ?? '[]') as readonly string[],
    ...stateOf(state),
  }
}

function walOf(result: Result | undefined): WalPositions | null {
  const [stored, end] = result?.rows[0] ?? []
  return stored == null || end == null ? null : { stored: parseLsn(stored.toString()), end: parseLsn(end.toString()) }
}

/** @throws Error if the log cannot be followed. */
function stateOf(state: Result | undefined): Pick<LogResult, 'epoch' | 'deletedUpTo' | 'usesWal'> {
  const [epoch, deletedUpTo, standby, usesWal] = state?.rows[0] ?? []
  if (epoch == null || deletedUpTo == null) throw new Error('svc.installation is empty')
  if (standby?.toString() === 't') throw new Error('the change log cannot be read on a standby')
  return { epoch: epoch.toString(), deletedUpTo: BigInt(deletedUpTo.toString()), usesWal: usesWal?.toString() === 't' }
}

function entryOf([, xid, at, name, operation, key, was, old, before, after, writer]: ResultRow): LogEntry {
  return {
    ...{
      txid: String(writer ?? xid),
      storedBy: writer == null ? null : String(xid),
      at: String(at),
      table: String(name),
      operation: String(operation) as LogEntry['operation'],
    },
    ...{ key: key?.toString() ?? null, oldKey: was?.toString() ?? null, old: old?.toString() ?? null },
    routes: [before?.toString() ?? null, after?.toString() ?? null],
  }
}
