/**
 * Reads the change log (decision 0022): while there are subscriptions, it is polled for entries that were not
 * visible at the last read. The only state between two reads is the last snapshot, so a lost connection or a
 * pooler loses nothing.
 */
import { createHash } from 'node:crypto'
import { DatabaseError } from '../postgres/errors.ts'
import type { Lsn } from '../postgres/replication/lsn.ts'
import type { Database } from '../postgres/types.ts'
import { type Boundary, type ClientState, createBoundary, createLogBoundary } from './boundary.ts'
import type { ChangeEvent } from './change-event.ts'
import type { CallerRoutes, CatchUpReach, MissedChanges } from './change-source.ts'
import { type JoinedRead, type OwnEntries, withOwn } from './joined-read.ts'
import { byTable, changesOf, isNamed, routesOfEntry, routesOfMany } from './log-changes.ts'
import { joinedCommands, joinedResult, type LogEntry, type LogResult, readLog, readLogPart } from './log-statements.ts'
import { createRecentEntries } from './recent-entries.ts'
import { mayConcern, type Routes, type RouteValue } from './route.ts'
import { delayAfter, type LogRead, readShared, type ShareRead } from './share-read.ts'
import { printToken, readToken, type Snapshot, snapshotBelow, union } from './snapshot.ts'
import type { ResyncReason } from './visibility-group.ts'

/** Interval between two reads; the largest part of a change's latency. */
export const READ_INTERVAL_MS = 25

/** Interval between two reads after a while without changes. */
export const IDLE_READ_INTERVAL_MS = 100
const IDLE_AFTER_MS = 2_000

/**
 * Shortest interval between two reads because of notifications (`wake`), of which there is one for each
 * batch of the write-ahead log. Most changes of a busy database wait for about this long.
 */
const WOKEN_INTERVAL_MS = 3

/**
 * Delay after a failed read, with a variation of half either way, so that gateways that lost a database
 * together do not ask for it at the same moments.
 */
const RETRY_MS = 250

/** Limit on the entries of one read. Beyond it, all subscribers are asked to resync. */
export const READ_ROWS_MAX = 20_000

/** Limit on the entries that are read at once for a returning client, who receives them in parts. */
export const SINCE_ROWS_MAX = 1_000

/** The log does not exist or cannot be accessed. */
const INACCESSIBLE: ReadonlySet<string> = new Set(['42P01', '3F000', '42501', '42703'])

/** The read takes too long or its result is too large. */
const TOO_MUCH: ReadonlySet<string> = new Set(['57014', '54000'])

/**
 * Limit on the wait for the reader of the write-ahead log; then changes from before can be delivered again.
 */
const STORED_WAIT_MS_MAX = 2_000

/** Receives the changes of one table. */
export interface LogListener {
  /** All changes to the table found by one read, in order. */
  changed(changes: readonly ChangeEvent[]): void
  /**
   * Something changed that cannot be expressed as changes. `routes`: the groups concerned; by default all.
   */
  invalidate(reason: ResyncReason, routes?: Routes | null): void
  /** The log is temporarily unreadable; nothing has been lost yet. */
  unavailable(): void
  /** The routing column (`route.ts`), if it should be read. */
  routeBy(): string | null
}

/** Figures of the log. */
export interface LogStats {
  /** True if the last read succeeded; false without listeners. */
  readonly reading: boolean
  readonly reads: number
  readonly rows: number
}

/** The inputs for reading the log. */
export interface ChangeLogParts {
  readonly database: Pick<Database, 'run'>
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Called when the installation is damaged. */
  readonly onBroken: () => void
  /** Shares reads with the other workers; null if there is only this process. */
  readonly shareRead: ShareRead | null
  /** A number from 0 to 1; `Math.random` by default. */
  readonly random?: () => number
}

/** Routing columns by table. */
type RoutingColumns = ReadonlyMap<string, string | null>

