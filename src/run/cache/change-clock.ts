/**
 * The time of each relation's last change, on a clock that only counts changes: the generations of the result
 * cache (decision 0016).
 * A change has a beginning, before it is sent, and an end, when its outcome is known; in between it is
 * unknown which of the two states a read sees. So a relation that is being changed has no time: its results
 * are neither served nor cached. A result served from the cache was read after the last change had ended and
 * before the next began, so the database would return the same.
 */

/** The last change of one relation. */
/** The last change of one relation. */
export interface RelationChange {
  /** The time on the clock; infinite while a change is in progress. */
  readonly endedAt: number
}

interface ChangeInProgress extends RelationChange {
  endedAt: number
  underWay: number
}

/** The clock. */
export interface ChangeClock {
  /** The current time: all changes ended until now. */
  now(): number
  of(relation: number): RelationChange
  /** Changes of unknown relations, for results whose tables are unknown. */
  readonly any: RelationChange
  /** Reports whether none of these relations, and no unknown ones, have changed since. */
  areUnchangedSince(moment: number, changes: readonly RelationChange[]): boolean
  /**
   * Begins a change; null for unknown relations. The returned function ends it; further calls have no effect.
   */
  begin(relations: Iterable<number> | null): () => void
  /** Drops relations that are not being changed. The results must have been dropped before. */
  forget(): void
}

/** Creates a clock. */
export function createChangeClock(): ChangeClock {
  let clock = 0
  const byRelation = new Map<number, ChangeInProgress>()
  const any: ChangeInProgress = { endedAt: 0, underWay: 0 }
  const unknown: ChangeInProgress = { endedAt: 0, underWay: 0 }

  function of(relation: number): ChangeInProgress {
    const known = byRelation.get(relation) ?? { endedAt: 0, underWay: 0 }
    byRelation.set(relation, known)
    return known
  }

  return {
    now: () => clock,
    of,
    any,
    areUnchangedSince(moment, changes) {
      if (unknown.endedAt > moment) return false
      for (const { endedAt: at } of changes) if (at > moment) return false
      return true
    },
    begin(relations) {
      const begun = relations === null ? [any, unknown] : [any, ...Array.from(relations, of)]
      for (const change of begun) {
        change.underWay++
        change.endedAt = Number.POSITIVE_INFINITY
      }
      return () => {
        const moment = ++clock
        for (const change of begun.splice(0)) {
          change.underWay--
          if (change.underWay === 0) change.endedAt = moment
        }
      }
    },
    forget() {
      for (const [relation, { underWay }] of byRelation) if (underWay === 0) byRelation.delete(relation)
    },
  }
}
