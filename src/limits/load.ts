/**
 * Whether the process has more to do than it can: then its event loop comes late to everything, and a request that is refused at once helps
 * more than one that is answered when nobody waits for it any more.
 */

export interface Load {
  /** To be called every `PROBE_INTERVAL_MS` by a timer: how late it comes is what is measured. */
  readonly probe: () => void
  readonly isTooHigh: () => boolean
}

export const PROBE_INTERVAL_MS = 100

/** Far above what a busy gateway with thousands of connections shows (some ten milliseconds), far below what clients wait for. */
export const DELAY_MS_MAX = 500

/**
 * Probes in a row that have to come so late; together they last three seconds at least. A single long pause is none: a collection of garbage, a schema
 * that is read, a machine that was suspended.
 */
export const LATE_PROBES = 5

/** `now`: milliseconds, from any monotonic clock. */
export function createLoad(now: () => number): Load {
  let due = now() + PROBE_INTERVAL_MS
  let late = 0
  return {
    probe() {
      late = now() - due > DELAY_MS_MAX ? late + 1 : 0
      due = now() + PROBE_INTERVAL_MS
    },
    isTooHigh: () => late >= LATE_PROBES,
  }
}
