/**
 * Old row images of this gateway's own writes. They are never sent in a NOTIFY, which every database role can
 * receive: they are returned by the write and matched with the notification here, by transaction number.
 * Either can arrive first.
 */
import type { OldImages } from '../run/notifying-writes.ts'

/** Limit on the characters of all stored rows. The oldest are dropped first; a lookup then finds nothing. */
export const OLD_IMAGES_CHARACTERS_MAX: number = 16 * 1024 * 1024

/** Characters added for the overhead of a row and of an entry. */
const OVERHEAD_CHARACTERS = 200

/**
 * How long to wait for the images: the notification arrives with the commit, the write's result shortly
 * after.
 */
const WAIT_MS_MAX = 5_000

/** Stores old row images by transaction and table. */
export interface OldImageStore extends OldImages {
  /** The images by key; null if they did not arrive or were dropped. */
  of(txid: string, table: string): Promise<ReadonlyMap<string, string> | null>
  close(): void
}

interface StoredImages {
  readonly rows: Map<string, string>
  characters: number
}

/** Creates an empty store. `wants`: whether images of a table are needed. */
export function createOldImageStore(wants: (table: string) => boolean): OldImageStore {
  const kept = new Map<string, StoredImages>()
  const waiting = new Map<string, Set<(rows: ReadonlyMap<string, string> | null) => void>>()
  let characters = 0

  function drop(name: string, { characters: size }: StoredImages): void {
    characters -= size
    kept.delete(name)
  }

  return {
    wants,
    store(txid, table, rows) {
      const name = entryName(txid, table)
      // A write that changed no row sends no notification.
      if (rows.size === 0 && !waiting.has(name)) return
      const known: StoredImages = kept.get(name) ?? { rows: new Map(), characters: 0 }
      kept.set(name, known)
      let size = OVERHEAD_CHARACTERS
      for (const [key, row] of rows) {
        known.rows.set(key, row)
        size += OVERHEAD_CHARACTERS + key.length + row.length
      }
      known.characters += size
      characters += size
      for (const resolve of waiting.get(name) ?? []) resolve(known.rows)
      waiting.delete(name)
      for (const [oldest, entry] of kept) {
        if (characters <= OLD_IMAGES_CHARACTERS_MAX) break
        drop(oldest, entry)
      }
    },
    of(txid, table) {
      const name = entryName(txid, table)
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

function entryName(txid: string, table: string): string {
  return `${txid} ${table}`
}
