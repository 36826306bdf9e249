/** Decides when a worker that has ended is started again, and when the gateway gives up. */

/** A record of the crashes so far. */
export interface Crashes {
  /** Consecutive workers that ended soon after their start. */
  readonly inARow: number
}

export const NO_CRASHES: Crashes = { inARow: 0 }

/** A worker that ends after less than this time counts as an early end. */
const EARLY_MS = 10_000

/** This many early ends in a row are a crash loop. */
export const CRASHES_MAX = 6

/** The pause before the second restart. Each further pause is twice as long. */
const FIRST_PAUSE_MS = 100
const PAUSE_MS_MAX = 10_000

/**
 * Decides about a restart. `servedMs`: how long the worker served. `delayMs` is null if it is not started
 * again.
 */
export function nextRestart(
  { inARow }: Crashes,
  servedMs: number,
): { readonly crashes: Crashes; readonly delayMs: number | null } {
  if (servedMs >= EARLY_MS) return { crashes: NO_CRASHES, delayMs: 0 }
  const crashes = { inARow: inARow + 1 }
  if (crashes.inARow >= CRASHES_MAX) return { crashes, delayMs: null }
  return { crashes, delayMs: inARow === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (inARow - 1), PAUSE_MS_MAX) }
}
