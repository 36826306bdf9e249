/** An amount that is shared: a limit on all of it, and a lower one on the part of any single holder. */

export interface BudgetOptions {
  /** 0: no limit. */
  readonly max: number
  /** For a single holder. 0: no limit. */
  readonly shareMax: number
}

/** Which of the two limits has been reached. */
export type Exceeded = 'total' | 'share'

export interface Budget<Holder> {
  /**
   * Null: `holder` may take more. What is taken then may exceed the limit, by one amount at most. `ofHolder` and `ofAll` are amounts that count besides, and are
   * kept elsewhere.
   */
  exceeded(holder: Holder, ofHolder?: number, ofAll?: number): Exceeded | null
  take(holder: Holder, amount: number): void
  /** Gives back what was taken. */
  give(holder: Holder, amount: number): void
  readonly taken: number
  takenBy(holder: Holder): number
  /** Counts a refusal; kept here so that every limit has its count beside it. */
  refuse(limit: Exceeded): void
  readonly refusals: Readonly<Record<Exceeded, number>>
}

/** A holder is compared as the key of a `Map`; null has no share and counts towards the total only. */
export function createBudget<Holder extends string | number>({ max, shareMax }: BudgetOptions): Budget<Holder | null> {
  const total = max === 0 ? Number.POSITIVE_INFINITY : max
  const share = shareMax === 0 ? Number.POSITIVE_INFINITY : shareMax
  // Of those who hold something now.
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

/** A tenant, or a user without a tenant, as the holder of a share. */
export function callerKey({ tenantId, userId }: { readonly tenantId: string; readonly userId: string }): string {
  return tenantId === '' ? `user ${userId}` : `tenant ${tenantId}`
}
