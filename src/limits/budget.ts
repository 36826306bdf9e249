/** A shared budget: a limit on the total, and a lower one on the share of each holder. */

/** The limits. */
export interface BudgetOptions {
  /** Limit on the total; 0 means none. */
  readonly max: number
  /** Limit on one holder's share; 0 means none. */
  readonly shareMax: number
}

/** The limit that has been reached. */
export type Exceeded = 'total' | 'share'

/** A budget. */
export interface Budget<Holder> {
  /**
   * Which limit has been reached; null if `holder` may take more. A take may exceed the limit, by one amount
   * at most. `ofHolder` and `ofAll` are further amounts that are counted elsewhere.
   */
  exceeded(holder: Holder, ofHolder?: number, ofAll?: number): Exceeded | null
  take(holder: Holder, amount: number): void
  /** Returns what was taken. */
  give(holder: Holder, amount: number): void
  readonly taken: number
  takenBy(holder: Holder): number
  /** Counts a refusal. */
  refuse(limit: Exceeded): void
  readonly refusals: Readonly<Record<Exceeded, number>>
}

/** Creates a budget. A holder is a key of a `Map`; null has no share and counts only towards the total. */
export function createBudget<Holder extends string | number>({ max, shareMax }: BudgetOptions): Budget<Holder | null> {
  const total = max === 0 ? Number.POSITIVE_INFINITY : max
  const share = shareMax === 0 ? Number.POSITIVE_INFINITY : shareMax
  // Only current holders.
  const shares = new Map<Holder, number>()
  const refusals = { total: 0, share: 0 }
  let taken = 0

  function add(holder: Holder | null, amount: number): void {
    taken += amount
    if (holder === null) return
    const held = (shares.get(holder) ?? 0) + amount
    if (held > 0) shares.set(holder, held)
    else shares.delete(holder)
  }

  function takenBy(holder: Holder | null): number {
    return holder === null ? 0 : (shares.get(holder) ?? 0)
  }

  return {
    exceeded(holder, ofHolder = 0, ofAll = 0) {
      if (holder !== null && takenBy(holder) + ofHolder >= share) return 'share'
      return taken + ofAll >= total ? 'total' : null
    },
    take: add,
    give: (holder, amount) => add(holder, -amount),
    get taken() {
      return taken
    },
    takenBy,
    refuse(limit) {
      refusals[limit] += 1
    },
    refusals,
  }
}

/** The holder for a caller: a tenant, or a user without a tenant. */
export function callerKey({ tenantId, userId }: { readonly tenantId: string; readonly userId: string }): string {
  return tenantId === '' ? `user ${userId}` : `tenant ${tenantId}`
}
