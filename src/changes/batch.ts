/**
 * A batch: the changes of one or several decoded transactions, stored by one transaction of the feed role,
 * together with the position at which they end. A transaction of any size is sent in chunks.
 */
import { ROWS_MAX, SLOT_OF_NOW } from '../install/change-log.ts'
import { STORED_CHANNEL } from '../install/wal-capture.ts'
import { type Lsn, parseLsn, printLsn } from '../postgres/replication/lsn.ts'
import type { ReplicatedRelation } from '../postgres/replication/pgoutput.ts'
import { UNCHANGED } from '../postgres/replication/pgoutput.ts'
import type { Command, OpenTransaction, Result } from '../postgres/types.ts'
import { addToBulk, type BulkChange, bulkEntry, createBulk } from './bulk.ts'
import { entriesAsRead, type LogReaders, type StoredEntry } from './readers.ts'
import { type Row, rowJson, valueJson } from './row-json.ts'
import { OutdatedReaderError } from './slot.ts'
import { type DecodedChange, type Delivery, type Entry, logEntries, type Stamp, storeDeliveries } from './store.ts'
import { describeTable, type LoggedTable } from './tables.ts'

/** Limits on the changes that are held in memory before they are sent. */
export const CHUNK_ROWS_MAX = 1_000
export const CHUNK_BYTES_MAX: number = 1024 * 1024

/**
 * Limit on the changes after which a batch ends. Clients that resume receive the entries of one transaction
 * as a whole, so this is below what they receive at once (`SINCE_ROWS_MAX`).
 */
export const BATCH_ROWS_MAX = 500

/** Between 1970 and 2000. */
const SECONDS_BEFORE_2000 = 946_684_800

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
  {
    text: `SELECT stored::text, pg_current_xact_id()::text, to_json(t.now) #>> '{}',
  (extract(epoch FROM t.now) * 1000000)::bigint - ${SECONDS_BEFORE_2000}000000, ${SLOT_OF_NOW}
  FROM svc.wal, (SELECT clock_timestamp() AS now OFFSET 0) AS t FOR UPDATE OF wal`,
    parameters: [],
  },
  {
    text: `SELECT "schema", "table", bool_or(source = 'database') FROM svc.webhook_trigger GROUP BY 1, 2`,
    parameters: [],
  },
]

/** Dependencies and state that the batches of a stream share. */
export interface BatchParts {
  readonly begin: () => OpenTransaction
  readonly readers: LogReaders
  /** Descriptions of tables, for as long as the stream does not send another one. */
  readonly known: WeakMap<ReplicatedRelation, LoggedTable>
  /** The transaction of an earlier batch, next to which others are numbered; null before the first one. */
  near: bigint | null
}

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
  readonly stamp: Stamp
  /**
   * The tables with webhooks, as `schema.table`: true if they are for all changes, not only for those of
   * gateways.
   */
  readonly listened: ReadonlyMap<string, boolean>
}

/**
 * A change that is not sent yet. Its JSON is made when it is known whether the table has webhooks: only they
 * need the whole row.
 */
interface Waiting {
  readonly table: LoggedTable
  readonly change: DecodedChange | BulkChange
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
  readonly #parts: BatchParts
  readonly #stored: Lsn
  #begun: Begun | null = null
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #rows = 0
  /** True if not all entries will be known when the last ones are sent. */
  #isPartial = false
  #xid = 0
  /** The transactions of the batch that others may not see yet. */
  #writers: number[] = []
  /** The changes of the current transaction by table; more than `ROWS_MAX` are logged as a bulk change. */
  #perTable = new Map<string, number>()
  /** The bulk changes of the current transaction by table. */
  readonly #bulk = new Map<string, { readonly table: LoggedTable; readonly change: BulkChange }>()

