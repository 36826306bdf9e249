/** How often groups may look at the database, all together and in fair shares: a tenant with many groups waits for its own. */

/** Between two looks of a group at least: many changes are one statement, and nobody notices the wait. */
const LOOK_INTERVAL_MS_MIN = 25

/** Looks of all groups together, shared by the owners that have something to look at. */
const LOOKS_PER_SECOND_MAX = 1_000

export interface Crowd {
  /** The group has something to look at; the interval between two of its looks. */
  enter(owner: string): number
  leave(owner: string): void
}

export function createCrowd(): Crowd {
  const busy = new Map<string, number>()
  return {
    enter(owner) {
      const groups = (busy.get(owner) ?? 0) + 1
      busy.set(owner, groups)
      return Math.max(LOOK_INTERVAL_MS_MIN, ((groups * busy.size) / LOOKS_PER_SECOND_MAX) * 1_000)
    },
    leave(owner) {
      const groups = (busy.get(owner) ?? 1) - 1
      if (groups === 0) busy.delete(owner)
      else busy.set(owner, groups)
    },
  }
}
