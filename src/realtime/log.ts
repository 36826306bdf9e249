/**
 * Follows the change log (decision 0022): while anybody subscribes to a table, it is asked again and again for what was not there the last time. Nothing is
 * kept between two questions but the snapshot of the last answer, so a connection that is lost, or a pooler in between, loses nothing.
 */
import { createHash } from 'node:crypto'
import { bytesOf, parseJsonBody } from '../json/json-body.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Database } from '../postgres/types.ts'
import { type Boundary, createBoundary, createLogBoundary } from './boundary.ts'
import type { Change, Operation } from './change.ts'
import type { Missed } from './feed.ts'
import type { ResyncReason } from './group.ts'
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

export interface ChangeLog {
  /** `table`: `schema.name`. From when `ready` resolves on, every change that is committed is heard of; that waits until the log can be read. */
  hear(table: string, hearer: LogHearer): { readonly ready: Promise<void>; close(): void }
  /** Where it is now; empty before the first read. */
  token(): string
  /** The later of the snapshot and the last read. */
  boundary(snapshot: Snapshot): Boundary
  /** What a table's changes since were; null where that is not known any more. Rejects when the log cannot be read. */
  since(table: string, token: string): Promise<Missed | null>
  stats(): LogStats
  close(): void
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

export function createChangeLog({ database, now, onBroken }: ChangeLogParts): ChangeLog {
  const hearers = new Map<string, Set<LogHearer>>()
  let position: Position | null = null
  let timer: NodeJS.Timeout | null = null
  /** A read that is under way asks for the tables that were heard when it began. */
  let reading = false
  let waiting: (() => void)[] = []
  let foundAt = 0
  let healthy = false
  /** What lies before the next read is not known. */
  let skipped = false
  let seq = 0
  let reads = 0
  let rows = 0

  function schedule(delayMs: number): void {
    if (reading || timer !== null || hearers.size === 0) return
    timer = setTimeout(() => {
      timer = null
      void readOnce()
    }, delayMs)
    timer.unref()
  }

  /** Never rejects. */
  async function readOnce(): Promise<void> {
    reading = true
    let delayMs = RETRY_MS
    try {
      const before = position
      const columns = columnsNow()
      const answer = await readLog(database, before?.snapshot ?? null, columns, READ_ROWS_MAX)
      reads++
      rows += answer.entries.length
      if (answer.entries.length > 0) foundAt = now()
      healthy = true
      take(before, answer, columns)
      for (const resolve of waiting.splice(0)) resolve()
      delayMs = now() - foundAt < IDLE_AFTER_MS ? READ_INTERVAL_MS : IDLE_READ_INTERVAL_MS
    } catch (error) {
      failed(error)
    } finally {
      reading = false
      if (hearers.size === 0) forget()
      else schedule(delayMs)
    }
  }

  function failed(error: unknown): void {
    healthy = false
    const state = error instanceof DatabaseError ? error.sqlstate : ''
    if (BROKEN.has(state)) onBroken()
    if (TOO_MUCH.has(state)) {
      position = null
      skipped = true
    }
    tellAll(hearer => hearer.silent())
  }

  function take(before: Position | null, answer: LogAnswer, columns: Columns): void {
    const { snapshot, forgotten } = answer
    const epoch = digestOf(answer.epoch)
    const isSame = before !== null && before.epoch === epoch && sameSnapshot(before.snapshot, snapshot)
    const token = isSame ? before.token : printToken(epoch, snapshot)
    position = { snapshot, epoch, token, forgotten }
    if (before === null) {
      // Not earlier: whoever reads its rows now misses nothing that comes after them.
      if (skipped) tellAll(hearer => hearer.doubt('too many changes'))
      skipped = false
      return
    }
    if (before.epoch !== epoch) tellAll(hearer => hearer.doubt('epoch'))
    // What was thrown away since the last read, it may not have seen.
    else if (forgotten !== before.forgotten && before.snapshot.xmin <= forgotten)
      tellAll(hearer => hearer.doubt('epoch'))
    else if (answer.entries.length > READ_ROWS_MAX) tellAll(hearer => hearer.doubt('too many changes'))
    else tell(answer.entries, columns, before.token, token)
  }

  function tell(entries: readonly LogEntry[], columns: Columns, from: string, to: string): void {
    for (const [table, ofTable] of byTable(entries)) {
      const column = columns.get(table) ?? null
      const changes = changesOf(ofTable.filter(isNamed), column, from, to)
      const bulk = ofTable.filter(entry => !isNamed(entry))
      for (const hearer of hearers.get(table) ?? []) {
        if (changes.length > 0) hearer.changed(changes)
        // Behind them: whoever reads again need not be told of what came before.
        if (bulk.length > 0) hearer.doubt('bulk', routesOfMany(bulk, column))
      }
    }
  }

  function changesOf(entries: readonly LogEntry[], column: string | null, from: string, to: string): readonly Change[] {
    const found = entries.flatMap(entry => changesOfEntry(entry, column, () => ++seq, from))
    return found.map((change, index) => (index === found.length - 1 ? { ...change, to } : change))
  }

  function columnsNow(): Columns {
    const columnOf = (of: ReadonlySet<LogHearer>) =>
      [...of].map(hearer => hearer.routeBy()).find(column => column !== null)
    return new Map([...hearers].map(([table, of]) => [table, columnOf(of) ?? null]))
  }

  function tellAll(how: (hearer: LogHearer) => void): void {
    for (const of of hearers.values()) for (const hearer of of) how(hearer)
  }

  function forget(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    position = null
    healthy = false
    skipped = false
  }

  return {
    hear(table, hearer) {
      const of = hearers.get(table) ?? new Set()
      hearers.set(table, of)
      of.add(hearer)
      const isHeard = position !== null && !reading
      const ready = isHeard ? Promise.resolve() : new Promise<void>(resolve => waiting.push(resolve))
      schedule(position === null ? 0 : READ_INTERVAL_MS)
      return {
        ready,
        close() {
          of.delete(hearer)
          if (of.size === 0) hearers.delete(table)
          if (hearers.size === 0 && !reading) forget()
        },
      }
    },
    token: () => position?.token ?? '',
    boundary(snapshot) {
      // A read that failed has the reader begin again: its hearers are told so.
      if (position === null) return createBoundary(snapshot, '')
      return createLogBoundary(covers(position.snapshot, snapshot) ? position.snapshot : snapshot, position.epoch)
    },
    async since(table, token) {
      if (position === null) return null
      const { epoch } = position
      if (token === position.token) return { changes: [], boundary: createLogBoundary(position.snapshot, epoch) }
      const snapshot = readToken(token, epoch)
      if (snapshot === null) return null
      const answer = await readLog(database, snapshot, new Map([[table, null]]), SINCE_ROWS_MAX).catch(tooMuchIsNull)
      if (answer === null || digestOf(answer.epoch) !== epoch || snapshot.xmin <= answer.forgotten) return null
      if (answer.entries.length > SINCE_ROWS_MAX || snapshot.xmax > answer.snapshot.xmax) return null
      const boundary = createLogBoundary(answer.snapshot, epoch)
      if (!answer.entries.every(isNamed)) return null
      return { changes: changesOf(answer.entries, null, token, boundary.token), boundary }
    },
    stats: () => ({ reading: healthy, reads, rows }),
    close() {
      hearers.clear()
      waiting = []
      forget()
    },
  }
}

const OPERATIONS: Readonly<Record<'I' | 'U' | 'D', Operation>> = { I: 'INSERT', U: 'UPDATE', D: 'DELETE' }

/** A row whose key became another is gone, and another is there. */
function changesOfEntry(
  { txid, at, operation, key, was, old, routes: [before, after] }: LogEntry,
  column: string | null,
  next: () => number,
  from: string,
): readonly Change[] {
  if (operation === 'B' || key === null) return []
  const base = { at, txid, assigned: null, from, to: from }
  const routes = (...values: readonly (string | null)[]): Routes | null =>
    column !== null && values.every(value => value !== null) ? { column, values } : null
  if (was !== null) {
    return [
      { ...base, seq: next(), operation: 'DELETE', key: was, before: old, routes: routes(before) },
      { ...base, seq: next(), operation: 'INSERT', key, before: null, routes: routes(after) },
    ]
  }
  const ends = { I: [after], U: [before, after], D: [before] }[operation]
  return [{ ...base, seq: next(), operation: OPERATIONS[operation], key, before: old, routes: routes(...ends) }]
}

/** Whether it says which row it is about. */
function isNamed({ operation, key }: LogEntry): boolean {
  return operation !== 'B' && key !== null && !hasNull(key)
}

/** Null: anybody. */
function routesOfMany(entries: readonly LogEntry[], column: string | null): Routes | null {
  if (column === null) return null
  const values: string[] = []
  for (const { operation, routes } of entries) {
    const [, written] = routes
    if (operation !== 'B' || written === null) return null
    const list = parseJsonBody(Buffer.from(written), Number.POSITIVE_INFINITY)
    if (list.kind !== 'array') return null
    values.push(...list.items.map(item => bytesOf(list, item).toString()))
  }
  return { column, values }
}

/** A column of the key that the trigger did not find: it was made for another key. */
function hasNull(key: string): boolean {
  return Object.values(JSON.parse(key) as Record<string, unknown>).includes(null)
}

function byTable(entries: readonly LogEntry[]): ReadonlyMap<string, readonly LogEntry[]> {
  const tables = new Map<string, LogEntry[]>()
  for (const entry of entries) {
    const known = tables.get(entry.table)
    if (known === undefined) tables.set(entry.table, [entry])
    else known.push(entry)
  }
  return tables
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
