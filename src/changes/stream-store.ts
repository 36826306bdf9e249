/**
 * Stores what a replication stream delivers. A batch ends when nothing more has arrived, or when it is large,
 * and always at the end of a transaction.
 */
import { DatabaseError } from '../postgres/errors.ts'
import { type Lsn, printLsn } from '../postgres/replication/lsn.ts'
import type { ReplicatedRelation } from '../postgres/replication/pgoutput.ts'
import type { ReplicationStream, StreamItem } from '../postgres/replication/stream.ts'
import type { Database } from '../postgres/types.ts'
import { BATCH_ROWS_MAX, Batch, type BatchParts } from './batch.ts'
import type { LogReaders } from './readers.ts'
import { LOG_UNKNOWN_CHANGES, OutdatedReaderError } from './slot.ts'
import type { DecodedChange } from './store.ts'

/** How often the position is stored while nothing is published. The result cache waits for it. */
export const POSITION_INTERVAL_MS = 250

/** Limit on the pause between two batches, which adds to the latency of changes. */
const PAUSE_MS_MAX = 10

/** The message by which a gateway marks its transactions (run/settings.ts). */
const ORIGIN_PREFIX = 'svc.origin'

/** The dependencies of the store. */
export interface StreamStoreParts {
  readonly stream: ReplicationStream
  /** Connections of the feed role. */
  readonly database: Pick<Database, 'run' | 'begin'>
  readonly readers: LogReaders
  /** The stored position, where the stream begins. */
  readonly from: Lsn
  /** True after an error that a change can have caused: each transaction is then stored by itself. */
  readonly isCareful: boolean
  readonly now: () => number
  /** Called with the number of row changes that have been stored. */
  readonly onStored: (changes: number) => void
  /** Called with the reason why changes are unknown. */
  readonly onLost: (reason: string) => void
}

/** Stores the changes of a stream. */
export class StreamStore {
  readonly #parts: StreamStoreParts
  readonly #batchParts: BatchParts
  #isCareful: boolean
  #stored: Lsn
  #movedAt: number
  /** How long the last batch took to be stored. */
  #storedInMs = 0
  #batch: Batch | null = null
  #xid = 0
  #origin: string | null = null
  #isInTransaction = false
  /** True while the rest of a transaction that cannot be stored arrives. */
  #isSkipping = false
  /** The end of the last transaction that is in the batch as a whole, or had no changes. */
  #end: Lsn

