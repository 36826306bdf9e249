/** Counts the running imports of all workers in the primary process. */
import type { Exceeded } from '../limits/budget.ts'
import { createImportSlots } from '../limits/import-slots.ts'

/** The limits, by the names of their settings. */
export interface ImportLimits {
  readonly maxImports: number
  readonly tenantMaxImports: number
}

/** The counts. Each worker process has an id that is never reused. */
export interface SharedImports {
  enter(worker: number, caller: string): Exceeded | null
  leave(worker: number, caller: string): void
  /** Ends the imports of a worker that has ended. */
  drop(worker: number): void
}

/** Creates the counts. */
export function createSharedImports({ maxImports, tenantMaxImports }: ImportLimits): SharedImports {
  const slots = createImportSlots({ max: maxImports, shareMax: tenantMaxImports })
  // The callers of the running imports of each worker.
  const running = new Map<number, string[]>()
  return {
    enter(worker, caller) {
      const exceeded = slots.enter(caller)
      if (exceeded === null) running.set(worker, [...(running.get(worker) ?? []), caller])
      return exceeded
    },
    leave(worker, caller) {
      const callers = running.get(worker) ?? []
      const index = callers.indexOf(caller)
      if (index < 0) return
      callers.splice(index, 1)
      slots.leave(caller)
    },
    drop(worker) {
      for (const caller of running.get(worker) ?? []) slots.leave(caller)
      running.delete(worker)
    },
  }
}
