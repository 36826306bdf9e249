/**
 * A batch: the changes of one or several decoded transactions, stored by one transaction of the feed role,
 * together with the position at which they end. A transaction of any size is sent in chunks.
 */
import { ROWS_MAX } from '../install/change-log.ts'
import { OUTBOX_COLUMNS, traceSql } from '../install/outbox.ts'
import { STORED_CHANNEL } from '../install/wal-capture.ts'
import { type Lsn, parseLsn, printLsn } from '../postgres/replication/lsn.ts'
import type { ReplicatedRelation, Tuple } from '../postgres/replication/pgoutput.ts'
import { UNCHANGED } from '../postgres/replication/pgoutput.ts'
import type { Command, OpenTransaction, Result } from '../postgres/types.ts'
import { addToBulk, type BulkChange, createBulk, printBulk } from './bulk.ts'
import { rowJson, valueJson } from './row-json.ts'
import { OutdatedReaderError } from './slot.ts'
import { describeTable, type LoggedTable } from './tables.ts'

/** Limits on the changes that are held in memory before they are sent. */
export const CHUNK_ROWS_MAX = 1_000
export const CHUNK_BYTES_MAX: number = 1024 * 1024

/**
 * Limit on the changes after which a batch ends. Clients that resume receive the entries of one transaction
 * as a whole, so this is well below what they receive at once (`SINCE_ROWS_MAX`).
 */
export const BATCH_ROWS_MAX = 250

/**
 * Locks the position, so that of two readers only one stores. A large transaction is stored for longer than
 * servers allow a transaction to last or to be idle; its statements are limited instead. PostgreSQL before 17
 * has no `transaction_timeout`.
 */
const BEGIN: readonly Command[] = [
  {
    text: `SELECT set_config('statement_timeout', '30s', true), set_config('jit', 'off', true),
  set_config('idle_in_transaction_session_timeout', '0', true),
  CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
    THEN set_config('transaction_timeout', '0', true) END`,
    parameters: [],
  },
  { text: 'SELECT stored::text, pg_current_xact_id()::text FROM svc.wal FOR UPDATE', parameters: [] },
  {
    text: `SELECT "schema", "table", bool_or(source = 'database') FROM svc.webhook_trigger GROUP BY 1, 2`,
    parameters: [],
  },
]

/**
 * Stores a chunk: `s` and `t` are the names of the table, `o` the operation, `k` and `w` the key after and
 * before, `b` and `a` the row, `x` the transaction, `g` the trace of a write through a gateway or empty. `l`:
 * the change belongs in the log.
 */
const STORE = `WITH decoded AS MATERIALIZED (
  SELECT r.* FROM ROWS FROM (json_to_recordset($1::json)
    AS (s text, t text, o text, k jsonb, w jsonb, b json, a json, x text, g text, l boolean)) WITH ORDINALITY
    AS r(s, t, o, k, w, b, a, x, g, l, n)
), logged AS (
  INSERT INTO svc.change ("schema", "table", operation, key, was, old, new, writer)
  SELECT s, t, o::"char", k, w, b, a, x::xid8 FROM decoded WHERE l ORDER BY n
)
INSERT INTO svc.webhook (${OUTBOX_COLUMNS}, traceparent)
SELECT h.name, d.s, d.t, d.operation, d.a, d.b, clock_timestamp(), CASE WHEN h.by_key THEN d.k::text END,
  coalesce(d.a, d.b) ->> h.tenant_column, ${traceSql('d.g')}
FROM (SELECT *, CASE o WHEN 'I' THEN 'INSERT' WHEN 'U' THEN 'UPDATE' WHEN 'D' THEN 'DELETE' END AS operation
  FROM decoded) AS d
JOIN svc.webhook_trigger AS h ON h."table" = d.t AND h."schema" = d.s AND d.operation = ANY (h.operations)
WHERE d.o <> 'B' AND (h.source = 'database' OR d.g IS NOT NULL) ORDER BY d.n`

