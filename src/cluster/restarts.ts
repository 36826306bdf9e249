/** When a worker that has ended is started again, and when not any more. */

/** The crashes so far. */
export interface Crashes {
  /** Workers that ended soon after their start, one after the other. */
  readonly inARow: number
}

export const NO_CRASHES: Crashes = { inARow: 0 }

/** A worker that has served for less than this has not proved that it works. */
const EARLY_MS = 10_000

/** So many early ends in a row are a crash loop. */
export const CRASHES_MAX = 6

/** The pause before the second restart; each is twice as long as the one before. */
const FIRST_PAUSE_MS = 100
const PAUSE_MS_MAX = 10_000

/** `servedMs`: how long the worker that has ended had served. `delayMs` null: it is not started again. */
export function nextRestart(
  { inARow }: Crashes,
  servedMs: number,
): { readonly crashes: Crashes; readonly delayMs: number | null } {
  if (servedMs >= EARLY_MS) return { crashes: NO_CRASHES, delayMs: 0 }
  const crashes = { inARow: inARow + 1 }
  if (crashes.inARow >= CRASHES_MAX) return { crashes, delayMs: null }
  return { crashes, delayMs: inARow === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (inARow - 1), PAUSE_MS_MAX) }
}
