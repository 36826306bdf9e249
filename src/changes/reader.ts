/**
 * Follows the write-ahead log: the gateway that gets the slot decodes it and stores what has changed in the
 * change log and the outbox. Each transaction of the feed role stores decoded changes together with the
 * position after them, and only then is the position confirmed to the server. So nothing is lost or stored
 * twice, whichever process is killed, and no two gateways store the same. The others wait for the slot.
 */
import type { Query } from '../catalog/introspect.ts'
import { PUBLICATION } from '../install/wal-capture.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Lsn } from '../postgres/replication/lsn.ts'
import { printLsn } from '../postgres/replication/lsn.ts'
import type { ReplicatedRelation } from '../postgres/replication/pgoutput.ts'
import { openReplication, type ReplicationOptions } from '../postgres/replication/session.ts'
import type { ReplicationStream, StreamItem } from '../postgres/replication/stream.ts'
import type { Database } from '../postgres/types.ts'
import { BATCH_ROWS_MAX, Batch, type DecodedChange, type KnownTables, OutdatedReaderError } from './batch.ts'
import { TEXT_SETTINGS } from './row-json.ts'
import { createSlot, dropSlot, LOG_UNKNOWN_CHANGES, readSlot, type SlotState, skipToSlot } from './slot.ts'

/** Interval between looks at the slot: of a gateway that waits for it, and of the one that has it. */
const LOOK_INTERVAL_MS = 1_000

/** How often the position is stored while nothing is published. The result cache waits for it. */
const POSITION_INTERVAL_MS = 250

/** The state and the position of the reader. */
export interface ReaderStats {
  /** True if this gateway has the slot. */
  readonly isReading: boolean
  /** How far the stored changes are behind the end of the log, when it was last determined. */
  readonly lagBytes: number
  /** How much of the log the slot keeps. */
  readonly keptBytes: number
  /** The row changes that this gateway has stored. */
  readonly changes: number
  /** How often changes were lost, so that every subscriber had to read again. */
  readonly resyncs: number
}

/** The dependencies of the reader. */
export interface ReaderParts {
  /** Connections of the feed role. */
  readonly database: Pick<Database, 'run' | 'begin'>
  /** Where the feed role opens its replication session. */
  readonly replication: () => Promise<ReplicationOptions>
  /** True if changes are captured from the write-ahead log. */
  readonly isUsable: () => boolean
  /** Above this the slot is dropped, and everything that depends on it starts again. */
  readonly keepBytesMax: number
  readonly now: () => number
  readonly warn: (message: string, fix: string | null) => void
}

/** The reader. */
export interface ChangeReader {
  stats(): ReaderStats
  /** Stores what is being stored, and frees the slot. */
  close(): Promise<void>
}

/** The message by which a gateway marks its transactions (run/settings.ts). */
const ORIGIN_PREFIX = 'svc.origin'

/** The trace in a message; empty if it has none. Any session can send such a message, with any content. */
function traceOf(content: Buffer): string {
  const text = content.subarray(0, 100).toString('latin1')
  return /^[0-9a-f-]*$/.test(text) ? text : ''
}

/**
 * True for errors that the same change would cause again: invalid data, constraints, limits of the server.
 */
function isCausedByData(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && ['22', '23', '54'].includes(error.sqlstate.slice(0, 2))
}

