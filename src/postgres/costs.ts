/** How long statements take, remembered by their text: what the pool knows before it queues one behind another. */

/** Texts depend on the shape of a request only, so there are far fewer. The oldest goes first. */
const COSTS_MAX = 10_000
/** Longer texts are not remembered, so that what is remembered has a bound. */
const KEY_CHARACTERS_MAX = 16_384
/**
 * One statement seldom says much: the estimate moves by this share of the difference. It falls faster than it rises, because what is added to a statement's own time is
 * the time for which its process had no core. Work that is spread over more processes makes that longer, so an average would spread the more the busier the machine is.
 */
const FALLS_BY = 0.1
const RISES_BY = 0.02
/** A single stall must not mark a statement as slow for the next hundred runs. */
const SAMPLE_MS_MAX = 50
/** We are seldom later than this: what took longer was the statement, whatever came behind it. */
const PLAINLY_SLOW_MS = 5
/** A text that was never run might be anything: nothing is queued behind it until it has shown what it is. */
export const UNKNOWN_MS: number = 10

/** How long an exchange had the head of its line. */
export interface Took {
  readonly ms: number
  /** More answers had come by then: the server is ahead of us, and was faster than this. */
  readonly atMost: boolean
}

export interface Costs {
  expect(key: string): number
  learn(key: string, took: Took): void
}

/**
 * An exponentially weighted moving estimate per text, of the faster runs rather than of all. What is only known to be an upper limit never raises it: when
 * answers come faster than we read them, more connections would not help, and the estimate must not ask for them.
 */
export function createCosts(): Costs {
  const estimates = new Map<string, { ms: number }>()
  return {
    expect: key => estimates.get(key)?.ms ?? UNKNOWN_MS,
    learn(key, { ms, atMost }) {
      const known = estimates.get(key)
      if (known !== undefined) {
        const sample = Math.min(ms, atMost && ms < PLAINLY_SLOW_MS ? known.ms : SAMPLE_MS_MAX)
        known.ms += (sample - known.ms) * shareOf(sample, known.ms)
        return
      }
      if (key.length > KEY_CHARACTERS_MAX) return
      if (estimates.size >= COSTS_MAX) {
        for (const oldest of estimates.keys()) {
          estimates.delete(oldest)
          break
        }
      }
      estimates.set(key, { ms: Math.min(ms, SAMPLE_MS_MAX) })
    },
  }
}

/** What is plainly slow is the statement's own doing. */
function shareOf(sample: number, known: number): number {
  return sample > known && sample < PLAINLY_SLOW_MS ? RISES_BY : FALLS_BY
}
