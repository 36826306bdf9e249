/**
 * The latest reads of the change log, so that clients that return soon do not read the log again: all long
 * polls that a change has ended continue from here.
 */
import type { LogEntry } from './log-statements.ts'
import { covers, type Snapshot } from './snapshot.ts'

/** Limit on the entries that are kept. */
export const RECENT_ENTRIES_MAX = 5_000

/** Limit on the characters of their keys and rows. */
const RECENT_CHARACTERS_MAX = 4 * 1024 * 1024

/** Limit on the reads that are kept, most of which have no entries. */
const RECENT_READS_MAX = 1_000

/** One read of the log. */
export interface RecentRead {
  /** The snapshots before and after it. */
  readonly from: Snapshot
  readonly to: Snapshot
  /** The tables that it covers, with the routing column that its entries have the values of. */
  readonly columns: ReadonlyMap<string, string | null>
  readonly entries: readonly LogEntry[]
}

/** The latest reads, each of which begins where the one before ends. */
export interface RecentEntries {
  add(read: RecentRead): void
  clear(): void
  /**
   * The entries of `tables` that a snapshot does not include, in order. Null if they are not all known, or
   * without the values of the routing columns of `tables`.
   */
  since(snapshot: Snapshot, tables: ReadonlyMap<string, string | null>): readonly LogEntry[] | null
}

/** Creates an empty list. */
export function createRecentEntries(): RecentEntries {
  let reads: RecentRead[] = []
  let entries = 0
  let characters = 0

  function drop(): void {
    const dropped = reads.shift()
    entries -= dropped?.entries.length ?? 0
    characters -= sizeOf(dropped?.entries ?? [])
  }

  return {
    add(read) {
      reads.push(read)
      entries += read.entries.length
      characters += sizeOf(read.entries)
      while (reads.length > RECENT_READS_MAX || entries > RECENT_ENTRIES_MAX || characters > RECENT_CHARACTERS_MAX)
        drop()
    },
    clear() {
      reads = []
      entries = 0
      characters = 0
    },
    since(snapshot, tables) {
      const last = reads.at(-1)
      // A position that was not reached yet may be one of another server.
      if (last === undefined || !covers(last.to, snapshot)) return null
      const first = reads.findLastIndex(({ from }) => covers(snapshot, from))
      if (first === -1) return null
      const needed = reads.slice(first)
      const hasAll = needed.every(({ columns }) =>
        [...tables].every(([table, column]) => knows(columns, table, column)),
      )
      if (!hasAll) return null
      const open = new Set(snapshot.open.map(String))
      const xmax = snapshot.xmax.toString()
      return needed.flatMap(read =>
        read.entries.filter(({ table, txid, storedBy }) => {
          const stored = storedBy ?? txid
          return tables.has(table) && (open.has(stored) || isFrom(stored, xmax))
        }),
      )
    },
  }
}

function knows(columns: ReadonlyMap<string, string | null>, table: string, column: string | null): boolean {
  return columns.has(table) && (column === null || columns.get(table) === column)
}

/** True if a transaction number is not below `xmax`. Compares texts, because it is called for every entry. */
function isFrom(txid: string, xmax: string): boolean {
  return txid.length === xmax.length ? txid >= xmax : txid.length > xmax.length
}

function sizeOf(entries: readonly LogEntry[]): number {
  return entries.reduce(
    (sum, { key, oldKey, old, routes }) => sum + [key, oldKey, old, ...routes].reduce(lengthen, 0),
    0,
  )
}

function lengthen(sum: number, text: string | null): number {
  return sum + (text?.length ?? 0)
}
