/** Parses durations of the command line. */

const SECONDS_OF = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
/** Ten years. */
const SECONDS_MAX = 315_360_000

/**
 * Converts `30s`, `15m`, `1h`, `7d` to seconds; null for anything else, for zero, and for more than ten
 * years.
 */
export function parseDuration(text: string): number | null {
  const [, count = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS_OF[unit as keyof typeof SECONDS_OF] ?? 0)
  return seconds > 0 && seconds <= SECONDS_MAX ? seconds : null
}
