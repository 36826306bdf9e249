/**
 * Paces the visibility queries of all groups, with fair shares: a tenant with many groups waits for its own.
 */

/** Minimum interval between two queries of a group, during which changes accumulate into one query. */
const QUERY_INTERVAL_MS_MIN = 25

/**
 * Limit on the visibility queries of all groups per second, shared by the owners that have changes to read.
 */
const QUERIES_PER_SECOND_MAX = 1_000

/** Determines how often a group may query. */
export interface QueryPacing {
  /**
   * Registers a group with changes to read; returns the interval between two of its queries in milliseconds.
   */
  enter(owner: string): number
  leave(owner: string): void
}

export function createQueryPacing(): QueryPacing {
  const busy = new Map<string, number>()
  return {
    enter(owner) {
      const groups = (busy.get(owner) ?? 0) + 1
      busy.set(owner, groups)
      return Math.max(QUERY_INTERVAL_MS_MIN, ((groups * busy.size) / QUERIES_PER_SECOND_MAX) * 1_000)
    },
    leave(owner) {
      const groups = (busy.get(owner) ?? 1) - 1
      if (groups === 0) busy.delete(owner)
      else busy.set(owner, groups)
    },
  }
}
