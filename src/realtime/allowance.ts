/**
 * What changes of unknown tenants may cost. Where a policy does not say whom a change concerns, every tenant's subscriptions have to be checked; this bounds how
 * often that happens for one of them, however often the others write.
 */

/** Of a second's number, how many may come at once. */
const BURST = 0.1

export interface Allowance {
  /** Takes one for `owner`; answers the milliseconds until it may be used. */
  take(owner: string): number
}

/** `perSecond` 0: no limit. `now`: milliseconds, monotonic. */
export function createAllowance(perSecond: number, now: () => number): Allowance {
  if (perSecond === 0) return { take: () => 0 }
  const intervalMs = 1_000 / perSecond
  const burstMs = Math.max(0, Math.ceil(perSecond * BURST) - 1) * intervalMs
  /** When the next one of each would be due if they came evenly; of those who are ahead of that alone. */
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