/** A row change. */
export interface DecodedChange {
  readonly operation: 'I' | 'U' | 'D'
  /** The row before; null if it did not exist or was not sent. */
  readonly before: Tuple | null
  readonly after: Tuple | null
}

/** Descriptions of tables, for as long as the stream does not send another one. */
export type KnownTables = WeakMap<ReplicatedRelation, LoggedTable>

/**
 * The number of a transaction, of which the stream sends the last 32 bits. It is less than 2^31 before or
 * after `near`: a batch receives transactions that began earlier, and others that began later than its own.
 */
export function wholeXid(xid: number, near: bigint): bigint {
  return near + BigInt.asIntN(32, BigInt(xid) - near)
}

/** A batch that is being stored. */
export class Batch {
  readonly #transaction: Pick<OpenTransaction, 'run' | 'commit' | 'rollback'>
  readonly #known: KnownTables
  readonly #ownXid: bigint
  /**
   * The tables with webhooks, as `schema.table`: true if they are for all changes, not only for those of
   * gateways.
   */
  readonly #listened: ReadonlyMap<string, boolean>
  #chunk: string[] = []
  #chunkBytes = 0
  #rows = 0
  #writer = ''
  /** The transactions of the batch that others may not see yet. */
  #writers: string[] = []
  /** The changes of the current transaction by table; more than `ROWS_MAX` are logged as a bulk change. */
  #perTable = new Map<string, number>()
  /** The bulk changes of the current transaction by table. */
  readonly #bulk = new Map<string, BulkChange>()

  private constructor(
    transaction: Pick<OpenTransaction, 'run' | 'commit' | 'rollback'>,
    known: KnownTables,
    ownXid: bigint,
    listened: ReadonlyMap<string, boolean>,
  ) {
    this.#transaction = transaction
    this.#known = known
    this.#ownXid = ownXid
    this.#listened = listened
  }

  /** Begins a batch behind a position. Rejects with `OutdatedReaderError` if it is not the stored one. */
  static async begin(transaction: OpenTransaction, stored: Lsn, known: KnownTables): Promise<Batch> {
    const [, position, listened] = await transaction.run(BEGIN)
    const [at, xid] = position?.rows[0] ?? []
    if (at == null || xid == null || parseLsn(at.toString()) !== stored) {
      await transaction.rollback()
      throw new OutdatedReaderError()
    }
    const tables = listened?.rows.map(
      ([schema, table, all]) => [`${schema}.${table}`, all?.toString() === 't'] as const,
    )
    return new Batch(transaction, known, BigInt(xid.toString()), new Map(tables))
  }

  /** The number of changes. */
  get rows(): number {
    return this.#rows
  }

  /** The following changes were made by a transaction, given by the last 32 bits of its number. */
  startTransaction(xid: number): void {
    this.#endTransaction()
    this.#writer = String(wholeXid(xid, this.#ownXid))
    this.#writers.push(this.#writer)
    this.#perTable = new Map()
  }

