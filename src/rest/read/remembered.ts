/**
 * What whole requests came to, for those that are asked again and again: where answers are kept, taking a request apart would be a good part of what is left to
 * do.
 */
import type { PlanCache, PlanKind, Plans } from '../../compile/plans.ts'

/** A longer request is not remembered. */
export const REQUEST_CHARACTERS_MAX = 1_024

/** By the whole request. `charactersOf`: of what it came to. */
export function createRemembered<T extends object>(
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
