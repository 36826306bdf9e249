/** The replication slot: its state, its creation, and its end when it keeps too much of the log. */
import type { Query } from '../catalog/introspect.ts'
import { CAPTURED_TABLES } from '../install/captured-tables.ts'
import { createSlotStatement, DROP_SLOT, END_SLOT_SESSION, SLOT_NAME } from '../install/wal-capture.ts'
import { type Lsn, parseLsn } from '../postgres/replication/lsn.ts'
import type { Command, Database } from '../postgres/types.ts'

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

/** Ends the session that uses the slot, and drops the slot. Rejects if it is still in use afterwards. */
export async function dropSlot(ask: Query): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await ask(END_SLOT_SESSION, [])
    try {
      // A slot that was in use when it was read still exists.
      await ask(DROP_SLOT, [])
      if ((await ask(DROP_SLOT, [])).length === 0) return
    } catch (error) {
      // Between the two, its session can have begun again, or another session can have dropped it.
      if (attempt === DROP_ATTEMPTS_MAX) throw error
    }
    if (attempt === DROP_ATTEMPTS_MAX) throw new Error('the replication slot is still in use')
    await new Promise(resolve => setTimeout(resolve, DROP_RETRY_MS))
  }
}

/**
 * Creates the slot, then logs that any change before it may be unknown, and stores its position. If this
 * fails in between, the slot is ahead of the stored position, and the second step is repeated.
 */
export async function createSlot(database: Pick<Database, 'run'>, major: number): Promise<void> {
  await database.run([{ text: createSlotStatement(major), parameters: [] }]).result
  await skipToSlot(database)
}

/** Starts at the slot's position, with a bulk entry for each table. */
export async function skipToSlot(database: Pick<Database, 'run'>): Promise<void> {
  const commands: readonly Command[] = [
    {
      text: `UPDATE svc.wal SET stored = (SELECT confirmed_flush_lsn FROM pg_catalog.pg_replication_slots
        WHERE slot_name = ${SLOT_NAME})`,
      parameters: [],
    },
    { text: LOG_UNKNOWN_CHANGES, parameters: [] },
  ]
  await database.run(commands).result
}
