/** Limits on connections, in total and for each address: in this process, or shared by several. */
import { createBudget, type Exceeded } from './budget.ts'
import type { Leases } from './leases.ts'

/** The places for connections. */
export interface ConnectionSlots {
  /**
   * Takes a place and returns null, or returns the limit that has been reached, and counts the refusal. A
   * holder of null counts only towards the total. The answer is a promise if the connections are counted in
   * another process.
   */
  enter(holder: string | number | null): Exceeded | null | Promise<Exceeded | null>
  leave(holder: string | number | null): void
  /** Places taken by this process. */
  readonly taken: number
  readonly refusals: Readonly<Record<Exceeded, number>>
}

/** Creates places of this process alone; 0 means no limit. */
export function createConnectionSlots(limits: { readonly max: number; readonly shareMax: number }): ConnectionSlots {
  const budget = createBudget<string | number>(limits)
  return {
    enter(holder) {
      const exceeded = budget.exceeded(holder)
      if (exceeded === null) budget.take(holder, 1)
      else budget.refuse(exceeded)
      return exceeded
    },
    leave: holder => budget.give(holder, 1),
    get taken() {
      return budget.taken
    },
    refusals: budget.refusals,
  }
}

/** Creates places that are leased. `total` or `share` is null if there is no such limit. */
export function createLeasedSlots(total: Leases | null, share: Leases | null): ConnectionSlots {
  const refusals = { total: 0, share: 0 }
  let taken = 0

  function refuse(limit: Exceeded): Exceeded {
    refusals[limit]++
    return limit
  }

  function leaveShare(holder: string | number | null): void {
    if (holder !== null) share?.leave(String(holder))
  }

  return {
    enter(holder) {
      const ofHolder = holder === null || share === null ? true : share.take(String(holder))
      return then(ofHolder, hasShare => {
        if (!hasShare) return refuse('share')
        return then(total === null ? true : total.take(''), hasPlace => {
          if (hasPlace) {
            taken++
            return null
          }
          leaveShare(holder)
          return refuse('total')
        })
      })
    },
    leave(holder) {
      taken--
      total?.leave('')
      leaveShare(holder)
    },
    get taken() {
      return taken
    },
    refusals,
  }
}

/** Continues at once if the value is known. */
function then<A, B>(value: A | Promise<A>, next: (value: A) => B | Promise<B>): B | Promise<B> {
  return value instanceof Promise ? value.then(next) : next(value)
}
