/**
 * The latest changes of a table whose writes are reported by notifications, so that a client that was
 * briefly disconnected can resume (`since`). Kept in memory until the process ends.
 */
import { randomBytes } from 'node:crypto'
import type { ChangeEvent } from './change-event.ts'
import type { Routes } from './route.ts'

/** Limit on the changes kept per table. */
export const HISTORY_CHANGES_MAX = 1_000

/** Limit on the characters of their keys and rows. */
const HISTORY_CHARACTERS_MAX = 1024 * 1024

/** Limit on the invalidations for some callers. Beyond it, the oldest one is for all callers. */
const INVALIDATIONS_MAX = 1_000

/** The latest changes of one table. */
export interface History {
  /** The resume token of the current position. */
  token(): string
  tokenAt(seq: number): string
  next(): number
  add(changes: readonly ChangeEvent[]): void
  /**
   * Invalidates the earlier tokens of callers whom `routes` may concern, because something happened that is
   * not recorded as changes; null for all callers.
   */
  invalidate(routes: Routes | null): void
  /**
   * The changes since a token; null if they are not known. `mayConcern`: whether routes concern the caller.
   */
  since(token: string, mayConcern: (routes: Routes) => boolean): readonly ChangeEvent[] | null
}

/** A moment before which the tokens of some callers are invalid. */
interface Invalidation {
  readonly seq: number
  readonly routes: Routes
}

/** Creates an empty history with a new epoch. */
export function createHistory(): History {
  const epoch = randomBytes(6).toString('base64url')
  let last = 0
  /** All changes after this number are in the list. */
  let floor = 0
  let kept: ChangeEvent[] = []
  let characters = 0
  let invalidations: Invalidation[] = []

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
    invalidate(routes) {
      const seq = ++last
      if (routes !== null) {
        invalidations.push({ seq, routes })
        if (invalidations.length > INVALIDATIONS_MAX) floor = Math.max(floor, invalidations.shift()?.seq ?? 0)
        return
      }
      kept = []
      invalidations = []
      characters = 0
      floor = seq
    },
    since(token, mayConcern) {
      const dot = token.lastIndexOf('.')
      const seq = /^\d{1,15}$/.test(token.slice(dot + 1)) ? Number(token.slice(dot + 1)) : Number.NaN
      if (token.slice(0, dot) !== epoch || !(seq >= floor && seq <= last)) return null
      if (invalidations.some(one => one.seq > seq && mayConcern(one.routes))) return null
      return kept.filter(change => change.seq > seq)
    },
  }
}

function sizeOf({ key, before }: ChangeEvent): number {
  return key.length + (before?.length ?? 0)
}
