/**
 * The last changes of a table whose writes tell of themselves, so that a client that was away for a moment goes on where it was (`since`). In memory: it ends
 * with the process.
 */
import { randomBytes } from 'node:crypto'
import type { Change } from './change.ts'

/** Changes kept of a table. */
export const KEPT_MAX = 1_000

/** Their keys and rows together, as characters. */
const KEPT_CHARACTERS_MAX = 1024 * 1024

export interface History {
  /** The place in the history right now, to come back to. */
  token(): string
  tokenAt(seq: number): string
  next(): number
  add(changes: readonly Change[]): void
  /** Something happened that is in no list: nobody can come back to what was before. */
  forget(): void
  /** What happened since; null where that is not known. */
  since(token: string): readonly Change[] | null
}

export function createHistory(): History {
  const epoch = randomBytes(6).toString('base64url')
  let last = 0
  /** All that is after this one is in the list. */
  let floor = 0
  let kept: Change[] = []
  let characters = 0

  return {
    token: () => `${epoch}.${last}`,
    tokenAt: seq => `${epoch}.${seq}`,
    next: () => ++last,
    add(changes) {
      kept.push(...changes)
      characters += changes.reduce((sum, change) => sum + sizeOf(change), 0)
      while (kept.length > KEPT_MAX || characters > KEPT_CHARACTERS_MAX) {
        const dropped = kept.shift()
        if (dropped === undefined) break
        characters -= sizeOf(dropped)
        floor = dropped.seq
      }
    },
    forget() {
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

function sizeOf({ key, before }: Change): number {
  return key.length + (before?.length ?? 0)
}