  /**
   * A batch behind the position `stored`. Its methods reject with `OutdatedReaderError` if that is not the
   * stored one.
   */
  constructor(parts: BatchParts, stored: Lsn) {
    this.#parts = parts
    this.#stored = stored
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
    const name = table.qualified
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
    // Views would keep everything that was received with them.
    const kept = { operation, before: textsOf(before), after: textsOf(after) }
    await this.#add({ table, change: kept, xid: this.#xid, isLogged, origin }, bytesOf(before) + bytesOf(after))
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
    const { readers } = this.#parts
    this.#endTransaction()
    const begun = await this.#open()
    await this.#awaitWriters(begun)
    const { commands, stored } = this.#takeWaiting(begun)
    const isWhole = !this.#isPartial
    // After every wait for others, because it keeps the reader from reading.
    const joined = isWhole ? readers.join() : null
    try {
      const committed = begun.transaction.commit([
        ...commands,
        { text: 'UPDATE svc.wal SET stored = $1::pg_lsn', parameters: [printLsn(end)] },
        { text: 'SELECT pg_notify($1, $2)', parameters: [STORED_CHANNEL, readers.id] },
        ...(joined?.commands ?? []),
      ])
      const xid = begun.ownXid
      const entries = joined === null ? null : entriesAsRead(stored, joined.columns, { xid, at: begun.stamp.at })
      const results = await committed
      joined?.committed(results.slice(commands.length + 2, -1), entries === null ? null : { xid, entries })
    } catch (error) {
      joined?.failed()
      throw error
    }
    const tables = new Set(stored.map(({ table }) => table.qualified))
    readers.stored(isWhole ? [...tables] : null, joined !== null)
  }

  async rollback(): Promise<void> {
    await this.#begun?.transaction.rollback()
  }

  /** Runs further statements in the transaction. */
  async run(commands: readonly Command[]): Promise<readonly Result[]> {
    this.#isPartial = true
    const { transaction } = await this.#open()
    return transaction.run(commands)
  }

  async #open(): Promise<Begun> {
    if (this.#begun !== null) return this.#begun
    const { begin, near } = this.#parts
    const transaction = begin()
    const [, position, listened] = await transaction.run([...BEGIN, ...(near === null ? [] : this.#awaited(near))])
    const [stored, xid, at, microseconds, slot] = position?.rows[0]?.map(String) ?? []
    const isOutdated = stored === undefined || parseLsn(stored) !== this.#stored
    if (isOutdated || xid === undefined || at === undefined || microseconds === undefined) {
      await transaction.rollback()
      throw new OutdatedReaderError()
    }
    const tables = listened?.rows.map(
      ([schema, table, all]) => [`${schema}.${table}`, all?.toString() === 't'] as const,
    )
    this.#parts.near = BigInt(xid)
    const stamp = { at, microseconds: BigInt(microseconds), slot: Number(slot) }
    this.#begun = { transaction, ownXid: BigInt(xid), stamp, listened: new Map(tables) }
    return this.#begun
  }

  async #describe(relation: ReplicatedRelation): Promise<LoggedTable> {
    const known = this.#parts.known.get(relation)
    if (known !== undefined) return known
    // Later than its creation, in case this transaction has created or changed it.
    const begun = await this.#open()
    await this.#awaitWriters(begun)
    const table = await describeTable(commands => begun.transaction.run(commands), relation)
    this.#parts.known.set(relation, table)
    return table
  }

  #bulkOf(table: LoggedTable): BulkChange {
    const name = table.qualified
    const bulk = this.#bulk.get(name) ?? { table, change: createBulk(table) }
    this.#bulk.set(name, bulk)
    return bulk.change
  }

  #endTransaction(): void {
    for (const { table, change } of this.#bulk.values())
      this.#waiting.push({ table, change, xid: this.#xid, isLogged: true, origin: null })
    this.#rows += this.#bulk.size
    this.#bulk.clear()
  }

  async #add(change: Waiting, bytes: number): Promise<void> {
    this.#waiting.push(change)
    this.#waitingBytes += bytes
    if (this.#waiting.length < CHUNK_ROWS_MAX && this.#waitingBytes < CHUNK_BYTES_MAX) return
    this.#isPartial = true
    const begun = await this.#open()
    await begun.transaction.run(this.#takeWaiting(begun).commands)
  }

  async #awaitWriters({ transaction, ownXid }: Begun): Promise<void> {
    const commands = this.#awaited(ownXid)
    if (commands.length > 0) await transaction.run(commands)
  }

  #awaited(near: bigint): readonly Command[] {
    const writers = this.#writers.map(xid => wholeXid(xid, near))
    this.#writers = []
    if (writers.length === 0) return []
    return [{ text: 'SELECT svc.await_writers($1::xid8[])', parameters: [`{${writers.join(',')}}`] }]
  }

