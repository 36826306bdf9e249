/**
 * Durations, counted in buckets since the start, and in the same buckets over the last minutes for current
 * quantiles. The memory is fixed, and recording does not allocate.
 */
import type { TraceContext } from '../trace-context.ts'
import type { Exemplar, HistogramValue, Quantiles } from './exposition.ts'

/**
 * The bucket bounds in seconds. Reading a row by its key takes less than a millisecond; a statement can run
 * for 30 s by default.
 */
export const DURATION_BOUNDS: readonly number[] = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** The quantiles that are reported. */
export const QUANTILES: readonly number[] = [0.5, 0.95, 0.99]

/** Number of slices that quantiles cover, including the current one: four to five minutes. */
const SLICES = 5
const SLICE_MS = 60_000

/** A histogram of durations with recent quantiles. */
export class Durations {
  readonly #bounds: readonly number[]
  readonly #width: number
  readonly #counts: Float64Array
  /** A ring of slices. */
  readonly #recent: Float64Array
  /** The number of the current slice since the start. */
  #slice = 0
  #sum = 0
  /** By bucket; null until there is one. */
  #exemplars: (Exemplar | null)[] | null = null

  constructor(bounds: readonly number[] = DURATION_BOUNDS) {
    this.#bounds = bounds
    this.#width = bounds.length + 1
    this.#counts = new Float64Array(this.#width)
    this.#recent = new Float64Array(this.#width * SLICES)
  }

  /** Records a duration; `nowMs` is from a monotonic clock. `trace`: a recorded trace that it belongs to. */
  record(seconds: number, nowMs: number, trace: TraceContext | null = null): void {
    this.#turnTo(nowMs)
    const bounds = this.#bounds
    let bucket = 0
    // Short durations are the most frequent and are found first.
    while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    const recent = (this.#slice % SLICES) * this.#width + bucket
    this.#recent[recent] = (this.#recent[recent] as number) + 1
    this.#sum += seconds
    if (trace === null) return
    this.#exemplars ??= new Array(this.#width).fill(null)
    this.#exemplars[bucket] = { traceId: trace.traceId, spanId: trace.spanId, value: seconds }
  }

  buckets(): HistogramValue {
    const known = { bounds: this.#bounds, counts: this.#counts, sum: this.#sum }
    return this.#exemplars === null ? known : { ...known, exemplars: this.#exemplars }
  }

  /** The quantiles of the last minutes; sum and count cover all time, as Prometheus requires. */
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

  /** Clears the slices that have ended. */
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
 * Estimates a quantile as PromQL's `histogram_quantile` does: values are evenly spread within a bucket, and
 * the highest bound represents everything above it.
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
