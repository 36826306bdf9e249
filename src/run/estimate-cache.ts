/** Caches estimates by statement text and the caller's role. */
import { LRUCache } from 'lru-cache'
import type { Estimate } from './estimate.ts'

/** Lifetime in milliseconds: data, statistics and indexes change. */
export const ESTIMATE_TTL_MS = 60_000

/** Limits on the cached texts, which depend on callers. As many as plans are cached. */
const TEXTS_MAX = 2_000
const TEXT_CHARACTERS_MAX = 32 * 1024 * 1024
/** Longer texts are estimated every time. */
const ONE_TEXT_CHARACTERS_MAX = 128 * 1024
/** Limit on the roles per text. Roles come from tokens, so usually there are few. */
const ROLES_MAX = 100
/** Longer roles are estimated every time. */
const ROLE_CHARACTERS_MAX = 256

/** The cache. */
export interface EstimateCache {
  /** The estimate of the last minute, the largest if there were several; undefined without one. */
  find(text: string, role: string): Estimate | undefined
  keep(text: string, role: string, estimate: Estimate): void
}

interface CachedEstimates {
  readonly estimate: Estimate
  readonly until: number
}

/** Creates an empty cache. `now` returns monotonic milliseconds. */
export function createEstimateCache(now: () => number): EstimateCache {
  const kept = new LRUCache<string, Map<string, CachedEstimates>>({
    max: TEXTS_MAX,
    maxSize: TEXT_CHARACTERS_MAX,
    maxEntrySize: ONE_TEXT_CHARACTERS_MAX,
    sizeCalculation: (_, text) => text.length + 1,
  })
  const find = (text: string, role: string): CachedEstimates | undefined => {
    const found = kept.get(text)?.get(role)
    return found !== undefined && found.until > now() ? found : undefined
  }
  return {
    find: (text, role) => find(text, role)?.estimate,
    keep(text, role, estimate) {
      if (role.length > ROLE_CHARACTERS_MAX || text.length >= ONE_TEXT_CHARACTERS_MAX) return
      const before = find(text, role)
      const byRole = kept.get(text) ?? new Map<string, CachedEstimates>()
      byRole.delete(role)
      // The largest, so that one caller's harmless values do not allow the expensive values of the next.
      byRole.set(role, {
        estimate: before === undefined ? estimate : larger(before.estimate, estimate),
        until: before?.until ?? now() + ESTIMATE_TTL_MS,
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
