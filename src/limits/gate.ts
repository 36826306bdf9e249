/** Concurrent requests of one tenant: a number of permits for each (docs/reference/limits.md#concurrent-requests-of-a-tenant). A request that finds none left does not wait. */

export interface Gate {
  /** Takes a permit; false when there is none left. */
  enter(caller: GateCaller): boolean
  /** Takes a permit even when there is none left: for an answer that is still being sent. */
  hold(caller: GateCaller): void
  /** Gives a permit back: once for each time that `enter` was true, and for each `hold`. */
  leave(caller: GateCaller): void
}

/** Empty where there is none. */
export interface GateCaller {
  readonly tenantId: string
  readonly userId: string
}

/** `permits`: for each tenant, and for each user who has no tenant; all who have neither share theirs. 0 is no limit, and null. */
export function createGate(permits: number): Gate | null {
  if (permits === 0) return null
  // Only of callers who have a request running, so no larger than the number of requests.
  const byTenant = new Map<string, number>()
  const byUser = new Map<string, number>()
  return {
    enter({ tenantId, userId }) {
      const taken = tenantId === '' ? byUser : byTenant
      const name = tenantId === '' ? userId : tenantId
      const count = taken.get(name) ?? 0
      if (count >= permits) return false
      taken.set(name, count + 1)
      return true
    },
    hold({ tenantId, userId }) {
      const taken = tenantId === '' ? byUser : byTenant
      const name = tenantId === '' ? userId : tenantId
      taken.set(name, (taken.get(name) ?? 0) + 1)
    },
    leave({ tenantId, userId }) {
      const taken = tenantId === '' ? byUser : byTenant
      const name = tenantId === '' ? userId : tenantId
      const count = taken.get(name) ?? 0
      if (count > 1) taken.set(name, count - 1)
      else taken.delete(name)
    },
  }
}
