/** The limits on running imports, in all and for each caller. */
import { type BudgetOptions, createBudget, type Exceeded } from './budget.ts'

/** The places for imports. */
export interface ImportSlots {
  /**
   * Takes a place and returns null, or returns the limit that has been reached. The answer is a promise if
   * the imports are counted in another process.
   */
  enter(caller: string): Exceeded | null | Promise<Exceeded | null>
  leave(caller: string): void
}

/** Places that this process counts. */
export interface CountedImportSlots extends ImportSlots {
  enter(caller: string): Exceeded | null
}

/** Creates places that this process counts; 0 means no limit. */
export function createImportSlots(limits: BudgetOptions): CountedImportSlots {
  const running = createBudget<string>(limits)
  return {
    enter(caller) {
      // The last one is left for a caller that has none.
      const limit = running.exceeded(caller, 0, Math.min(1, running.takenBy(caller)))
      if (limit === null) running.take(caller, 1)
      return limit
    },
    leave: caller => running.give(caller, 1),
  }
}
