/** What the entries of the change log say: which rows changed, and whom that concerns. */
import { bytesOf, parseJsonBody } from '../json/json-body.ts'
import type { Change, Operation } from './change.ts'
import type { LogEntry } from './log-statements.ts'
import type { Routes } from './route.ts'

/** `next`: numbers them. The last one ends at `to`, the others where all of them begin. */
export function changesOf(
  entries: readonly LogEntry[],
  column: string | null,
  next: () => number,
  from: string,
  to: string,
): readonly Change[] {
  const found = entries.flatMap(entry => changesOfEntry(entry, column, next, from))
  return found.map((change, index) => (index === found.length - 1 ? { ...change, to } : change))
}

/** Whether it says which row it is about. */
export function isNamed({ operation, key }: LogEntry): boolean {
  return operation !== 'B' && key !== null && !hasNull(key)
}

/** Null: anybody. */
export function routesOfMany(entries: readonly LogEntry[], column: string | null): Routes | null {
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

export function byTable(entries: readonly LogEntry[]): ReadonlyMap<string, readonly LogEntry[]> {
  const tables = new Map<string, LogEntry[]>()
  for (const entry of entries) {
    const known = tables.get(entry.table)
    if (known === undefined) tables.set(entry.table, [entry])
    else known.push(entry)
  }
  return tables
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
