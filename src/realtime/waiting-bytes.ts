/**
 * Counts what waits for one client towards the limits of its tenant and of the process
 * (docs/reference/limits.md#unread-responses).
 */
import type { GatewayError } from '../errors.ts'

/** Limit on the characters of one client that are never refused. The number of clients limits their sum. */
export const SMALL_CHARACTERS: number = 64 * 1024

/** The budget of unread responses. A holder is a tenant, or a caller without one. */
export interface UnreadBudget {
  /** The error if a holder or all of them exceed a limit without `own` bytes; null otherwise. */
  whileReading(holder: string, own: number): GatewayError | null
  take(holder: string, bytes: number): void
  give(holder: string, bytes: number): void
}

/** The bytes that wait for one client. */
export interface WaitingBytes {
  /** Counts everything for this holder from now on. */
  assign(holder: string): void
  /** The error if a limit is exceeded without the bytes of this client; null otherwise. */
  refusal(): GatewayError | null
  take(bytes: number): void
  give(bytes: number): void
  /** Gives back what a response takes once the connection has it, which counts what is unread. */
  handOver(bytes: number): void
}

/** Starts counting. Until there is a holder, bytes count towards the limit of the process only. */
export function createWaitingBytes(budget: UnreadBudget, initial = ''): WaitingBytes {
  let holder = initial
  let held = 0

  function give(bytes: number): void {
    held -= bytes
    budget.give(holder, bytes)
  }

  return {
    assign(next) {
      if (next === holder) return
      budget.give(holder, held)
      budget.take(next, held)
      holder = next
    },
    refusal: () => budget.whileReading(holder, held),
    take(bytes) {
      held += bytes
      budget.take(holder, bytes)
    },
    give,
    handOver(bytes) {
      if (bytes > 0) setImmediate(give, bytes)
    },
  }
}
