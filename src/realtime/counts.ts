/** Counters of realtime events. */
import { GatewayError } from '../errors.ts'
import type { Emit } from '../events.ts'
import type { ResyncReason } from './visibility-group.ts'

/** Receives the events that metrics count. */
export interface SessionCounts {
  notification(at: string): void
  liveAnswer(): void
  resync(reason: ResyncReason): void
  error(error: unknown): void
}

/** Histogram bounds in seconds: from the beginning of a transaction until its change is sent. */
export const LAG_BOUNDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** The counters. */
export interface RealtimeCounts {
  readonly notifications: number
  readonly liveAnswers: number
  readonly resyncs: ReadonlyMap<ResyncReason, number>
  readonly errors: ReadonlyMap<string, number>
  /** One more entry than there are bounds. */
  readonly lag: readonly number[]
  readonly lagSum: number
}

/** The counters, and what increments them. */
export interface RealtimeCounters {
  readonly count: SessionCounts
  all(): RealtimeCounts
}

/**
 * Creates counters. `clock` returns milliseconds since the epoch; `emit` receives refusals by statement
 * limits.
 */
export function createCounters(clock: () => number, emit: Emit): RealtimeCounters {
  let notifications = 0
  let liveAnswers = 0
  let lagSum = 0
  const resyncs = new Map<ResyncReason, number>()
  const errors = new Map<string, number>()
  const lag = new Array<number>(LAG_BOUNDS.length + 1).fill(0)
  return {
    count: {
      notification(at) {
        notifications++
        // The database's clock may be ahead of the gateway's.
        const seconds = Math.max(0, clock() - Date.parse(at)) / 1_000
        if (!Number.isFinite(seconds)) return
        const bucket = LAG_BOUNDS.findIndex(bound => seconds <= bound)
        const index = bucket < 0 ? LAG_BOUNDS.length : bucket
        lag[index] = (lag[index] ?? 0) + 1
        lagSum += seconds
      },
      liveAnswer() {
        liveAnswers++
      },
      resync(reason) {
        resyncs.set(reason, (resyncs.get(reason) ?? 0) + 1)
      },
      error(error) {
        const code = error instanceof GatewayError ? error.code : 'INTERNAL'
        const limit = error instanceof GatewayError ? error.limit : undefined
        if (limit !== undefined) emit({ kind: 'statement refused', limit })
        errors.set(code, (errors.get(code) ?? 0) + 1)
      },
    },
    all: () => ({ notifications, liveAnswers, resyncs, errors, lag, lagSum }),
  }
}
