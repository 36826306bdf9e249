/**
 * Reads from the change log which tables have changed, for the result cache. It reads only names, so a read stays cheap whatever the number of changes, and is
 * independent of subscriptions.
 */
import { DatabaseError } from '../postgres/errors.ts'
import type { Database } from '../postgres/types.ts'
import { IDLE_READ_INTERVAL_MS, READ_INTERVAL_MS } from './log.ts'
import { readChangedTables } from './log-statements.ts'
import type { Snapshot } from './snapshot.ts'

/** Reads follow each other at the shorter interval for this long after a change. */
const IDLE_AFTER_MS = 2_000

export interface ChangedTablesParts {
  readonly database: Pick<Database, 'run'>
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /** There is a log. */
  readonly isUsable: () => boolean
  /** `schema.name` of each table that has changed. */
  readonly onChanged: (tables: readonly string[]) => void
  /** Any table may have changed. */
  readonly onDoubt: () => void
}

export interface ChangedTables {
  /** The moment, on the clock of `now`, before which every committed change is known; minus infinity before the first read. */
  knownUntil(): number
  close(): void
}

interface Position {
  readonly snapshot: Snapshot
  readonly epoch: string
  readonly forgotten: bigint
}

export function watchChangedTables(parts: ChangedTablesParts): ChangedTables {
  const { database, now, isUsable, onChanged, onDoubt } = parts
  let position: Position | null = null
  let knownUntil = Number.NEGATIVE_INFINITY
  let foundAt = Number.NEGATIVE_INFINITY
  let isClosed = false
  let timer: NodeJS.Timeout | null = null
  void read()

  /** Never rejects. */
  async function read(): Promise<void> {
    const startedAt = now()
    if (isUsable()) await readOnce(startedAt).catch(failed)
    else forget()
    if (isClosed) return
    const isIdle = now() - foundAt >= IDLE_AFTER_MS
    timer = setTimeout(() => void read(), isIdle ? IDLE_READ_INTERVAL_MS : READ_INTERVAL_MS)
    timer.unref()
  }

  async function readOnce(startedAt: number): Promise<void> {
    const before = position
    const { tables, ...found } = await readChangedTables(database, before?.snapshot ?? null)
    if (isClosed) return
    position = found
    const isContinued = before !== null && before.epoch === found.epoch && !isForgotten(before, found)
    if (!isContinued) onDoubt()
    else if (tables.length > 0) onChanged(tables)
    if (tables.length > 0) foundAt = now()
    knownUntil = startedAt
  }

  /** After a refusal the next read starts from the current position, and counts every table as changed. */
  function failed(error: unknown): void {
    if (error instanceof DatabaseError) forget()
  }

  function forget(): void {
    position = null
    knownUntil = Number.NEGATIVE_INFINITY
  }

  return {
    knownUntil: () => knownUntil,
    close() {
      isClosed = true
      if (timer !== null) clearTimeout(timer)
    },
  }
}

/** Entries that the last read had not seen were removed. */
function isForgotten({ snapshot, forgotten }: Position, found: Position): boolean {
  return found.forgotten !== forgotten && snapshot.xmin <= found.forgotten
}
