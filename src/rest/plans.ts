/** Keeps what was worked out for a shape of request, so that the next request of the shape only fills in its values. */
import { LRUCache } from 'lru-cache'
import type { View } from '../access/rights.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Statement } from '../run/statement.ts'

/** Plans kept by the shape of their request. Shapes are made by callers, so there is an end to them. */
const PLANS_MAX = 2_000

/** All keys and statements together: the statement of a short request that embeds a lot may be a thousand times as long. */
const PLAN_CHARACTERS_MAX = 32 * 1024 * 1024

/** A plan larger than this is not kept: one caller's giant shapes would push out everybody's ordinary ones. */
const ONE_PLAN_CHARACTERS_MAX = 128 * 1024

export interface Plan {
  /** What it was printed as: its size. */
  readonly statements: readonly Statement[]
}

export interface Plans<T extends Plan> {
  /** The plan of a shape for callers who see this; `make` is called for one not seen before, and what it throws is not kept. */
  of(view: View, shape: string, make: () => T): T
}

/** Plans belong to the catalogue they were checked against: a new one begins with none. */
export function createPlans<T extends Plan>(): Plans<T> {
  const known = new WeakMap<Catalog, LRUCache<string, T>>()
  const plansOf = (catalog: Catalog): LRUCache<string, T> => {
    const found = known.get(catalog)
    if (found !== undefined) return found
    const plans = new LRUCache<string, T>({
      max: PLANS_MAX,
      maxSize: PLAN_CHARACTERS_MAX,
      maxEntrySize: ONE_PLAN_CHARACTERS_MAX,
      sizeCalculation: ({ statements }, key) =>
        statements.reduce((sum, statement) => sum + statement.text.length, key.length),
    })
    known.set(catalog, plans)
    return plans
  }
  return {
    of({ catalog, rights }, shape, make) {
      const plans = plansOf(catalog)
      const key = rights.key + shape
      const found = plans.get(key)
      if (found !== undefined) return found
      const plan = make()
      plans.set(key, plan)
      return plan
    },
  }
}
