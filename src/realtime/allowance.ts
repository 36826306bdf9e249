/**
 * Limits the visibility queries that unrouted changes cause. Where a policy does not reveal which tenant a
 * change concerns, the subscriptions of every tenant must be checked; this bounds how often that happens for
 * one tenant, however often others write.
 */

/** The share of a second's allowance that may be used at once. */
const BURST = 0.1

/** A rate limit per owner. */
export interface Allowance {
  /** Takes one query for `owner`; returns the milliseconds until it may run. */
  take(owner: string): number
}

/** Creates an allowance of `perSecond` queries; 0 means no limit. `now` returns monotonic milliseconds. */
export function createAllowance(perSecond: number, now: () => number): Allowance {
  if (perSecond === 0) return { take: () => 0 }
  const intervalMs = 1_000 / perSecond
  const burstMs = Math.max(0, Math.ceil(perSecond * BURST) - 1) * intervalMs
  /** When the next query of each owner would be due at an even rate; only owners that are ahead of it. */
  const dueAt = new Map<string, number>()
  let cleanedAt = now()

  function clean(at: number): void {
    if (at - cleanedAt < 1_000) return
    cleanedAt = at
    for (const [owner, due] of dueAt) if (due <= at) dueAt.delete(owner)
  }

  return {
    take(owner) {
      const at = now()
      clean(at)
      const due = Math.max(at, dueAt.get(owner) ?? at)
      dueAt.set(owner, due + intervalMs)
      return Math.max(0, due - burstMs - at)
    },
  }
}
