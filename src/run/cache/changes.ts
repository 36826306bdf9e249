/**
 * When each relation was changed last, by a clock that only counts changes: the generations of the result cache (decision 0016).
 *
 * A change has two ends, before it is sent and when it is over, and in between nobody knows which of the two states a read sees. So a relation that is being
 * changed is at no time at all: nothing of it is served and nothing of it is kept. What is served from the cache was read after the last change had ended and
 * before the next one began, which is what the database itself would answer at that moment.
 */

/** The last change of one relation. */
export interface Change {
  /** On the clock of changes; infinite while one is under way. */
  readonly at: number
}

interface Open extends Change {
  at: number
  underWay: number
}

export interface Changes {
  /** The moment on the clock: of all that ended until now. */
  now(): number
  of(relation: number): Change
  /** Any change whatever: for answers that nobody knows the tables of. */
  readonly any: Change
  /** Whether none of these, nor of what cannot be told, has changed since. */
  areQuietSince(moment: number, changes: readonly Change[]): boolean
  /** A change begins; null: of what cannot be told. The function ends it, however often it is called. */
  begin(relations: Iterable<number> | null): () => void
  /** Forgets relations that are not being changed. Whoever holds answers must have let go of them. */
  forget(): void
}

export function createChanges(): Changes {
  let clock = 0
  const byRelation = new Map<number, Open>()
  const any: Open = { at: 0, underWay: 0 }
  const unknown: Open = { at: 0, underWay: 0 }

  function of(relation: number): Open {
    const known = byRelation.get(relation) ?? { at: 0, underWay: 0 }
    byRelation.set(relation, known)
    return known
  }

  return {
    now: () => clock,
    of,
    any,
    areQuietSince(moment, changes) {
      if (unknown.at > moment) return false
      for (const { at } of changes) if (at > moment) return false
      return true
    },
    begin(relations) {
      const begun = relations === null ? [any, unknown] : [any, ...Array.from(relations, of)]
      for (const change of begun) {
        change.underWay++
        change.at = Number.POSITIVE_INFINITY
      }
      return () => {
        const moment = ++clock
        for (const change of begun.splice(0)) {
          change.underWay--
          if (change.underWay === 0) change.at = moment
        }
      }
    },
    forget() {
      for (const [relation, { underWay }] of byRelation) if (underWay === 0) byRelation.delete(relation)
    },
  }
}
