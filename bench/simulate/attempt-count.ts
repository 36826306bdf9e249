/** Counts the attempts of all gateways, in total and for each interval of time. */
export class AttemptCount {
  readonly #now: () => number
  readonly #intervalMs: number
  readonly #byInterval = new Map<number, number>()
  #total = 0

  constructor({ now, intervalMs }: { readonly now: () => number; readonly intervalMs: number }) {
    this.#now = now
    this.#intervalMs = intervalMs
  }

  get total(): number {
    return this.#total
  }

  add(): void {
    const interval = Math.floor(this.#now() / this.#intervalMs)
    this.#total += 1
    this.#byInterval.set(interval, (this.#byInterval.get(interval) ?? 0) + 1)
  }

  /** The most attempts in one of the intervals after the given time; 0 without any. */
  mostAfter(ms: number): number {
    const later = [...this.#byInterval].filter(([interval]) => interval * this.#intervalMs >= ms)
    return Math.max(0, ...later.map(([, count]) => count))
  }
}
