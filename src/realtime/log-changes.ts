/** Converts entries of the change log to changes. */

import type { ChangeOperation } from '../compile/row-images.ts'
import { parseJsonBody, partBytes } from '../json/json-body.ts'
import type { ChangeEvent } from './change-event.ts'
import type { LogEntry } from './log-statements.ts'
import type { Routes } from './route.ts'

/**
 * The changes of entries that name their row. `next` numbers them. The last one ends at token `to`, the
 * others at the token where all of them begin.
 */
export function changesOf(
  entries: readonly LogEntry[],
  column: string | null,
  next: () => number,
  from: string,
  to: string,
): readonly ChangeEvent[] {
  const found = entries.flatMap(entry => changesOfEntry(entry, column, next, from))
  return found.map((change, index) => (index === found.length - 1 ? { ...change, to } : change))
}

/** True if an entry names its row. */
export function isNamed({ operation, key }: LogEntry): boolean {
  return operation !== 'B' && key !== null && !hasNull(key)
}

/** The routes of bulk entries; null if they may concern any group. */
export function routesOfMany(entries: readonly LogEntry[], column: string | null): Routes | null {
  if (column === null) return null
  const values: string[] = []
  for (const { operation, routes: routesFor } of entries) {
    const [, written] = routesFor
    if (operation !== 'B' || written === null) return null
    const list = parseJsonBody(Buffer.from(written), Number.POSITIVE_INFINITY)
    if (list.kind !== 'array') return null
    values.push(...list.items.map(item => partBytes(list, item).toString()))
  }
  return { column, values }
}

/** The routes of one entry; null if it may concern any group. */
export function routesOfEntry(entry: LogEntry, column: string): Routes | null {
  const { operation, routes: ends } = entry
  if (operation === 'B') return routesOfMany([entry], column)
  const values: readonly (string | null)[] = { I: ends.slice(1), U: ends, D: ends.slice(0, 1) }[operation]
  return values.every(value => value !== null) ? { column, values } : null
}

/** True if a key column was not found by the trigger, which was created for a different key. */
function hasNull(key: string): boolean {
  return Object.values(JSON.parse(key) as Record<string, unknown>).includes(null)
}

/** Groups entries by table. */
export function byTable(entries: readonly LogEntry[]): ReadonlyMap<string, readonly LogEntry[]> {
  const tables = new Map<string, LogEntry[]>()
  for (const entry of entries) {
    const known = tables.get(entry.table)
    if (known === undefined) tables.set(entry.table, [entry])
    else known.push(entry)
  }
  return tables
}

const OPERATIONS: Readonly<Record<'I' | 'U' | 'D', ChangeOperation>> = { I: 'INSERT', U: 'UPDATE', D: 'DELETE' }

/** A change of a row's key is a deletion followed by an insertion. */
function changesOfEntry(
  { txid, storedBy, at, operation, key, oldKey, old, routes: [before, after] }: LogEntry,
  column: string | null,
  next: () => number,
  from: string,
): readonly ChangeEvent[] {
  if (operation === 'B' || key === null) return []
  const base = { at, txid, storedBy, assigned: null, from, to: from }
  const routes = (...values: readonly (string | null)[]): Routes | null =>
    column !== null && values.every(value => value !== null) ? { column, values } : null
  if (oldKey !== null) {
    return [
      { ...base, seq: next(), operation: 'DELETE', key: oldKey, before: old, routes: routes(before) },
      { ...base, seq: next(), operation: 'INSERT', key, before: null, routes: routes(after) },
    ]
  }
  const ends = { I: [after], U: [before, after], D: [before] }[operation]
  return [{ ...base, seq: next(), operation: OPERATIONS[operation], key, before: old, routes: routes(...ends) }]
}
