/**
 * Whether the process has more to do than it can: then its event loop comes late to everything, and a request that is refused at once helps
 * more than one that is answered when nobody waits for it any more.
 */

export interface Load {
  /** To be told ten times a second how late the event loop comes. */
  readonly hear: (delayMs: number) => void
  readonly isTooHigh: () => boolean
}

/** Far above what a busy gateway with thousands of connections shows (some ten milliseconds), far below what clients wait for. */
export const DELAY_MS_MAX = 500

/**
 * Delays in a row that have to come so late; together they last three seconds at least. A single long pause is none: a collection of garbage, a schema
 * that is read, a machine that was suspended.
 */
export const LATE_PROBES = 5

export function createLoad(): Load {
  let late = 0
  return {
    hear(delayMs) {
      late = delayMs > DELAY_MS_MAX ? late + 1 : 0
    },
    isTooHigh: () => late >= LATE_PROBES,
  }
}
