/**
 * Detects overload: the event loop falls behind, and refusing a request immediately is better than responding
 * after its client has given up.
 */

/** The overload state. */
export interface Load {
  /** Receives, ten times a second, how late the event loop is. */
  readonly report: (delayMs: number) => void
  readonly isTooHigh: () => boolean
}

/**
 * A delay above this is late: far above a busy gateway with thousands of connections (about ten
 * milliseconds), far below clients' timeouts.
 */
export const LOOP_DELAY_MS_MAX = 500

/**
 * Consecutive late delays that mean overload; together they last at least three seconds. A single long pause
 * does not count: a garbage collection, reading the schema, a suspended machine.
 */
export const LATE_PROBES = 5

/** Creates the state, not overloaded. */
export function createLoad(): Load {
  let late = 0
  return {
    report(delayMs) {
      late = delayMs > LOOP_DELAY_MS_MAX ? late + 1 : 0
    },
    isTooHigh: () => late >= LATE_PROBES,
  }
}