/** Starts reading wherever changes are captured from the write-ahead log. */
export function startChangeReader(parts: ReaderParts): ChangeReader {
  const { database, keepBytesMax, now, warn } = parts
  const ask: Query = async (text, parameters) => {
    const [result] = await database.run([{ text, parameters }]).result
    return result?.rows.map(row => row.map(cell => cell?.toString() ?? null)) ?? []
  }
  const closing = new AbortController()
  const stats = { isReading: false, lagBytes: 0, keptBytes: 0, changes: 0, resyncs: 0 }
  let reported = ''
  /** True after an error that a change can have caused: each transaction is then stored by itself. */
  let isCareful = false
  let wake: () => void = () => {}
  const running = follow()

  async function follow(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        if (parts.isUsable()) await readWhilePossible()
        reported = ''
      } catch (error) {
        if (isCausedByData(error)) isCareful = true
        report(error)
      }
      stats.isReading = false
      await pause(LOOK_INTERVAL_MS)
    }
  }

  /** The same problem is reported once. */
  function report(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    if (closing.signal.aborted || message === reported) return
    reported = message
    warn(`Changes are not read from the write-ahead log: ${message}`, null)
  }

  async function pause(ms: number): Promise<void> {
    if (closing.signal.aborted) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Reads until the stream ends; returns at once if another gateway has the slot. */
  async function readWhilePossible(): Promise<void> {
    const slot = await look()
    if (slot === null) return
    if (slot.isActive) return
    if (!slot.exists || slot.isLost) {
      if (slot.isLost) await dropSlot(ask)
      // Before the first one nothing was lost.
      if (slot.stored > 0n) lost('the replication slot was dropped or invalidated')
      const [[major] = []] = await ask(`SELECT current_setting('server_version_num')::int / 10000`, [])
      await createSlot(database, Number(major))
    } else if (slot.isAhead) {
      if (slot.stored > 0n) lost('the replication slot was moved past what is stored')
      await skipToSlot(database)
    }
    const next = await readSlot(ask)
    if (next !== null && !closing.signal.aborted) await read(next)
  }

  /** Reads the state of the slot, and drops the slot if it keeps too much. */
  async function look(): Promise<SlotState | null> {
    const slot = await readSlot(ask)
    stats.lagBytes = slot?.lagBytes ?? 0
    stats.keptBytes = slot?.keptBytes ?? 0
    if (slot === null || slot.keptBytes <= keepBytesMax) return slot
    await dropSlot(ask)
    lost(`the replication slot kept ${slot.keptBytes} bytes of the log, more than wal_keep_mb allows`)
    await ask(`UPDATE svc.wal SET stored = '0/0' RETURNING 1`, [])
    return readSlot(ask)
  }

  function lost(reason: string): void {
    stats.resyncs++
    warn(
      `Changes were lost: ${reason}. Every subscriber reads again; webhooks of changes that were not yet read from ` +
        'the log are not sent.',
      null,
    )
  }

  async function read({ name, stored }: SlotState): Promise<void> {
    const session = await openReplication({ ...(await parts.replication()), signal: closing.signal })
    let looking: NodeJS.Timeout | null = null
    let probing: NodeJS.Timeout | null = null
    try {
      for (const setting of TEXT_SETTINGS) await session.run(setting)
      const stream = await session.start({
        ...{ slot: name, publications: [PUBLICATION], from: stored, protocol: 1 },
        ...{ streaming: false, twoPhase: false, messages: true },
      })
      stats.isReading = true
      reported = ''
      looking = setInterval(() => void look().catch(() => {}), LOOK_INTERVAL_MS)
      probing = setInterval(() => stream.probe(), POSITION_INTERVAL_MS)
      await store(stream, stored)
    } finally {
      if (looking !== null) clearInterval(looking)
      if (probing !== null) clearInterval(probing)
      session.close()
    }
  }

  /** Stores what the stream delivers. Never resolves. */
  async function store(stream: ReplicationStream, from: Lsn): Promise<never> {
    const known: KnownTables = new WeakMap()
    let stored = from
    let movedAt = now()
    let batch: Batch | null = null
    let xid = 0
    let origin: string | null = null
    let isInTransaction = false
    /** True while the rest of a transaction that cannot be stored arrives. */
    let isSkipping = false
    /** The end of the last transaction that is in the batch as a whole, or had no changes. */
    let end = from
    const begin = async (): Promise<Batch> => {
      const begun = await Batch.begin(database.begin(undefined, 'read committed'), stored, known)
      begun.startTransaction(xid)
      return begun
    }
    const finish = async () => {
      if (batch === null) return
      const { rows } = batch
      await batch.commit(end)
      batch = null
      stored = end
      movedAt = now()
      stats.changes += rows
      stream.confirm(stored)
    }
    const caughtUp = async (position: Lsn) => {
      // The server sends one after each transaction, which must not end the batch of those that wait.
      if (isInTransaction || stream.ready > 0) return
      isCareful = false
      await finish()
      if (position <= stored || now() - movedAt < POSITION_INTERVAL_MS / 2) return
      await move(stored, position)
      stored = position
      end = position
      movedAt = now()
      stream.confirm(stored)
    }
    const add = async (relation: ReplicatedRelation, change: DecodedChange) => {
      if (isSkipping) return
      batch ??= await begin()
      await batch.add(relation, change, origin)
    }
    const take = async (item: StreamItem): Promise<void> => {
      switch (item.kind) {
        case 'begin':
          xid = item.xid
          origin = null
          isInTransaction = true
          return batch?.startTransaction(xid)
        case 'message':
          if (item.isTransactional && item.prefix === ORIGIN_PREFIX) origin = traceOf(item.content)
          return
        case 'insert':
          return add(item.relation, { operation: 'I', before: null, after: item.new })
        case 'update':
          return add(item.relation, { operation: 'U', before: item.old, after: item.new })
        case 'delete':
          return add(item.relation, { operation: 'D', before: item.old, after: null })
        case 'truncate':
          if (isSkipping) return
          batch ??= await begin()
          for (const relation of item.relations) await batch.addBulk(relation)
          return
        case 'skipped':
          batch ??= await begin()
          lost(`a change of ${item.bytes} bytes is too long to be decoded`)
          await batch.run([{ text: LOG_UNKNOWN_CHANGES, parameters: [] }])
          return
        case 'commit':
          end = item.end
          isInTransaction = false
          isSkipping = false
          return isCareful || stream.ready === 0 || (batch?.rows ?? 0) >= BATCH_ROWS_MAX ? finish() : undefined
        case 'caughtUp':
          return caughtUp(item.position)
        default:
      }
    }
    /** Replaces what the current transaction has changed by entries that make every subscriber read again. */
    const skip = async (item: StreamItem, error: DatabaseError) => {
      await (batch as Batch | null)?.rollback().catch(() => {})
      batch = await begin()
      lost(`transaction ${xid} cannot be stored: ${error.message}`)
      await batch.run([{ text: LOG_UNKNOWN_CHANGES, parameters: [] }])
      isSkipping = item.kind !== 'commit'
      if (!isSkipping) await finish()
    }
    try {
      for (;;) {
        const item = await stream.next()
        try {
          await take(item)
        } catch (error) {
          if (!isCareful || isSkipping || !isCausedByData(error)) throw error
          await skip(item, error)
        }
      }
    } finally {
      await (batch as Batch | null)?.rollback().catch(() => {})
    }
  }

  /** Stores a position without changes. It can be lost in a crash, and then it is determined again. */
  async function move(from: Lsn, to: Lsn): Promise<void> {
    const moved = await database.run([
      { text: `SELECT set_config('synchronous_commit', 'off', true)`, parameters: [] },
      {
        text: 'UPDATE svc.wal SET stored = $2::pg_lsn WHERE stored = $1::pg_lsn RETURNING 1',
        parameters: [printLsn(from), printLsn(to)],
      },
    ]).result
    if (moved[1]?.rows.length !== 1) throw new OutdatedReaderError()
  }

  return {
    stats: () => ({ ...stats }),
    async close() {
      closing.abort(new Error('the gateway stops'))
      wake()
      await running
    },
  }
}
