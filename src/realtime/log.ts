/**
 * Follows the change log (decision 0022): while anybody subscribes to a table, it is asked again and again for what was not there the last time. Nothing is
 * kept between two questions but the snapshot of the last answer, so a connection that is lost, or a pooler in between, loses nothing.
 */
import { createHash } from 'node:crypto'
import { DatabaseError } from '../postgres/errors.ts'
import type { Database } from '../postgres/types.ts'
import { type Boundary, createBoundary, createLogBoundary } from './boundary.ts'
import type { Change } from './change.ts'
import type { Missed } from './feed.ts'
import type { ResyncReason } from './group.ts'
import { byTable, changesOf, isNamed, routesOfMany } from './log-changes.ts'
import { type LogAnswer, type LogEntry, readLog } from './log-statements.ts'
import type { Routes } from './route.ts'
import { covers, printToken, readToken, type Snapshot } from './snapshot.ts'

/** Between two reads: most of what a client waits for a change. */
export const READ_INTERVAL_MS = 25

/** The same, once nothing has changed for a while. */
export const IDLE_READ_INTERVAL_MS = 100
const IDLE_AFTER_MS = 2_000

/** After a read that failed. */
const RETRY_MS = 250

/** Entries of one read; more, and everybody reads their rows again. */
export const READ_ROWS_MAX = 20_000

/** Entries that somebody who comes back is told of; more, and they read their rows again. */
export const SINCE_ROWS_MAX = 1_000

/** The log is not there, or not for us. */
const BROKEN: ReadonlySet<string> = new Set(['42P01', '3F000', '42501', '42703'])

/** It takes too long, or is more than fits into an answer (postgres/unit.ts). */
const TOO_MUCH: ReadonlySet<string> = new Set(['57014', '54000'])

export interface LogHearer {
  /** In order; all that one read found of the table. */
  changed(changes: readonly Change[]): void
  /** Something changed that nobody can name. `routes`: whom it concerns; by default everybody. */
  doubt(reason: ResyncReason, routes?: Routes | null): void
  /** The log could not be read, for now: nothing is lost yet. */
  silent(): void
  /** The column that tells whom a change concerns (`route.ts`), if it is to be told. */
  routeBy(): string | null
}

export interface LogStats {
  /** The last read succeeded; false as well while nobody listens. */
  readonly reading: boolean
  readonly reads: number
  readonly rows: number
}

export interface ChangeLogParts {
  readonly database: Pick<Database, 'run'>
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /** It is not as it was installed. */
  readonly onBroken: () => void
}

/** By table, what tells whom a change concerns. */
type Columns = ReadonlyMap<string, string | null>

/** Where the last read ended. */
interface Position {
  readonly snapshot: Snapshot
  readonly epoch: string
  readonly token: string
  readonly forgotten: bigint
}

export class ChangeLog {
  readonly #parts: ChangeLogParts
  readonly #hearers = new Map<string, Set<LogHearer>>()
  #position: Position | null = null
  #timer: NodeJS.Timeout | null = null
  /** A read that is under way asks for the tables that were heard when it began. */
  #isReading = false
  #waiting: (() => void)[] = []
  #foundAt = 0
  #isHealthy = false
  /** What lies before the next read is not known. */
  #hasSkipped = false
  #seq = 0
  #reads = 0
  #rows = 0

  constructor(parts: ChangeLogParts) {
    this.#parts = parts
  }

