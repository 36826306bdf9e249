/**
 * The latest changes of a table whose writes are announced by notifications, so that a client that was
 * briefly disconnected can resume (`since`). Kept in memory until the process ends.
 */
import { randomBytes } from 'node:crypto'
import type { ChangeEvent } from './change-event.ts'

/** Limit on the changes kept per table. */
export const HISTORY_CHANGES_MAX = 1_000

/** Limit on the characters of their keys and rows. */
const HISTORY_CHARACTERS_MAX = 1024 * 1024

/** The latest changes of one table. */
export interface History {
  /** The resume token of the current position. */
  token(): string
  tokenAt(seq: number): string
  next(): number
  add(changes: readonly ChangeEvent[]): void
  /** Invalidates all earlier tokens, because something happened that is not recorded as changes. */
  invalidate(): void
  /** The changes since a token; null if they are not known. */
  since(token: string): readonly ChangeEvent[] | null
}

/** Creates an empty history with a new epoch. */
export function createHistory(): History {
  const epoch = randomBytes(6).toString('base64url')
  let last = 0
  /** All changes after this number are in the list. */
  let floor = 0
  let kept: ChangeEvent[] = []
  let characters = 0

  return {
    token: () => `${epoch}.${last}`,
    tokenAt: seq => `${epoch}.${seq}`,
    next: () => ++last,
    add(changes) {
      kept.push(...changes)
      characters += changes.reduce((sum, change) => sum + sizeOf(change), 0)
      while (kept.length > HISTORY_CHANGES_MAX || characters > HISTORY_CHARACTERS_MAX) {
        const dropped = kept.shift()
        if (dropped === undefined) break
        characters -= sizeOf(dropped)
        floor = dropped.seq
      }
    },
    invalidate() {
      kept = []
      characters = 0
      floor = ++last
    },
    since(token) {
      const dot = token.lastIndexOf('.')
      const seq = /^\d{1,15}$/.test(token.slice(dot + 1)) ? Number(token.slice(dot + 1)) : Number.NaN
      if (token.slice(0, dot) !== epoch || !(seq >= floor && seq <= last)) return null
      return kept.filter(change => change.seq > seq)
    },
  }
}

function sizeOf({ key, before }: ChangeEvent): number {
  return key.length + (before?.length ?? 0)
}
