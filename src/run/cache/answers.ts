/** The cached answers by their keys: limited in number and bytes, least recently used first out (docs/guides/caching.md#size). */
import { LRUCache } from 'lru-cache'
import type { Reading, Row } from '../run.ts'
import type { Change } from './changes.ts'

/** All of them together, with their keys: an answer may be large, and `max_entries` does not see it. */
export const WEIGHT_MAX: number = 128 * 1024 * 1024

/** A larger answer is not kept: one caller's giant pages would push out everybody's ordinary ones. */
export const ONE_WEIGHT_MAX: number = 1024 * 1024

const POINTER_WEIGHT = 8

/** What entry, row and cell cost beside their bytes: the objects around them, roughly. */
const ENTRY_WEIGHT = 512
const ROW_WEIGHT = 32
const CELL_WEIGHT = 96

export interface Kept {
  /** Ready to be handed out. */
  readonly reading: Reading
  /** The clock of changes when its read began. */
  readonly moment: number
  /** What it was read from. */
  readonly changes: readonly Change[]
  /** Milliseconds: when it is too old. */
  readonly until: number
}

export interface Answers {
  get(key: string): Kept | undefined
  /** False: it is too large. */
  keep(key: string, results: Results, about: Omit<Kept, 'reading'>): boolean
  remove(key: string): void
  clear(): void
  readonly entries: number
  readonly weight: number
}

export type Results = readonly (readonly Row[])[]

export function createAnswers(entriesMax: number): Answers {
  const kept = new LRUCache<string, Kept>({ maxSize: WEIGHT_MAX })
  return {
    get: key => kept.get(key),
    keep(key, results, about) {
      const weight = ENTRY_WEIGHT + 2 * key.length + POINTER_WEIGHT * about.changes.length + weightOf(results)
      if (weight > ONE_WEIGHT_MAX) return false
      const copy = copyOf(results)
      const reading = { result: Promise.resolve(copy), cancel() {}, kept: copy }
      kept.set(key, { ...about, reading }, { size: weight + sentWeightOf(results) })
      // Not the library's own `max`, for which it would lay out room for all of them at once.
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

/** Whoever answers one row keeps it ready to be sent besides. */
function sentWeightOf([rows, ...others]: Results): number {
  return rows?.length === 1 && others.length === 0 ? weightOf([rows]) : 0
}

/** In memory of its own: cells are parts of what was read from the socket, and a small one would hold on to all of that. */
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