  /** `table`: `schema.name`. From when `ready` resolves on, every change that is committed is heard of; that waits until the log can be read. */
  hear(table: string, hearer: LogHearer): { readonly ready: Promise<void>; close(): void } {
    const of = this.#hearers.get(table) ?? new Set()
    this.#hearers.set(table, of)
    of.add(hearer)
    const isHeard = this.#position !== null && !this.#isReading
    const ready = isHeard ? Promise.resolve() : new Promise<void>(resolve => this.#waiting.push(resolve))
    this.#schedule(this.#position === null ? 0 : READ_INTERVAL_MS)
    const close = () => {
      of.delete(hearer)
      if (of.size === 0) this.#hearers.delete(table)
      if (this.#hearers.size === 0 && !this.#isReading) this.#forget()
    }
    return { ready, close }
  }

  /** Where it is now; empty before the first read. */
  token(): string {
    return this.#position?.token ?? ''
  }

  /** The later of the snapshot and the last read. */
  boundary(snapshot: Snapshot): Boundary {
    const position = this.#position
    // A read that failed has the reader begin again: its hearers are told so.
    if (position === null) return createBoundary(snapshot, '')
    return createLogBoundary(covers(position.snapshot, snapshot) ? position.snapshot : snapshot, position.epoch)
  }

  /** What a table's changes since were; null where that is not known any more. Rejects when the log cannot be read. */
  async since(table: string, token: string): Promise<Missed | null> {
    if (this.#position === null) return null
    const { epoch, snapshot: current, token: currentToken } = this.#position
    if (token === currentToken) return { changes: [], boundary: createLogBoundary(current, epoch) }
    const snapshot = readToken(token, epoch)
    if (snapshot === null) return null
    const { database } = this.#parts
    const answer = await readLog(database, snapshot, new Map([[table, null]]), SINCE_ROWS_MAX).catch(tooMuchIsNull)
    if (answer === null || digestOf(answer.epoch) !== epoch || snapshot.xmin <= answer.forgotten) return null
    if (answer.entries.length > SINCE_ROWS_MAX || snapshot.xmax > answer.snapshot.xmax) return null
    const boundary = createLogBoundary(answer.snapshot, epoch)
    if (!answer.entries.every(isNamed)) return null
    return { changes: changesOf(answer.entries, null, this.#nextSeq, token, boundary.token), boundary }
  }

  stats(): LogStats {
    return { reading: this.#isHealthy, reads: this.#reads, rows: this.#rows }
  }

  close(): void {
    this.#hearers.clear()
    this.#waiting = []
    this.#forget()
  }

  // --- reading ---

  #schedule(delayMs: number): void {
    if (this.#isReading || this.#timer !== null || this.#hearers.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#read()
    }, delayMs)
    this.#timer.unref()
  }

  /** Never rejects. */
  async #read(): Promise<void> {
    this.#isReading = true
    let delayMs = RETRY_MS
    try {
      const before = this.#position
      const columns = this.#columns()
      const answer = await readLog(this.#parts.database, before?.snapshot ?? null, columns, READ_ROWS_MAX)
      this.#count(answer)
      this.#take(before, answer, columns)
      for (const resolve of this.#waiting.splice(0)) resolve()
      const isIdle = this.#parts.now() - this.#foundAt >= IDLE_AFTER_MS
      delayMs = isIdle ? IDLE_READ_INTERVAL_MS : READ_INTERVAL_MS
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isReading = false
      if (this.#hearers.size === 0) this.#forget()
      else this.#schedule(delayMs)
    }
  }

  #count({ entries }: LogAnswer): void {
    this.#reads++
    this.#rows += entries.length
    if (entries.length > 0) this.#foundAt = this.#parts.now()
    this.#isHealthy = true
  }

  #fail(error: unknown): void {
    this.#isHealthy = false
    const state = error instanceof DatabaseError ? error.sqlstate : ''
    if (BROKEN.has(state)) this.#parts.onBroken()
    if (TOO_MUCH.has(state)) {
      this.#position = null
      this.#hasSkipped = true
    }
    this.#tellAll(hearer => hearer.silent())
  }

  #forget(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#position = null
    this.#isHealthy = false
    this.#hasSkipped = false
  }

  // --- telling ---

  #take(before: Position | null, answer: LogAnswer, columns: Columns): void {
    const position = positionAfter(before, answer)
    this.#position = position
    if (before === null) {
      // Not earlier: whoever reads its rows now misses nothing that comes after them.
      if (this.#hasSkipped) this.#tellAll(hearer => hearer.doubt('too many changes'))
      this.#hasSkipped = false
      return
    }
    const { entries } = answer
    if (hasLost(before, position)) this.#tellAll(hearer => hearer.doubt('epoch'))
    else if (entries.length > READ_ROWS_MAX) this.#tellAll(hearer => hearer.doubt('too many changes'))
    else this.#tell(entries, columns, before.token, position.token)
  }

  #tell(entries: readonly LogEntry[], columns: Columns, from: string, to: string): void {
    for (const [table, ofTable] of byTable(entries)) {
      const column = columns.get(table) ?? null
      const changes = changesOf(ofTable.filter(isNamed), column, this.#nextSeq, from, to)
      const bulk = ofTable.filter(entry => !isNamed(entry))
      for (const hearer of this.#hearers.get(table) ?? []) {
        if (changes.length > 0) hearer.changed(changes)
        // Behind them: whoever reads again need not be told of what came before.
        if (bulk.length > 0) hearer.doubt('bulk', routesOfMany(bulk, column))
      }
    }
  }

  #tellAll(how: (hearer: LogHearer) => void): void {
    for (const of of this.#hearers.values()) for (const hearer of of) how(hearer)
  }

  #columns(): Columns {
    const columnOf = (of: ReadonlySet<LogHearer>) =>
      [...of].map(hearer => hearer.routeBy()).find(column => column !== null)
    return new Map([...this.#hearers].map(([table, of]) => [table, columnOf(of) ?? null]))
  }

  readonly #nextSeq = (): number => ++this.#seq
}

function positionAfter(before: Position | null, { snapshot, forgotten, epoch: text }: LogAnswer): Position {
  const epoch = digestOf(text)
  const isSame = before !== null && before.epoch === epoch && sameSnapshot(before.snapshot, snapshot)
  return { snapshot, epoch, token: isSame ? before.token : printToken(epoch, snapshot), forgotten }
}

/** Another log, or what was thrown away since the last read, which that may not have seen. */
function hasLost(before: Position, { epoch, forgotten }: Position): boolean {
  return before.epoch !== epoch || (forgotten !== before.forgotten && before.snapshot.xmin <= forgotten)
}

function sameSnapshot(one: Snapshot, other: Snapshot): boolean {
  return one.xmin === other.xmin && one.xmax === other.xmax && one.open.join() === other.open.join()
}

/** What a token says of the epoch. */
function digestOf(epoch: string): string {
  return createHash('sha256').update(epoch).digest('base64url').slice(0, 8)
}

function tooMuchIsNull(error: unknown): null {
  if (error instanceof DatabaseError && TOO_MUCH.has(error.sqlstate)) return null
  throw error
}
