/** The delays between attempts (docs/guides/webhooks.md#retries-and-order). */

const FIRST_MS = 1_000
/** Limit on the delay before a retry. */
export const DELAY_MS_MAX = 3_600_000

/** Random variation, so that deliveries that failed together are not retried together. */
const JITTER = 0.2

/**
 * The delay before retry `n`, counted from 1: 1 s · 2^(n−1), at most an hour, ± 20 %. A longer `Retry-After`
 * of the endpoint is honored, up to the same hour. `random` is from 0 to 1.
 */
export function delayBefore(n: number, random: number, retryAfterMs: number | null): number {
  const delay = Math.min(FIRST_MS * 2 ** (n - 1), DELAY_MS_MAX)
  const spread = delay * (1 + JITTER * (2 * random - 1))
  return Math.round(Math.min(Math.max(spread, retryAfterMs ?? 0), DELAY_MS_MAX))
}

/**
 * Parses a `Retry-After` header (RFC 9110, 10.2.3), which is a number of seconds or a date. Null if it is
 * neither.
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  const text = header.trim()
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000
  // `Date.parse` accepts many other forms: "1.5" is a day in January.
  const at = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}
