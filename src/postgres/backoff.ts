/** Delays between attempts. */

/** Limits on a delay. */
export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
}

/**
 * The delay after a number of failures: doubles with each, with a random variation of half either way, so
 * that gateways that lost a database together do not reconnect together.
 */
export function delayMs(backoff: Backoff, failures: number, random: () => number): number {
  const full = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30))
  return full * (0.5 + random())
}