/** Waits until the log has what was committed before. */
interface StoredWait {
  readonly since: number
  /** The end of the write-ahead log afterwards; null before the next read. */
  end: Lsn | null
  readonly resolve: () => void
}

/** The position after the last read. */
interface Position {
  /** True if changes are captured from the write-ahead log. */
  readonly usesWal: boolean
  readonly snapshot: Snapshot
  /** A digest of the epoch, as in tokens. */
  readonly epoch: string
  readonly token: string
  readonly deletedUpTo: bigint
}

/** Polls the change log for all tables that are subscribed to. */
export class ChangeLog {
  readonly #parts: ChangeLogParts
  readonly #listeners = new Map<string, Set<LogListener>>()
  readonly #recent = createRecentEntries()
  #position: Position | null = null
  #timer: NodeJS.Timeout | null = null
  /** A read in progress covers only the tables listened to when it began. */
  #isReading = false
  #readAt = Number.NEGATIVE_INFINITY
  /** True if there has been a notification since the last read began. */
  #isWoken = false
  #waiting: (() => void)[] = []
  #storedWaits = new Set<StoredWait>()
  #foundAt = 0
  #isHealthy = false
  /** True if changes before the next read are unknown. */
  #hasSkipped = false
  #seq = 0
  #reads = 0
  #rows = 0

  constructor(parts: ChangeLogParts) {
    this.#parts = parts
  }

