/**
 * How long things took: counted in buckets for ever, and in the same buckets over the last minutes, for
 * quantiles that say how it is now. The memory is fixed, and recording allocates nothing.
 */
import type { Buckets, Quantiles } from './exposition.ts'

/**
 * Seconds. A row by its key takes less than a millisecond; the longest that a statement may run is 30 s by
 * default.
 */
export const DURATION_BOUNDS: readonly number[] = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

export const QUANTILES: readonly number[] = [0.5, 0.95, 0.99]

/** Quantiles are of the last `SLICES` slices, the one that has begun included: four to five minutes. */
const SLICES = 5
const SLICE_MS = 60_000

export class Durations {
  readonly #bounds: readonly number[]
  readonly #width: number
  readonly #counts: Float64Array
  /** The slices one behind the other: a ring. */
  readonly #recent: Float64Array
  /** Which slice of all time is being filled. */
  #slice = 0
  #sum = 0

  constructor(bounds: readonly number[] = DURATION_BOUNDS) {
    this.#bounds = bounds
    this.#width = bounds.length + 1
    this.#counts = new Float64Array(this.#width)
    this.#recent = new Float64Array(this.#width * SLICES)
  }

  /** `nowMs` is of a monotonic clock. */
  record(seconds: number, nowMs: number): void {
    this.#turnTo(nowMs)
    const bounds = this.#bounds
    let bucket = 0
    // Short durations are the most frequent: they are found first.
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    const recent = (this.#slice % SLICES) * this.#width + bucket
    this.#recent[recent] = (this.#recent[recent] as number) + 1
    this.#sum += seconds
  }

  buckets(): Buckets {
    return { bounds: this.#bounds, counts: this.#counts, sum: this.#sum }
  }

  /** Of the last minutes; sum and count are of all time, as Prometheus has it. */
  quantiles(nowMs: number): Quantiles {
    this.#turnTo(nowMs)
    const counts = Array.from({ length: this.#width }, (_, bucket) => {
      let count = 0
      for (let at = bucket; at < this.#recent.length; at += this.#width) count += this.#recent[at] as number
      return count
    })
    return {
      quantiles: new Map(QUANTILES.map(quantile => [quantile, estimate(counts, this.#bounds, quantile)])),
      sum: this.#sum,
      count: this.#counts.reduce((sum, count) => sum + count, 0),
    }
  }

  /** Forgets the slices that are over. */
  #turnTo(nowMs: number): void {
    const slice = Math.floor(nowMs / SLICE_MS)
    if (slice <= this.#slice) return
    for (let old = Math.max(this.#slice + 1, slice - SLICES + 1); old <= slice; old++) {
      const start = (old % SLICES) * this.#width
      this.#recent.fill(0, start, start + this.#width)
    }
    this.#slice = slice
  }
}

/**
 * As PromQL's `histogram_quantile`: evenly spread within a bucket, the highest bound for what lies above it.
 */
function estimate(counts: readonly number[], bounds: readonly number[], quantile: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return Number.NaN
  const rank = quantile * total
  let below = 0
  for (const [bucket, upper] of bounds.entries()) {
    const count = counts[bucket] ?? 0
    if (count > 0 && below + count >= rank) {
      const lower = bounds[bucket - 1] ?? 0
      return lower + ((upper - lower) * (rank - below)) / count
    }
    below += count
  }
  return bounds.at(-1) ?? Number.NaN
}
