/**
 * The limit on concurrent requests of a tenant: a number of permits each
 * (docs/reference/limits.md#concurrent-requests-of-a-tenant). A request without a permit is refused
 * immediately.
 */

/** Counts permits. */
export interface TenantLimit {
  /**
   * Takes a permit; false if none is left. The answer is a promise if the permits are counted in another
   * process.
   */
  enter(caller: LimitedCaller): boolean | Promise<boolean>
  /** Takes a permit even if none is left, for a response that is still being sent. */
  hold(caller: LimitedCaller): void
  /** Returns a permit: once for each `enter` that returned true, and for each `hold`. */
  leave(caller: LimitedCaller): void
}

/** A limit of this process alone. */
export interface LocalTenantLimit extends TenantLimit {
  enter(caller: LimitedCaller): boolean
}

/** The caller; fields are empty where the token has none. */
export interface LimitedCaller {
  readonly tenantId: string
  readonly userId: string
}

/**
 * Creates a limit of `permits` for each tenant, and for each user without a tenant; callers without either
 * share theirs. 0 means no limit, and returns null.
 */
export function createTenantLimit(permits: number): LocalTenantLimit | null {
  if (permits === 0) return null
  // Contains only callers with a running request, so it is bounded by the number of requests.
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
