/** Keeps what statements were estimated to take, by their text and the caller's role. */
import { LRUCache } from 'lru-cache'
import type { Estimate } from './estimate.ts'

/** Milliseconds: the data, its statistics and its indexes change meanwhile. */
export const KEPT_MS = 60_000

/** Texts are made by callers, so there is an end to them. As many as plans are kept. */
const TEXTS_MAX = 2_000
const TEXT_CHARACTERS_MAX = 32 * 1024 * 1024
/** A longer text is estimated whenever it is asked. */
const ONE_TEXT_CHARACTERS_MAX = 128 * 1024
/** Of one text. Roles come from tokens: few, unless somebody makes them up. */
const ROLES_MAX = 100
/** Whoever has a longer one is estimated whenever they ask. */
const ROLE_CHARACTERS_MAX = 256

export interface Estimates {
  /** What was found in the last minute, the largest if it was found again; undefined when nothing was. */
  find(text: string, role: string): Estimate | undefined
  keep(text: string, role: string, estimate: Estimate): void
}

interface Kept {
  readonly estimate: Estimate
  readonly until: number
}

/** `now`: milliseconds, monotonic. */
export function createEstimates(now: () => number): Estimates {
  const kept = new LRUCache<string, Map<string, Kept>>({
    max: TEXTS_MAX,
    maxSize: TEXT_CHARACTERS_MAX,
    maxEntrySize: ONE_TEXT_CHARACTERS_MAX,
    sizeCalculation: (_, text) => text.length + 1,
  })
  const find = (text: string, role: string): Kept | undefined => {
    const found = kept.get(text)?.get(role)
    return found !== undefined && found.until > now() ? found : undefined
  }
  return {
    find: (text, role) => find(text, role)?.estimate,
    keep(text, role, estimate) {
      if (role.length > ROLE_CHARACTERS_MAX || text.length >= ONE_TEXT_CHARACTERS_MAX) return
      const before = find(text, role)
      const byRole = kept.get(text) ?? new Map<string, Kept>()
      byRole.delete(role)
      // The largest: one caller's harmless values must not open the way for the next one's.
      byRole.set(role, {
        estimate: before === undefined ? estimate : larger(before.estimate, estimate),
        until: before?.until ?? now() + KEPT_MS,
      })
      const [oldest] = byRole.keys()
      if (byRole.size > ROLES_MAX && oldest !== undefined) byRole.delete(oldest)
      if (!kept.has(text)) kept.set(text, byRole)
    },
  }
}

function larger(a: Estimate, b: Estimate): Estimate {
  return { cost: Math.max(a.cost, b.cost), rows: Math.max(a.rows, b.rows) }
}