  /**
   * Adds the change of a row. `origin`: null unless it was made through a gateway; then its trace, or empty.
   */
  async add(relation: ReplicatedRelation, change: DecodedChange, origin: string | null): Promise<void> {
    const { operation, before, after } = change
    const table = await this.#describe(relation)
    const name = `${table.schema}.${table.name}`
    const count = (this.#perTable.get(name) ?? 0) + 1
    this.#perTable.set(name, count)
    const isWhole = (operation === 'I' || before !== null) && table.key.length > 0
    const isLogged = isWhole && count <= ROWS_MAX
    if (!isLogged) {
      const versions = [before, after].filter(version => version !== null)
      addToBulk(this.#bulkOf(table), table, operation !== 'I' && before === null ? [] : versions)
    }
    const forAll = this.#listened.get(name)
    if (isLogged || forAll === true || (forAll === false && origin !== null))
      this.#push(changeJson(table, change, { writer: this.#writer, origin, isLogged }))
    if (this.#chunk.length >= CHUNK_ROWS_MAX || this.#chunkBytes >= CHUNK_BYTES_MAX) await this.#send()
  }

  /** Adds a change to any number of a table's rows. */
  async addBulk(relation: ReplicatedRelation): Promise<void> {
    const table = await this.#describe(relation)
    addToBulk(this.#bulkOf(table), table, [])
  }

  /**
   * Stores everything together with the position after it, and notifies the gateways. A reader of an entry
   * can then read the row as well.
   */
  async commit(end: Lsn): Promise<void> {
    this.#endTransaction()
    await this.#transaction.commit([
      ...this.#takeChunk(),
      ...this.#awaitWriters(),
      { text: 'UPDATE svc.wal SET stored = $1::pg_lsn', parameters: [printLsn(end)] },
      { text: 'SELECT pg_notify($1, $2)', parameters: [STORED_CHANNEL, ''] },
    ])
  }

  rollback(): Promise<void> {
    return this.#transaction.rollback()
  }

  /** Runs further statements in the transaction. */
  run(commands: readonly Command[]): Promise<readonly Result[]> {
    return this.#transaction.run(commands)
  }

  async #describe(relation: ReplicatedRelation): Promise<LoggedTable> {
    const known = this.#known.get(relation)
    if (known !== undefined) return known
    // Later than its creation, in case this transaction has created or changed it.
    await this.#transaction.run(this.#awaitWriters())
    const table = await describeTable(commands => this.#transaction.run(commands), relation)
    this.#known.set(relation, table)
    return table
  }

  #bulkOf(table: LoggedTable): BulkChange {
    const name = `${table.schema}.${table.name}`
    const bulk = this.#bulk.get(name) ?? createBulk(table)
    this.#bulk.set(name, bulk)
    return bulk
  }

  #endTransaction(): void {
    for (const bulk of this.#bulk.values()) this.#push(printBulk(bulk, this.#writer))
    this.#bulk.clear()
  }

  #push(json: string): void {
    this.#chunk.push(json)
    this.#chunkBytes += json.length
    this.#rows++
  }

  #awaitWriters(): readonly Command[] {
    const writers = `{${this.#writers.join(',')}}`
    this.#writers = []
    return [{ text: 'SELECT svc.await_writers($1::xid8[])', parameters: [writers] }]
  }

  async #send(): Promise<void> {
    const commands = this.#takeChunk()
    if (commands.length > 0) await this.#transaction.run(commands)
  }

  #takeChunk(): readonly Command[] {
    if (this.#chunk.length === 0) return []
    const parameters = [`[${this.#chunk.join(',')}]`]
    this.#chunk = []
    this.#chunkBytes = 0
    return [{ text: STORE, parameters }]
  }
}

function changeJson(
  table: LoggedTable,
  { operation, before, after }: DecodedChange,
  { writer, origin, isLogged }: { readonly writer: string; readonly origin: string | null; readonly isLogged: boolean },
): string {
  const old = before === null ? null : keyJson(table, before)
  const key = after === null ? old : keyJson(table, after)
  const members = [
    `"s":${JSON.stringify(table.schema)},"t":${JSON.stringify(table.name)},"o":"${operation}","x":"${writer}"`,
    ...(origin === null ? [] : [`"g":${JSON.stringify(origin)}`]),
    `"l":${isLogged}`,
    ...(key === null ? [] : [`"k":${key}`]),
    ...(operation === 'U' && old !== null && old !== key ? [`"w":${old}`] : []),
    ...(before === null ? [] : [`"b":${rowJson(before, table.columns)}`]),
    ...(after === null ? [] : [`"a":${rowJson(after, table.columns)}`]),
  ]
  return `{${members.join(',')}}`
}

/** The key of a row; null without a key. */
function keyJson({ key, columns }: LoggedTable, tuple: Tuple): string | null {
  if (key.length === 0) return null
  const members = key.map(({ label, index }) => {
    const value = tuple[index] ?? null
    const type = columns[index]?.type
    return `${label}:${value === UNCHANGED || type === undefined ? 'null' : valueJson(value, type)}`
  })
  return `{${members.join(',')}}`
}
