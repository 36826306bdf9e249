/**
 * A batch: the changes of one or several decoded transactions, stored by one transaction of the feed role,
 * together with the position at which they end. A transaction of any size is sent in chunks.
 */
import { ROWS_MAX } from '../install/change-log.ts'
import { STORED_CHANNEL } from '../install/wal-capture.ts'
import { type Lsn, parseLsn, printLsn } from '../postgres/replication/lsn.ts'
import type { ReplicatedRelation, Tuple } from '../postgres/replication/pgoutput.ts'
import { UNCHANGED } from '../postgres/replication/pgoutput.ts'
import type { Command, OpenTransaction, Result } from '../postgres/types.ts'
import { addToBulk, type BulkChange, bulkEntry, createBulk } from './bulk.ts'
import { rowJson, valueJson } from './row-json.ts'
import { OutdatedReaderError } from './slot.ts'
import { type Delivery, type Entry, isOfRow, logEntries, type RowEntry, storeDeliveries } from './store.ts'
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

/** The transaction of a batch, with what it has read. */
interface Begun {
  readonly transaction: OpenTransaction
  readonly ownXid: bigint
  /**
   * The tables with webhooks, as `schema.table`: true if they are for all changes, not only for those of
   * gateways.
   */
  readonly listened: ReadonlyMap<string, boolean>
}

/** A change that is not sent yet. */
interface Waiting {
  readonly entry: Omit<RowEntry | Entry, 'writer'>
  /** The last 32 bits of the number of the transaction that made it. */
  readonly xid: number
  readonly isLogged: boolean
  readonly origin: string | null
}

/**
 * A batch that is being stored. Its transaction begins late, when there is something to send: as long as it
 * is open, PostgreSQL keeps every row version that writers replace.
 */
export class Batch {
  readonly #begin: () => OpenTransaction
  readonly #stored: Lsn
  readonly #known: KnownTables
  #begun: Begun | null = null
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #rows = 0
  #xid = 0
  /** The transactions of the batch that others may not see yet. */
  #writers: number[] = []
  /** The changes of the current transaction by table; more than `ROWS_MAX` are logged as a bulk change. */
  #perTable = new Map<string, number>()
  /** The bulk changes of the current transaction by table. */
  readonly #bulk = new Map<string, BulkChange>()

  /**
   * A batch behind the position `stored`. Its methods reject with `OutdatedReaderError` if that is not the
   * stored one.
   */
  constructor(begin: () => OpenTransaction, stored: Lsn, known: KnownTables) {
    this.#begin = begin
    this.#stored = stored
    this.#known = known
  }

  /** The number of changes. */
  get rows(): number {
    return this.#rows
  }

  /** The following changes were made by a transaction, given by the last 32 bits of its number. */
  startTransaction(xid: number): void {
    this.#endTransaction()
    this.#xid = xid
    this.#writers.push(xid)
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
    if (!isLogged && this.#begun !== null && !isDelivered(this.#begun, name, origin)) return
    this.#rows++
    await this.#add({ entry: entryOf(table, change), xid: this.#xid, isLogged, origin })
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
    const begun = await this.#open()
    await begun.transaction.commit([
      ...this.#takeWaiting(begun),
      ...this.#awaitWriters(begun),
      { text: 'UPDATE svc.wal SET stored = $1::pg_lsn', parameters: [printLsn(end)] },
      { text: 'SELECT pg_notify($1, $2)', parameters: [STORED_CHANNEL, ''] },
    ])
  }

  async rollback(): Promise<void> {
    await this.#begun?.transaction.rollback()
  }

  /** Runs further statements in the transaction. */
  async run(commands: readonly Command[]): Promise<readonly Result[]> {
    const { transaction } = await this.#open()
    return transaction.run(commands)
  }

  async #open(): Promise<Begun> {
    if (this.#begun !== null) return this.#begun
    const transaction = this.#begin()
    const [, position, listened] = await transaction.run(BEGIN)
    const [at, xid] = position?.rows[0] ?? []
    if (at == null || xid == null || parseLsn(at.toString()) !== this.#stored) {
      await transaction.rollback()
      throw new OutdatedReaderError()
    }
    const tables = listened?.rows.map(
      ([schema, table, all]) => [`${schema}.${table}`, all?.toString() === 't'] as const,
    )
    this.#begun = { transaction, ownXid: BigInt(xid.toString()), listened: new Map(tables) }
    return this.#begun
  }

  async #describe(relation: ReplicatedRelation): Promise<LoggedTable> {
    const known = this.#known.get(relation)
    if (known !== undefined) return known
    // Later than its creation, in case this transaction has created or changed it.
    const begun = await this.#open()
    await begun.transaction.run(this.#awaitWriters(begun))
    const table = await describeTable(commands => begun.transaction.run(commands), relation)
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
    for (const bulk of this.#bulk.values())
      this.#waiting.push({ entry: bulkEntry(bulk), xid: this.#xid, isLogged: true, origin: null })
    this.#rows += this.#bulk.size
    this.#bulk.clear()
  }

  async #add(change: Waiting): Promise<void> {
    const { key, before, after } = change.entry
    this.#waiting.push(change)
    this.#waitingBytes += (key?.length ?? 0) + (before?.length ?? 0) + (after?.length ?? 0)
    if (this.#waiting.length < CHUNK_ROWS_MAX && this.#waitingBytes < CHUNK_BYTES_MAX) return
    const begun = await this.#open()
    await begun.transaction.run(this.#takeWaiting(begun))
  }

  #awaitWriters({ ownXid }: Begun): readonly Command[] {
    const writers = this.#writers.map(xid => wholeXid(xid, ownXid))
    this.#writers = []
    return [{ text: 'SELECT svc.await_writers($1::xid8[])', parameters: [`{${writers.join(',')}}`] }]
  }

  #takeWaiting(begun: Begun): readonly Command[] {
    const entries: Entry[] = []
    const deliveries: Delivery[] = []
    for (const { entry, xid, isLogged, origin } of this.#waiting) {
      const whole = { ...entry, writer: String(wholeXid(xid, begun.ownXid)) }
      if (isLogged) entries.push(whole)
      if (isOfRow(whole) && isDelivered(begun, `${whole.schema}.${whole.table}`, origin))
        deliveries.push({ ...whole, trace: origin })
    }
    this.#waiting = []
    this.#waitingBytes = 0
    return [
      ...(entries.length === 0 ? [] : [logEntries(entries)]),
      ...(deliveries.length === 0 ? [] : [storeDeliveries(deliveries)]),
    ]
  }
}

/** True if a table has webhooks for a change. `origin`: null unless it was made through a gateway. */
function isDelivered({ listened }: Begun, table: string, origin: string | null): boolean {
  const forAll = listened.get(table)
  return forAll === true || (forAll === false && origin !== null)
}

function entryOf(table: LoggedTable, { operation, before, after }: DecodedChange): Omit<RowEntry, 'writer'> {
  const old = before === null ? null : keyJson(table, before)
  const key = after === null ? old : keyJson(table, after)
  return {
    ...{ schema: table.schema, table: table.name, operation, key },
    was: operation === 'U' && old !== key ? old : null,
    before: before === null ? null : rowJson(before, table.columns),
    after: after === null ? null : rowJson(after, table.columns),
  }
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
