/** The work of a read that must see what was committed before a time, wherever it runs. */
import type { Consistency } from '../../usage.ts'
import { CountedWork, type Work } from '../joint-transaction.ts'

/** Adds a time, in milliseconds of the monotonic clock, to what the reads of `work` must see. */
export function seesSince(work: Work, since: number): Work {
  const { consistency } = work
  if (consistency === undefined || consistency.isStrong || since === Number.NEGATIVE_INFINITY) return work
  return new SinceWork(work, { ...consistency, since })
}

class SinceWork extends CountedWork implements Work {
  readonly consistency: Consistency

  constructor(whole: Work, consistency: Consistency) {
    super(whole)
    this.consistency = consistency
  }
}
