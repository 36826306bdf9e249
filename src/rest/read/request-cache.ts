/**
 * Caches the result of parsing whole requests. When rows come from the result cache, parsing would be a large
 * part of the remaining work.
 */
import type { PlanCache, PlanKind, Plans } from '../../compile/plans.ts'

/** Limit on the length of a cached request. */
export const REQUEST_CHARACTERS_MAX = 1_024

/** A cache keyed by the whole request. `charactersOf` is the size of a parsed request. */
export function createRequestCache<T extends object>(
  plans: PlanCache,
  kind: PlanKind,
  charactersOf: (of: T) => number,
): Plans<T> {
  const kept = plans.plans(kind, charactersOf)
  return {
    of: (owner, view, request, make) =>
      request.length > REQUEST_CHARACTERS_MAX ? make() : kept.of(owner, view, request, make),
  }
}
