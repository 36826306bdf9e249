/**
 * Rows as they were before our own writes changed them. They are never told of in a NOTIFY, which every role of the database may hear: they come back with
 * the answer of the write, and meet the notification here, by the number of their transaction. Either may come first.
 */
import type { RowsBefore } from '../run/announcements.ts'

/** All rows kept, as characters; the oldest go first, and whoever asks for them does without. */
export const KEPT_CHARACTERS_MAX: number = 16 * 1024 * 1024

/** What a row and what an entry take besides. */
const AROUND_CHARACTERS = 200

/** A notification comes with the commit, and the answer of the write not long after. */
const WAIT_MS_MAX = 5_000

export interface RowsBeforeStore extends RowsBefore {
  /** Null: they did not come, or did not stay. */
  of(txid: string, table: string): Promise<ReadonlyMap<string, string> | null>
  close(): void
}

interface Kept {
  readonly rows: Map<string, string>
  characters: number
}

export function createRowsBefore(wants: (table: string) => boolean): RowsBeforeStore {
  const kept = new Map<string, Kept>()
  const waiting = new Map<string, Set<(rows: ReadonlyMap<string, string> | null) => void>>()
  let characters = 0

  function drop(name: string, { characters: size }: Kept): void {
    characters -= size
    kept.delete(name)
  }

  return {
    wants,
    learn(txid, table, rows) {
      const name = nameOf(txid, table)
      // A write that hit no row is not told of.
      if (rows.size === 0 && !waiting.has(name)) return
      const known: Kept = kept.get(name) ?? { rows: new Map(), characters: 0 }
      kept.set(name, known)
      let size = AROUND_CHARACTERS
      for (const [key, row] of rows) {
        known.rows.set(key, row)
        size += AROUND_CHARACTERS + key.length + row.length
      }
      known.characters += size
      characters += size
      for (const resolve of waiting.get(name) ?? []) resolve(known.rows)
      waiting.delete(name)
      for (const [oldest, entry] of kept) {
        if (characters <= KEPT_CHARACTERS_MAX) break
        drop(oldest, entry)
      }
    },
    of(txid, table) {
      const name = nameOf(txid, table)
      const known = kept.get(name)
      if (known !== undefined) return Promise.resolve(known.rows)
      return new Promise(resolve => {
        const waiters = waiting.get(name) ?? new Set()
        waiting.set(name, waiters)
        const settle = (rows: ReadonlyMap<string, string> | null): void => {
          clearTimeout(timer)
          waiters.delete(settle)
          if (waiters.size === 0) waiting.delete(name)
          resolve(rows)
        }
        const timer = setTimeout(() => settle(null), WAIT_MS_MAX)
        waiters.add(settle)
      })
    },
    close() {
      for (const waiters of waiting.values()) for (const settle of [...waiters]) settle(null)
    },
  }
}

function nameOf(txid: string, table: string): string {
  return `${txid} ${table}`
}