  #takeWaiting(begun: Begun): { readonly commands: readonly Command[]; readonly stored: readonly StoredEntry[] } {
    const stored: StoredEntry[] = []
    const deliveries: Delivery[] = []
    for (const { table, change, xid, isLogged, origin } of this.#waiting) {
      const writer = wholeXid(xid, begun.ownXid)
      const isRow = 'operation' in change
      const entry = isRow ? entryOf(table, change, writer) : { ...bulkEntry(change), writer }
      if (isLogged) stored.push({ entry, table, change })
      if (isRow && isDelivered(begun, table.qualified, origin)) {
        const after = change.after === null ? null : rowJson(change.after, table.columns)
        deliveries.push({ ...entry, operation: change.operation, after, trace: origin })
      }
    }
    this.#waiting = []
    this.#waitingBytes = 0
    const entries = stored.map(({ entry }) => entry)
    const commands = [
      ...(entries.length === 0 ? [] : [logEntries(begun.stamp, entries)]),
      ...(deliveries.length === 0 ? [] : [storeDeliveries(deliveries)]),
    ]
    return { commands, stored }
  }
}

/** True if a table has webhooks for a change. `origin`: null unless it was made through a gateway. */
function isDelivered({ listened }: Begun, table: string, origin: string | null): boolean {
  const forAll = listened.get(table)
  return forAll === true || (forAll === false && origin !== null)
}

/** The row of the change log. */
function entryOf(table: LoggedTable, { operation, before, after }: DecodedChange, writer: bigint): Entry {
  const old = before === null ? null : keyJson(table, before)
  const key = after === null ? old : keyJson(table, after)
  return {
    schema: table.schema,
    table: table.name,
    operation,
    key,
    was: operation === 'U' && old !== key ? old : null,
    before: before === null ? null : rowJson(before, table.columns),
    after: after === null ? null : routingJson(table, after),
    writer,
  }
}

/** The values by which readers find the callers who are concerned; null without any. */
function routingJson({ columns, routing }: LoggedTable, tuple: Row): string | null {
  const members = routing.flatMap(index => {
    const value = tuple[index] ?? null
    const column = columns[index]
    return value === UNCHANGED || column === undefined ? [] : [`${column.label}:${valueJson(value, column.type)}`]
  })
  return members.length === 0 ? null : `{${members.join(',')}}`
}

function textsOf(tuple: Row | null): Row | null {
  return tuple?.map(value => (value === null || value === UNCHANGED ? value : value.toString())) ?? null
}

function bytesOf(tuple: Row | null): number {
  let bytes = 0
  for (const value of tuple ?? []) if (value !== null && value !== UNCHANGED) bytes += value.length
  return bytes
}

/** The key of a row as `jsonb` prints it; null without a key. */
function keyJson({ key, columns }: LoggedTable, tuple: Row): string | null {
  let out = ''
  for (const { label, index } of key) {
    const value = tuple[index] ?? null
    const type = columns[index]?.type
    const json = value === UNCHANGED || type === undefined ? 'null' : valueJson(value, type)
    out += `${out === '' ? '{' : ', '}${label}: ${json}`
  }
  return out === '' ? null : `${out}}`
}
