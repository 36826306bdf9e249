/** When a delivery that failed is tried again (docs/guides/webhooks.md#retries-and-order). */

const FIRST_MS = 1_000
export const DELAY_MS_MAX = 3_600_000

/** So that what failed together does not come back together. */
const JITTER = 0.2

/**
 * Before retry `n`, from 1: 1 s · 2^(n−1), at most an hour, ± 20 %. An endpoint that says how long to wait is left alone that long at least, up to the
 * same hour. `random` is from 0 to 1.
 */
export function delayBefore(n: number, random: number, retryAfterMs: number | null): number {
  const delay = Math.min(FIRST_MS * 2 ** (n - 1), DELAY_MS_MAX)
  const spread = delay * (1 + JITTER * (2 * random - 1))
  return Math.round(Math.min(Math.max(spread, retryAfterMs ?? 0), DELAY_MS_MAX))
}

/** RFC 9110, 10.2.3: seconds or a date. Null for neither. */
export function parseRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  const text = header.trim()
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000
  // `Date.parse` takes much else: "1.5" is a day of January.
  const at = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}
