/**
 * Reads from the change log which tables have changed, for the result cache. Only table names are read, so a
 * read is cheap whatever the number of changes, and it does not depend on subscriptions. The log is read when
 * changes from the write-ahead log have been stored, and polled.
 */
import { DatabaseError } from '../postgres/errors.ts'
import type { Lsn } from '../postgres/replication/lsn.ts'
import type { Database } from '../postgres/types.ts'
import { IDLE_READ_INTERVAL_MS, READ_INTERVAL_MS } from './log.ts'
import { readChangedTables, type WalPositions } from './log-statements.ts'
import { delayAfter, readShared, type ShareRead } from './share-read.ts'
import type { Snapshot } from './snapshot.ts'

/** How long the shorter read interval is used after a change. */
const IDLE_AFTER_MS = 2_000

/** Shortest interval between two reads because of notifications (`wake`). */
const WOKEN_INTERVAL_MS = 10

/** The dependencies of the reader. */
export interface ChangedTablesParts {
  readonly database: Pick<Database, 'run'>
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Shares reads with the other workers; null if there is only this process. */
  readonly shareRead: ShareRead | null
  /** True if a change log is installed. */
  readonly isUsable: () => boolean
  /** Receives the tables that have changed, as `schema.name`. */
  readonly onChanged: (tables: readonly string[]) => void
  /** Called when any table may have changed. */
  readonly onDoubt: () => void
}

/** Reads changed tables in the background. */
export interface ChangedTables {
  /**
   * The moment, on the clock of `now`, before which every committed change is known; minus infinity before
   * the first read.
   */
  knownUntil(): number
  /** Reads soon, because changes from the write-ahead log have been stored. */
  wake(): void
  close(): void
}

interface Position {
  readonly snapshot: Snapshot
  readonly epoch: string
  readonly deletedUpTo: bigint
  readonly usesWal: boolean
}

/** Limit on the reads that wait for the reader of the write-ahead log; later ones are not remembered. */
const MARKS_MAX = 100

/** A moment, and the end of the write-ahead log then. */
interface Mark {
  readonly moment: number
  readonly end: Lsn
}

/** Starts reading. */
export function watchChangedTables(parts: ChangedTablesParts): ChangedTables {
  const { database, now, shareRead, isUsable, onChanged, onDoubt } = parts
  let position: Position | null = null
  let knownUntil = Number.NEGATIVE_INFINITY
  let foundAt = Number.NEGATIVE_INFINITY
  let marks: readonly Mark[] = []
  let isClosed = false
  let timer: NodeJS.Timeout | null = null
  let lastAgeMs = 0
  let readAt = Number.NEGATIVE_INFINITY
  /** True if there has been a notification since the last read began. */
  let isWoken = false
  void read()

  function intervalMs(): number {
    return now() - foundAt >= IDLE_AFTER_MS ? IDLE_READ_INTERVAL_MS : READ_INTERVAL_MS
  }

  /** Reads once. Never rejects. */
  async function read(): Promise<void> {
    const startedAt = now()
    const wasWoken = isWoken
    isWoken = false
    readAt = startedAt
    lastAgeMs = 0
    if (isUsable()) await readOnce(startedAt, wasWoken).catch(failed)
    else reset()
    if (!isClosed) schedule(isWoken ? wokenDelayMs() : delayAfter(intervalMs(), lastAgeMs))
  }

  function schedule(delayMs: number): void {
    timer = setTimeout(() => {
      timer = null
      void read()
    }, delayMs)
    timer.unref()
  }

  function wokenDelayMs(): number {
    return Math.max(0, readAt + WOKEN_INTERVAL_MS - now())
  }

  /** `wasWoken`: a result that another worker found before the notification is of no use. */
  async function readOnce(startedAt: number, wasWoken: boolean): Promise<void> {
    const before = position
    const { result, ageMs } = await readShared(shareRead, {
      ...{ stream: 'tables', from: before, intervalMs: wasWoken ? 0 : intervalMs() },
      read: () => readChangedTables(database, before),
    })
    const { tables, wal, ...found } = result
    if (isClosed) return
    position = found
    const isContinued = before !== null && before.epoch === found.epoch && !hasLostEntries(before, found)
    if (!isContinued) onDoubt()
    else if (tables.length > 0) onChanged(tables)
    // Where notifications arrive, polling need not be fast.
    if (tables.length > 0 && !wasWoken) foundAt = now()
    knownUntil = momentKnown(startedAt - ageMs, found.usesWal, wal)
    lastAgeMs = ageMs
  }

  /**
   * Of changes from the write-ahead log, those are known that had been committed when its end was where the
   * stored position is now.
   */
  function momentKnown(moment: number, usesWal: boolean, wal: WalPositions | null): number {
    if (!usesWal) {
      marks = []
      return moment
    }
    if (wal === null) return knownUntil
    if (marks.length < MARKS_MAX) marks = [...marks, { moment, end: wal.end }]
    const passed = marks.filter(({ end }) => end <= wal.stored)
    marks = marks.filter(({ end }) => end > wal.stored)
    return passed.at(-1)?.moment ?? knownUntil
  }

  /**
   * After a database error, the next read starts from the current position and counts every table as
   * changed.
   */
  function failed(error: unknown): void {
    if (error instanceof DatabaseError) reset()
  }

  function reset(): void {
    position = null
    marks = []
    knownUntil = Number.NEGATIVE_INFINITY
  }

  return {
    knownUntil: () => knownUntil,
    wake() {
      if (isClosed || position?.usesWal !== true) return
      isWoken = true
      if (timer === null) return
      clearTimeout(timer)
      schedule(wokenDelayMs())
    },
    close() {
      isClosed = true
      if (timer !== null) clearTimeout(timer)
    },
  }
}

/** True if entries were deleted that the last read had not seen. */
function hasLostEntries({ snapshot, deletedUpTo }: Position, found: Position): boolean {
  return found.deletedUpTo !== deletedUpTo && snapshot.xmin <= found.deletedUpTo
}
