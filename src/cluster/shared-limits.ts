/** Counts all shared limits in the primary process. */
import { createPermitLedger, createTokenLedger, type Ledger } from '../limits/ledger.ts'
import type { SharedLimit } from './messages.ts'

/** The limits, by the names of their settings. */
export interface SharedLimitValues {
  readonly rateLimitRate: number
  readonly rateLimitBurst: number
  readonly tenantMaxConcurrent: number
  readonly maxClientConnections: number
  readonly addressMaxClientConnections: number
}

/** The dependencies of the counts. */
export interface SharedLimitParts {
  readonly values: SharedLimitValues
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** A secret 32-bit number (limits/rate.ts). */
  readonly seed: number
  /** Number of running workers. */
  readonly processes: () => number
  /** Asks a worker for the units of a holder that it does not use; 0 if it does not answer in time. */
  readonly surrender: (worker: number, limit: SharedLimit, holder: string) => Promise<number>
}

/** The counts of the shared limits. Each worker process has an id that is never reused. */
export interface SharedLimits {
  /** Lends units. Before it lends fewer than requested, it asks the other workers to return unused ones. */
  lend(worker: number, limit: SharedLimit, holder: string, units: number): Promise<number>
  give(worker: number, limit: SharedLimit, holder: string, units: number): void
  exceed(worker: number, limit: SharedLimit, holder: string, units: number): void
  /** Takes back everything from a worker that has ended. */
  drop(worker: number): void
}

/** Creates the counts. */
export function createSharedLimits({ values, now, seed, processes, surrender }: SharedLimitParts): SharedLimits {
  const ledgers: Readonly<Record<SharedLimit, Ledger>> = {
    requests: createTokenLedger({ rate: values.rateLimitRate, burst: values.rateLimitBurst, now, seed, processes }),
    tenants: createPermitLedger(values.tenantMaxConcurrent, processes),
    connections: createPermitLedger(values.maxClientConnections, processes),
    'address connections': createPermitLedger(values.addressMaxClientConnections, processes),
  }
  return {
    async lend(worker, limit, holder, units) {
      const ledger = ledgers[limit]
      const lent = ledger.lend(worker, holder, units)
      if (lent >= units) return lent
      const lenders = ledger.lenders(worker, holder)
      if (lenders.length === 0) return lent
      await Promise.all(lenders.map(async other => ledger.give(other, holder, await surrender(other, limit, holder))))
      return lent + ledger.lend(worker, holder, units - lent)
    },
    give: (worker, limit, holder, units) => ledgers[limit].give(worker, holder, units),
    exceed: (worker, limit, holder, units) => ledgers[limit].exceed(worker, holder, units),
    drop(worker) {
      for (const ledger of Object.values(ledgers)) ledger.drop(worker)
    },
  }
}
