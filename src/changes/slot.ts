/** The replication slot: its state, its creation, and its end when it keeps too much of the log. */
import type { Query } from '../catalog/introspect.ts'
import { CAPTURED_TABLES } from '../install/captured-tables.ts'
import { createSlotStatement, dropFreeSlot, endSlotSession, SLOT_NAME } from '../install/wal-capture.ts'
import { type Lsn, parseLsn, printLsn } from '../postgres/replication/lsn.ts'
import type { Database } from '../postgres/types.ts'

type SlotDatabase = Pick<Database, 'run' | 'begin'>

/**
 * Another reader has stored later changes, or the capture was removed: what was decoded must be discarded.
 */
export class OutdatedReaderError extends Error {
  constructor() {
    super('the position in svc.wal was changed by another reader')
    this.name = 'OutdatedReaderError'
  }
}

/** The slot and the position in `svc.wal`. */
export interface SlotState {
  readonly name: string
  readonly exists: boolean
  /** True if a session reads it. */
  readonly isActive: boolean
  /** True if the server has discarded what it would have to send next. */
  readonly isLost: boolean
  /** True if more was confirmed than is stored: it was created again, or moved. */
  readonly isAhead: boolean
  readonly stored: Lsn
  /** How far the stored position is behind the end of the log. */
  readonly lagBytes: number
  /** How much of the log the slot keeps. */
  readonly keptBytes: number
}

const STATE = `SELECT ${SLOT_NAME}, s.slot_name IS NOT NULL, coalesce(s.active, false),
  coalesce(s.wal_status = 'lost', false), coalesce(s.confirmed_flush_lsn > w.stored, false), w.stored,
  greatest(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), w.stored), 0)::bigint,
  coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn), 0)::bigint
  FROM svc.wal AS w LEFT JOIN pg_catalog.pg_replication_slots AS s ON s.slot_name = ${SLOT_NAME}`

/** Reads the state; null if changes are not captured from the write-ahead log. */
export async function readSlot(ask: Query): Promise<SlotState | null> {
  const [row] = await ask(STATE, [])
  if (row === undefined) return null
  const [name, exists, isActive, isLost, isAhead, stored, lag, kept] = row
  return {
    name: name ?? '',
    exists: exists === 't',
    isActive: isActive === 't',
    isLost: isLost === 't',
    isAhead: isAhead === 't',
    stored: parseLsn(stored ?? '0/0'),
    lagBytes: Number(lag),
    keptBytes: Number(kept),
  }
}

/** One bulk entry for each table: what was not decoded is unknown. */
export const LOG_UNKNOWN_CHANGES: string = `INSERT INTO svc.change ("schema", "table", operation)
  SELECT DISTINCT f.root_schema, f.root_table, 'B'::"char" FROM (${CAPTURED_TABLES}) AS f WHERE f.source = 'wal'`

/** Attempts to drop a slot whose session is ending. */
const DROP_ATTEMPTS_MAX = 20
const DROP_RETRY_MS = 100

/** Drops the slot, because changes are no longer captured from the write-ahead log. */
export function dropSlot(ask: Query): Promise<void> {
  return dropSlotIf(ask, 'true')
}

/** Drops the slot if the server has discarded what it would have to send next. */
export function dropLostSlot(ask: Query): Promise<void> {
  return dropSlotIf(ask, `s.wal_status = 'lost'`)
}

/** Drops the slot if it keeps more than this of the log. */
export function dropLargeSlot(ask: Query, keepBytesMax: number): Promise<void> {
  const kept = 'pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn)'
  return dropSlotIf(ask, `${kept} > ${BigInt(keepBytesMax)}`)
}

/**
 * Ends the session that uses the slot, and drops the slot. Rejects if it is still in use afterwards. A slot
 * that another gateway has just created does not meet the condition, and is kept.
 */
async function dropSlotIf(ask: Query, condition: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await ask(endSlotSession(condition), [])
    try {
      // A slot that was in use when it was read still exists.
      await ask(dropFreeSlot(condition), [])
      if ((await ask(dropFreeSlot(condition), [])).length === 0) return
    } catch (error) {
      // Between the two, its session can have begun again, or another session can have dropped it.
      if (attempt === DROP_ATTEMPTS_MAX)
        throw new Error(`the replication slot cannot be dropped: ${(error as Error).message}`, { cause: error })
    }
    if (attempt === DROP_ATTEMPTS_MAX) throw new Error('the replication slot is still in use')
    await new Promise(resolve => setTimeout(resolve, DROP_RETRY_MS))
  }
}

/**
 * Creates the slot, then logs that any change before it may be unknown, and stores its position. If this
 * fails in between, the slot is ahead of the stored position, and the second step is repeated.
 */
export async function createSlot(database: SlotDatabase, major: number, stored: Lsn): Promise<void> {
  await database.run([{ text: createSlotStatement(major), parameters: [] }]).result
  await skipToSlot(database, stored)
}

const SKIP = `UPDATE svc.wal AS w SET stored = s.confirmed_flush_lsn FROM pg_catalog.pg_replication_slots AS s
  WHERE s.slot_name = ${SLOT_NAME} AND w.stored = $1::pg_lsn RETURNING 1`

/**
 * Starts at the slot's position, with a bulk entry for each table. `stored`: the position that was found.
 * Rejects with `OutdatedReaderError` if another gateway has moved it, and may already store what follows.
 */
export async function skipToSlot(database: SlotDatabase, stored: Lsn): Promise<void> {
  const transaction = database.begin(undefined, 'read committed')
  try {
    const [moved] = await transaction.run([{ text: SKIP, parameters: [printLsn(stored)] }])
    if (moved?.rows.length !== 1) throw new OutdatedReaderError()
    await transaction.commit([{ text: LOG_UNKNOWN_CHANGES, parameters: [] }])
  } catch (error) {
    await transaction.rollback().catch(() => {})
    throw error
  }
}
