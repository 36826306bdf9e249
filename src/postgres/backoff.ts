/** How long to wait before trying again. */

export interface Backoff {
  readonly firstMs: number
  readonly maxMs: number
}

/** Doubles with each failure, and spreads by half either way: gateways that lost a database together do not come back together. */
export function delayMs(backoff: Backoff, failures: number, random: () => number): number {
  const full = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30))
  return full * (0.5 + random())
}