  /**
   * Listens to a table, `schema.name`. Every change committed after `ready` has resolved is reported; it
   * stays pending until the log is readable.
   */
  listen(table: string, listener: LogListener): { readonly ready: Promise<void>; close(): void } {
    const of = this.#listeners.get(table) ?? new Set()
    this.#listeners.set(table, of)
    of.add(listener)
    const isListening = this.#position !== null && !this.#isReading
    const ready = isListening ? Promise.resolve() : new Promise<void>(resolve => this.#waiting.push(resolve))
    this.#schedule(this.#position === null ? 0 : READ_INTERVAL_MS)
    const close = () => {
      of.delete(listener)
      if (of.size === 0) this.#listeners.delete(table)
      if (this.#listeners.size === 0 && !this.#isReading) this.#reset()
    }
    return { ready, close }
  }

  /**
   * Resolves once the log has every change that was committed before the call, or after `STORED_WAIT_MS_MAX`.
   * Only changes from the write-ahead log are there later than their transaction.
   */
  async stored(): Promise<void> {
    if (this.#position?.usesWal !== true) return
    await new Promise<void>(resolve => {
      const wait = { since: this.#parts.now(), end: null, resolve: () => end() }
      const end = () => {
        clearTimeout(timer)
        this.#storedWaits.delete(wait)
        resolve()
      }
      const timer = setTimeout(end, STORED_WAIT_MS_MAX)
      this.#storedWaits.add(wait)
    })
  }

  /** Reads soon, because changes from the write-ahead log have been stored. The next poll finds them too. */
  wake(): void {
    if (this.#position?.usesWal !== true) return
    this.#isWoken = true
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
    this.#schedule(this.#wokenDelayMs())
  }

  /**
   * Joins the transaction that stores changes from the write-ahead log, so that they arrive here as soon as
   * it is committed. Until then nothing else is read. Null if there is nothing to continue, or another read
   * is in progress: then `wake` has to be called.
   */
  join(): JoinedRead | null {
    const before = this.#position
    if (before?.usesWal !== true || !this.#isHealthy || this.#isReading || this.#listeners.size === 0) return null
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#isReading = true
    this.#isWoken = false
    this.#readAt = this.#parts.now()
    const startedAt = this.#readAt
    const columns = this.#columns()
    return {
      columns,
      commands: joinedCommands(before, columns, READ_ROWS_MAX),
      committed: (results, own) => {
        let delayMs = 0
        try {
          const answer = own === null ? null : ownAnswer(joinedResult(results), own)
          // The next read finds everything.
          if (answer === null || this.#position !== before) this.#isWoken = true
          else {
            this.#rows += answer.entries.length
            this.#count(answer)
            this.#accept(before, answer, columns, startedAt)
            if (!this.#isWoken) delayMs = this.#intervalMs()
          }
        } catch (error) {
          this.#fail(error)
          delayMs = READ_INTERVAL_MS
        }
        this.#endRead(delayMs)
      },
      failed: () => {
        // If reading has failed the transaction, the next one must not try it too.
        this.#isHealthy = false
        this.#endRead(READ_INTERVAL_MS)
      },
    }
  }

  /** The current resume token; empty before the first read. */
  token(): string {
    return this.#position?.token ?? ''
  }

  /** A boundary after the snapshot and after the last read, neither of which has to be the later one. */
  boundary(snapshot: Snapshot, has: ClientState): Boundary {
    const position = this.#position
    // After a failed read the reader starts again, and its listeners are informed.
    if (position === null) return createBoundary(snapshot, '')
    return createLogBoundary(union(position.snapshot, snapshot), position.epoch, has)
  }

  /**
   * The changes to a table since a token, or the first part of them; null if they are no longer known, or if
   * one of the tables `dependencies`, which have these routing columns, has changed. Changes that cannot
   * concern the caller's routing values are left out. Rejects if the log is unreadable.
   */
  async since(
    table: string,
    token: string,
    dependencies: ReadonlyMap<string, string | null>,
    { own: route, guards }: CallerRoutes,
    reach: CatchUpReach,
  ): Promise<MissedChanges | null> {
    if (this.#position === null) return null
    const { epoch, snapshot: position } = this.#position
    const snapshot = readToken(token, epoch)
    if (snapshot === null) return null
    const tables = new Map([[table, route?.column ?? null], ...dependencies])
    const concernsCaller = (entry: LogEntry) =>
      concerns(entry, entry.table === table ? route : (guards.get(entry.table) ?? null))
    const missedOf = (entries: readonly LogEntry[], to: Snapshot, isLast: boolean): MissedChanges | null => {
      const concerning = entries.filter(concernsCaller)
      if (!concerning.every(entry => entry.table === table && isNamed(entry))) return null
      const boundary = createLogBoundary(to, epoch, 'entries')
      const changes = changesOf(concerning, route?.column ?? null, this.#nextSeq, token, boundary.token)
      return { changes, boundary, isLast }
    }
    const recent = reach === 'the last read' ? this.#recent.since(snapshot, tables) : null
    const own = recent?.filter(concernsCaller)
    if (own !== undefined && own.length <= SINCE_ROWS_MAX) return missedOf(own, position, true)
    for (const rowsMax of [SINCE_ROWS_MAX, READ_ROWS_MAX]) {
      const answer = await readLogPart(this.#parts.database, snapshot, tables, { rowsMax, route }).catch(tooMuchIsNull)
      if (answer === null || digestOf(answer.epoch) !== epoch || snapshot.xmin <= answer.deletedUpTo) return null
      if (snapshot.xmax > answer.snapshot.xmax) return null
      const part = partOf(answer, rowsMax)
      // One transaction has more entries: it is read again, as a whole.
      if (part === null) continue
      return missedOf(part.entries, part.snapshot, part.isLast)
    }
    return null
  }

  stats(): LogStats {
    return { reading: this.#isHealthy, reads: this.#reads, rows: this.#rows }
  }

  close(): void {
    this.#listeners.clear()
    this.#waiting = []
    this.#reset()
  }

  // --- reading ---

  #schedule(delayMs: number): void {
    if (this.#isReading || this.#timer !== null || this.#listeners.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#read()
    }, delayMs)
    this.#timer.unref()
  }

  #wokenDelayMs(): number {
    return Math.max(0, this.#readAt + WOKEN_INTERVAL_MS - this.#parts.now())
  }

  /** Reads the log once. Never rejects. */
  async #read(): Promise<void> {
    this.#isReading = true
    const isWoken = this.#isWoken
    this.#isWoken = false
    this.#readAt = this.#parts.now()
    let delayMs = RETRY_MS * (0.5 + (this.#parts.random ?? Math.random)())
    try {
      const before = this.#position
      const columns = this.#columns()
      const startedAt = this.#parts.now()
      const { result: answer, ageMs } = await this.#readNext(before, columns, isWoken)
      this.#accept(before, answer, columns, startedAt - ageMs)
      delayMs = this.#isWoken ? this.#wokenDelayMs() : delayAfter(this.#intervalMs(), ageMs)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#endRead(delayMs)
    }
  }

  /** `readAt`: the time before which nothing was read. */
  #accept(before: Position | null, answer: LogResult, columns: RoutingColumns, readAt: number): void {
    this.#process(before, answer, columns)
    this.#endStoredWaits(answer, readAt)
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #endRead(delayMs: number): void {
    this.#isReading = false
    if (this.#listeners.size === 0) this.#reset()
    else this.#schedule(delayMs)
  }

  /** `isWoken`: a result that another worker found before the notification is of no use. */
  async #readNext(before: Position | null, columns: RoutingColumns, isWoken: boolean): Promise<LogRead<LogResult>> {
    const { database, shareRead } = this.#parts
    const read = () => readLog(database, before, columns, READ_ROWS_MAX)
    const shared = await readShared(shareRead, {
      ...{ stream: `log ${JSON.stringify([...columns].sort())}`, from: before, read },
      intervalMs: isWoken ? 0 : this.#intervalMs(),
    })
    if (shared.isOwn) {
      this.#reads++
      this.#rows += shared.result.entries.length
    }
    this.#count(shared.result)
    return shared
  }

  #intervalMs(): number {
    const isIdle = this.#parts.now() - this.#foundAt >= IDLE_AFTER_MS
    return isIdle ? IDLE_READ_INTERVAL_MS : READ_INTERVAL_MS
  }

  #count({ entries }: LogResult): void {
    if (entries.length > 0) this.#foundAt = this.#parts.now()
    this.#isHealthy = true
  }

  #fail(error: unknown): void {
    this.#isHealthy = false
    const state = error instanceof DatabaseError ? error.sqlstate : ''
    if (INACCESSIBLE.has(state)) this.#parts.onBroken()
    if (TOO_MUCH.has(state)) {
      this.#position = null
      this.#recent.clear()
      this.#hasSkipped = true
    }
    this.#notifyAll(listener => listener.unavailable())
  }

  #endStoredWaits({ usesWal, wal }: LogResult, readAt: number): void {
    for (const wait of this.#storedWaits) {
      if (wal !== null && wait.end === null && readAt >= wait.since) wait.end = wal.end
      if (!usesWal || (wal !== null && wait.end !== null && wal.stored >= wait.end)) wait.resolve()
    }
  }

  #reset(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#position = null
    this.#recent.clear()
    this.#isHealthy = false
    this.#hasSkipped = false
  }

  // // --- notifying ---

  #process(before: Position | null, answer: LogResult, columns: RoutingColumns): void {
    const position = positionAfter(before, answer)
    this.#position = position
    if (before === null) {
      // Rows read from now on include everything before this position, so nothing is missed.
      if (this.#hasSkipped) this.#notifyAll(listener => listener.invalidate('too many changes'))
      this.#hasSkipped = false
      return
    }
    const { entries } = answer
    if (hasLostEntries(before, position) || entries.length > READ_ROWS_MAX) this.#recent.clear()
    else this.#recent.add({ from: before.snapshot, to: position.snapshot, columns, entries })
    if (hasLostEntries(before, position)) this.#notifyAll(listener => listener.invalidate('epoch'))
    else if (entries.length > READ_ROWS_MAX) this.#notifyAll(listener => listener.invalidate('too many changes'))
    else this.#notify(entries, columns, before.token, position.token)
  }

  #notify(entries: readonly LogEntry[], columns: RoutingColumns, from: string, to: string): void {
    for (const [table, ofTable] of byTable(entries)) {
      const column = columns.get(table) ?? null
      const changes = changesOf(ofTable.filter(isNamed), column, this.#nextSeq, from, to)
      const bulk = ofTable.filter(entry => !isNamed(entry))
      for (const listener of this.#listeners.get(table) ?? []) {
        if (changes.length > 0) listener.changed(changes)
        // After the changes: a client that resyncs does not need them.
        if (bulk.length > 0) listener.invalidate('bulk', routesOfMany(bulk, column))
      }
    }
  }

  #notifyAll(how: (listener: LogListener) => void): void {
    for (const of of this.#listeners.values()) for (const listener of of) how(listener)
  }

  #columns(): RoutingColumns {
    const columnOf = (of: ReadonlySet<LogListener>) =>
      [...of].map(listener => listener.routeBy()).find(column => column !== null)
    return new Map([...this.#listeners].map(([table, of]) => [table, columnOf(of) ?? null]))
  }

  readonly #nextSeq = (): number => ++this.#seq
}

/**
 * The answer of a read after the commit. Null if it is not known, or the order of the entries of one table is
 * not.
 */
function ownAnswer(answer: LogResult, { xid, entries }: OwnEntries): LogResult | null {
  const snapshot = withOwn(answer.snapshot, xid)
  const tables = new Set(entries.map(({ table }) => table))
  if (snapshot === null || answer.entries.some(({ table }) => tables.has(table))) return null
  return { ...answer, snapshot, entries: [...answer.entries, ...entries] }
}

/**
 * The entries of whole transactions and the position after them; null if no transaction is known to be
 * complete, or no token can express the position.
 */
function partOf({ entries, snapshot }: LogResult, rowsMax: number) {
  if (entries.length <= rowsMax) return { entries, snapshot, isLast: true }
  const last = entries.map(storingTransaction).reduce((one, other) => (one > other ? one : other))
  const complete = entries.filter(entry => storingTransaction(entry) !== last)
  const below = snapshotBelow(snapshot, last)
  return complete.length === 0 || below === null ? null : { entries: complete, snapshot: below, isLast: false }
}

function storingTransaction({ txid, storedBy }: LogEntry): bigint {
  return BigInt(storedBy ?? txid)
}

/** True if a change may concern a routing value. */
function concerns(entry: LogEntry, value: RouteValue | null): boolean {
  return mayConcern(value === null ? null : routesOfEntry(entry, value.column), value)
}

function positionAfter(before: Position | null, { snapshot, deletedUpTo, epoch: text, usesWal }: LogResult): Position {
  const epoch = digestOf(text)
  const isSame = before !== null && before.epoch === epoch && sameSnapshot(before.snapshot, snapshot)
  return {
    snapshot,
    epoch,
    token: isSame ? before.token : printToken(epoch, snapshot),
    ...{ deletedUpTo, usesWal },
  }
}

/**
 * True if entries were lost: the epoch changed, or entries were deleted that the last read may not have seen.
 */
function hasLostEntries(before: Position, { epoch, deletedUpTo }: Position): boolean {
  return before.epoch !== epoch || (deletedUpTo !== before.deletedUpTo && before.snapshot.xmin <= deletedUpTo)
}

function sameSnapshot(one: Snapshot, other: Snapshot): boolean {
  return one.xmin === other.xmin && one.xmax === other.xmax && one.open.join() === other.open.join()
}

/** The short form of an epoch in tokens. */
function digestOf(epoch: string): string {
  return createHash('sha256').update(epoch).digest('base64url').slice(0, 8)
}

function tooMuchIsNull(error: unknown): null {
  if (error instanceof DatabaseError && TOO_MUCH.has(error.sqlstate)) return null
  throw error
}
