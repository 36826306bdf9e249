/**
 * Estimates how long statements take, by their text. The pool uses them to decide what to queue behind what.
 */

/**
 * Limit on the estimates; the oldest is dropped first. Texts depend only on the shape of a request, so there
 * are far fewer.
 */
const ESTIMATES_MAX = 10_000
/** Limit on the length of a text with an estimate, which bounds memory. */
const KEY_CHARACTERS_MAX = 16_384
/**
 * The estimate moves by this share of the difference. It falls faster than it rises, because what is added to
 * a statement's own time is mostly time for which its process had no CPU. With work spread over more
 * processes that time grows, so an average would spread work the more the busier the machine is.
 */
const FALL_WEIGHT = 0.1
const RISE_WEIGHT = 0.02
/** A single stall must not mark a statement as slow for its next hundred runs. */
const SAMPLE_MS_MAX = 50
/** Delays of this process are seldom longer; anything slower is due to the statement itself. */
const CLEARLY_SLOW_MS = 5
/** The estimate for a text that was never run: nothing is queued behind it until its latency is known. */
export const UNKNOWN_LATENCY_MS: number = 10

/** The estimates. */
export interface LatencyEstimates {
  expect(key: string): number
  /** `ms`: how long the server took for a request with this text. */
  learn(key: string, ms: number): void
}

/** Creates estimates: a moving value per text, of the faster runs rather than of all. */
export function createLatencyEstimates(): LatencyEstimates {
  const estimates = new Map<string, { ms: number }>()
  return {
    expect: key => estimates.get(key)?.ms ?? UNKNOWN_LATENCY_MS,
    learn(key, ms) {
      const known = estimates.get(key)
      if (known !== undefined) {
        const sample = Math.min(ms, SAMPLE_MS_MAX)
        known.ms += (sample - known.ms) * weightOf(sample, known.ms)
        return
      }
      if (key.length > KEY_CHARACTERS_MAX) return
      if (estimates.size >= ESTIMATES_MAX) {
        for (const oldest of estimates.keys()) {
          estimates.delete(oldest)
          break
        }
      }
      estimates.set(key, { ms: Math.min(ms, SAMPLE_MS_MAX) })
    },
  }
}

/** A run that is clearly slow counts fully. */
function weightOf(sample: number, known: number): number {
  return sample > known && sample < CLEARLY_SLOW_MS ? RISE_WEIGHT : FALL_WEIGHT
}
