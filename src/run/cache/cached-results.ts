/**
 * The cached results by key: limited in number and bytes, least recently used dropped first
 * (docs/guides/caching.md#size).
 */
import { LRUCache } from 'lru-cache'
import type { ResultRow, RunningRead } from '../run.ts'
import type { RelationChange } from './change-clock.ts'

/** Limit on the bytes of all results with their keys; `max_entries` does not account for large ones. */
export const WEIGHT_MAX: number = 128 * 1024 * 1024

/** Limit on the bytes of one result: very large pages would displace many ordinary results. */
export const ONE_WEIGHT_MAX: number = 1024 * 1024

const POINTER_WEIGHT = 8

/** Approximate overhead of an entry, a row and a cell. */
const ENTRY_WEIGHT = 512
const ROW_WEIGHT = 32
const CELL_WEIGHT = 96

/** A cached result. */
export interface CacheEntry {
  /** The result in the form in which it is returned. */
  readonly reading: RunningRead
  /** The change clock when its read began. */
  readonly moment: number
  /** The changes of the relations it was read from. */
  readonly changes: readonly RelationChange[]
  /** When it expires, in milliseconds. */
  readonly until: number
}

/** The cached results. */
export interface CachedResults {
  get(key: string): CacheEntry | undefined
  /** Returns false if the result is too large. */
  keep(key: string, results: Results, about: Omit<CacheEntry, 'reading'>): boolean
  remove(key: string): void
  clear(): void
  readonly entries: number
  readonly weight: number
}

/** The rows of each statement of a read. */
export type Results = readonly (readonly ResultRow[])[]

/** Creates an empty cache. */
export function createCachedResults(entriesMax: number, weightMax: number = WEIGHT_MAX): CachedResults {
  const kept = new LRUCache<string, CacheEntry>({ maxSize: weightMax })
  return {
    get: key => kept.get(key),
    keep(key, results, about) {
      const weight = ENTRY_WEIGHT + 2 * key.length + POINTER_WEIGHT * about.changes.length + weightOf(results)
      if (weight > ONE_WEIGHT_MAX) return false
      const copy = copyOf(results)
      const reading = { result: Promise.resolve(copy), cancel() {}, kept: copy }
      kept.set(key, { ...about, reading }, { size: weight + responseWeightOf(results) })
      // Not the library's own `max`, which would preallocate memory for all entries.
      while (kept.size > entriesMax) kept.pop()
      return true
    },
    remove: key => void kept.delete(key),
    clear: () => kept.clear(),
    get entries() {
      return kept.size
    },
    get weight() {
      return kept.calculatedSize
    },
  }
}

function weightOf(results: Results): number {
  let weight = 0
  for (const rows of results) {
    for (const row of rows) {
      weight += ROW_WEIGHT
      for (const cell of row) weight += CELL_WEIGHT + (cell?.length ?? 0)
    }
  }
  return weight
}

/** A single row is also stored in the form in which it is sent. */
function responseWeightOf([rows, ...others]: Results): number {
  return rows?.length === 1 && others.length === 0 ? weightOf([rows]) : 0
}

/**
 * Copied, because cells are views of what was read from the socket, and a small one would keep all of that in
 * memory.
 */
function copyOf(results: Results): Results {
  return results.map(rows => {
    const size = rows.reduce((sum, row) => row.reduce((all, cell) => all + (cell?.length ?? 0), sum), 0)
    const memory = Buffer.allocUnsafeSlow(size)
    let at = 0
    return rows.map(row =>
      row.map(cell => {
        if (cell === null) return null
        const start = at
        at += cell.copy(memory, start)
        return memory.subarray(start, at)
      }),
    )
  })
}
