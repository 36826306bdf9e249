/** Keeps what was worked out for a shape of request, so that the next request of the shape only fills in its values. */
import type { Statement } from '../compile/statement.ts'
import { type ByCatalog, createByCatalog } from './by-catalog.ts'

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

/** Plans by the shape of their request. */
export function createPlans<T extends Plan>(): ByCatalog<T> {
  return createByCatalog<T>({
    max: PLANS_MAX,
    maxSize: PLAN_CHARACTERS_MAX,
    maxEntrySize: ONE_PLAN_CHARACTERS_MAX,
    sizeCalculation: ({ statements }, key) =>
      statements.reduce((sum, statement) => sum + statement.text.length, key.length),
  })
}