  constructor(parts: StreamStoreParts) {
    this.#parts = parts
    this.#isCareful = parts.isCareful
    this.#stored = parts.from
    this.#end = parts.from
    this.#movedAt = parts.now()
    const begin = () => parts.database.begin(undefined, 'read committed')
    // An error of another read must not look like one of the changes.
    const join = () => (this.#isCareful ? null : parts.readers.join())
    this.#batchParts = { begin, readers: { ...parts.readers, join }, known: new WeakMap(), near: null }
  }

  /** As given, until everything that had been committed has been stored. */
  get isCareful(): boolean {
    return this.#isCareful
  }

  /** Never resolves; rejects when the stream or the database fails. */
  async run(): Promise<never> {
    try {
      for (;;) {
        const item = await this.#parts.stream.next()
        try {
          await this.#take(item)
        } catch (error) {
          if (!this.#isCareful || this.#isSkipping || !isCausedByData(error)) throw error
          await this.#skipTransaction(item, error)
        }
      }
    } finally {
      await this.#batch?.rollback().catch(() => {})
    }
  }

  async #take(item: StreamItem): Promise<void> {
    switch (item.kind) {
      case 'begin':
        this.#xid = item.xid
        this.#origin = null
        this.#isInTransaction = true
        return this.#batch?.startTransaction(this.#xid)
      case 'message':
        if (item.isTransactional && item.prefix === ORIGIN_PREFIX) this.#origin = traceOf(item.content)
        return
      case 'insert':
        return this.#add(item.relation, { operation: 'I', before: null, after: item.new })
      case 'update':
        return this.#add(item.relation, { operation: 'U', before: item.old, after: item.new })
      case 'delete':
        return this.#add(item.relation, { operation: 'D', before: item.old, after: null })
      case 'truncate':
        return this.#truncate(item.relations)
      case 'skipped':
        return this.#skipChange(item.bytes)
      case 'commit':
        return this.#endTransaction(item.end)
      case 'caughtUp':
        return this.#caughtUp(item.position)
      default:
    }
  }

  async #add(relation: ReplicatedRelation, change: DecodedChange): Promise<void> {
    if (this.#isSkipping) return
    const batch = this.#current()
    await batch.add(relation, change, this.#origin)
  }

  async #truncate(relations: readonly ReplicatedRelation[]): Promise<void> {
    if (this.#isSkipping) return
    const batch = this.#current()
    for (const relation of relations) await batch.addBulk(relation)
  }

  async #skipChange(bytes: number): Promise<void> {
    const batch = this.#current()
    this.#parts.onLost(`a change of ${bytes} bytes is too long to be decoded`)
    await this.#logUnknown(batch)
  }

  async #endTransaction(end: Lsn): Promise<void> {
    this.#end = end
    this.#isInTransaction = false
    this.#isSkipping = false
    const isLarge = (this.#batch?.rows ?? 0) >= BATCH_ROWS_MAX
    if (this.#isCareful || isLarge) return this.#finish()
    if (this.#parts.stream.ready > 0) return
    await this.#pause()
    if (this.#parts.stream.ready === 0) await this.#finish()
  }

  /**
   * Waits after the previous batch for as long as it took, so that under load batches grow, and storing them
   * leaves PostgreSQL half of the time.
   */
  async #pause(): Promise<void> {
    const ms = Math.min(this.#storedInMs, PAUSE_MS_MAX) - (this.#parts.now() - this.#movedAt)
    if (this.#batch !== null && ms > 0) await new Promise(resolve => setTimeout(resolve, ms))
  }

  async #caughtUp(position: Lsn): Promise<void> {
    const { stream, now } = this.#parts
    // The server sends one after each transaction, which must not end the batch of those that wait.
    if (this.#isInTransaction || stream.ready > 0) return
    this.#isCareful = false
    await this.#finish()
    if (position <= this.#stored || now() - this.#movedAt < POSITION_INTERVAL_MS / 2) return
    await this.#move(position)
    this.#end = position
    this.#confirm(position)
  }

  /** Replaces what the current transaction has changed by entries that make every subscriber read again. */
  async #skipTransaction(item: StreamItem, error: DatabaseError): Promise<void> {
    await this.#batch?.rollback().catch(() => {})
    this.#batch = this.#begin()
    this.#parts.onLost(`transaction ${this.#xid} cannot be stored: ${error.message}`)
    await this.#logUnknown(this.#batch)
    this.#isSkipping = item.kind !== 'commit'
    if (!this.#isSkipping) await this.#finish()
  }

  async #logUnknown(batch: Batch): Promise<void> {
    await batch.run([{ text: LOG_UNKNOWN_CHANGES, parameters: [] }])
  }

  #current(): Batch {
    this.#batch ??= this.#begin()
    return this.#batch
  }

  #begin(): Batch {
    const batch = new Batch(this.#batchParts, this.#stored)
    batch.startTransaction(this.#xid)
    return batch
  }

  async #finish(): Promise<void> {
    if (this.#batch === null) return
    const { rows } = this.#batch
    const beganAt = this.#parts.now()
    await this.#batch.commit(this.#end)
    this.#batch = null
    this.#parts.onStored(rows)
    this.#confirm(this.#end)
    this.#storedInMs = this.#movedAt - beganAt
  }

  /** Stores a position without changes. It can be lost in a crash, and then it is determined again. */
  async #move(to: Lsn): Promise<void> {
    const moved = await this.#parts.database.run([
      { text: `SELECT set_config('synchronous_commit', 'off', true)`, parameters: [] },
      {
        text: 'UPDATE svc.wal SET stored = $2::pg_lsn WHERE stored = $1::pg_lsn RETURNING 1',
        parameters: [printLsn(this.#stored), printLsn(to)],
      },
    ]).result
    if (moved[1]?.rows.length !== 1) throw new OutdatedReaderError()
  }

  #confirm(position: Lsn): void {
    this.#stored = position
    this.#movedAt = this.#parts.now()
    this.#parts.stream.confirm(position)
  }
}

/**
 * True for errors that the same change would cause again: invalid data, constraints, limits of the server.
 */
export function isCausedByData(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && ['22', '23', '54'].includes(error.sqlstate.slice(0, 2))
}

/** The trace in a message; empty if it has none. Any session can send such a message, with any content. */
function traceOf(content: Buffer): string {
  const text = content.subarray(0, 100).toString('latin1')
  return /^[0-9a-f-]*$/.test(text) ? text : ''
}
