/** The work of a read that must see what was committed before a time, wherever it runs. */
import type { TraceContext } from '../../trace-context.ts'
import type { Consistency } from '../../usage.ts'
import type { Work } from '../joint-transaction.ts'

/** Adds a time, in milliseconds of the monotonic clock, to what the reads of `work` must see. */
export function seesSince(work: Work, since: number): Work {
  const { consistency } = work
  if (consistency === undefined || consistency.isStrong || since === Number.NEGATIVE_INFINITY) return work
  return new SinceWork(work, { ...consistency, since })
}

/** Its time counts as time of the whole request. */
class SinceWork implements Work {
  readonly consistency: Consistency
  readonly #whole: Work

  constructor(whole: Work, consistency: Consistency) {
    this.#whole = whole
    this.consistency = consistency
  }

  get trace(): TraceContext | undefined {
    return this.#whole.trace
  }

  get ms(): number {
    return this.#whole.ms
  }

  set ms(ms: number) {
    this.#whole.ms = ms
  }
}
