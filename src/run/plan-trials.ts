/**
 * Which reads are planned for their values each time. PostgreSQL plans a prepared statement for its values
 * five times. Then it uses one generic plan, if it estimates that this does not cost more. Where values are
 * distributed unevenly, the estimate can be far too low: for a rare value, a limit is expected to be reached
 * soon and is not. So the server's times with PostgreSQL's choice are compared with those with
 * `plan_cache_mode = force_custom_plan`, and custom plans are kept where they are clearly faster. Later
 * trials end that when it is no longer true. Custom plans can cost only the time for planning, whatever the
 * values are.
 */
import { LRUCache } from 'lru-cache'
import { PREPARED_CHARACTERS_MAX } from '../postgres/prepared-statements.ts'

/** Limits on the statements that are observed, and their texts; the least recently used is dropped first. */
const STATEMENTS_MAX = 1_000
const CHARACTERS_MAX = 4 * 1024 * 1024
/** Runs of each kind that are compared. */
const TURN_RUNS = 64
/** Comparisons in a row that must agree before anything changes: a server process can be without a core. */
const COMPARISONS = 3
/** A comparison ends early if one kind has cost so many times what a whole turn costs with the other. */
const HOPELESS = 4
/** Custom plans are clearly faster by this factor and difference. */
const FASTER = 1.5
const FASTER_MS = 0.05
/** Custom plans are given up unless they are faster by this factor. */
const STILL_FASTER = 1.1
/** Server time of a statement before its first trial. */
const FIRST_MS = 100
/**
 * Server time between two trials, as a multiple of what the plans that are not in use cost in the last one.
 * So trials take about a hundredth of the time, and when a statement becomes slow, the next trial is soon.
 */
const BETWEEN = 100

/** Figures of the trials. */
export interface PlanTrialStats {
  /** Reads that are planned for their values, because that is faster. */
  readonly custom: number
  /** Since the start: finished trials. */
  readonly trials: number
}

/** The trials of all statements. */
export interface PlanTrials {
  /** The plans of a statement; null if it is not prepared, and so is planned for its values each time. */
  of(text: string): ObservedPlans | null
  stats(): PlanTrialStats
}

/** The plans of one statement. */
export interface ObservedPlans {
  /** True if the next run is planned for its values. */
  readonly isNextCustom: boolean
  /** Receives how long the server took for a run. */
  ran(isCustom: boolean, ms: number): void
  /** Receives how long the server took until a run failed. */
  failed(isCustom: boolean, ms: number): void
}

/** Creates the trials. */
export function createPlanTrials(): PlanTrials {
  const statements = new LRUCache<string, StatementPlans>({
    max: STATEMENTS_MAX,
    maxSize: CHARACTERS_MAX,
    sizeCalculation: (_, text) => text.length,
  })
  let trials = 0
  const count = () => {
    trials++
  }
  return {
    of(text) {
      const known = statements.get(text)
      if (known !== undefined) return known
      if (text.length > PREPARED_CHARACTERS_MAX) return null
      const plans = new StatementPlans(count)
      statements.set(text, plans)
      return plans
    },
    stats: () => ({ custom: [...statements.values()].filter(({ isCustom }) => isCustom).length, trials }),
  }
}

class StatementPlans implements ObservedPlans {
  readonly #onTrialEnd: () => void
  /** The plans in use. */
  isCustom = false
  /** Runs with these since the last trial. */
  #used = new Runs()
  #dueMs = FIRST_MS
  /** The comparison in progress. */
  #comparison: Comparison | null = null
  /** Comparisons so far that favour the other plans. */
  #agreed = 0

  constructor(onTrialEnd: () => void) {
    this.#onTrialEnd = onTrialEnd
  }

  get isNextCustom(): boolean {
    return this.#comparison?.isOtherNext === true ? !this.isCustom : this.isCustom
  }

  ran(isCustom: boolean, ms: number): void {
    const isOther = isCustom !== this.isCustom
    const comparison = this.#comparison
    if (comparison !== null) {
      if (comparison.ran(isOther, ms)) this.#compared(comparison)
    } else if (!isOther) {
      this.#used.add(ms)
      if (this.#used.ms >= this.#dueMs) this.#comparison = new Comparison(this.#used.ms / this.#used.count)
    }
  }

  failed(isCustom: boolean, ms: number): void {
    if (isCustom === this.isCustom) this.ran(isCustom, ms)
    else if (this.#comparison !== null) this.#end(this.#comparison, false)
  }

  #compared(comparison: Comparison): void {
    const { inUse, others } = comparison
    const [custom, auto] = this.isCustom ? [inUse, others] : [others, inUse]
    const favoursOthers = this.isCustom
      ? auto.meanMs <= custom.meanMs * STILL_FASTER
      : auto.meanMs >= Math.max(custom.meanMs * FASTER, custom.meanMs + FASTER_MS)
    this.#agreed++
    if (favoursOthers && this.#agreed < COMPARISONS) this.#comparison = new Comparison(inUse.meanMs)
    else this.#end(comparison, favoursOthers)
  }

  #end({ inUse, others }: Comparison, isChange: boolean): void {
    if (isChange) this.isCustom = !this.isCustom
    this.#dueMs = Math.max(FIRST_MS, BETWEEN * (isChange ? inUse : others).ms)
    this.#used = new Runs()
    this.#comparison = null
    this.#agreed = 0
    this.#onTrialEnd()
  }
}

/** A turn with the plans that are not in use, then one with those in use. */
class Comparison {
  readonly inUse = new Runs()
  readonly others = new Runs()
  isOtherNext = true
  readonly #usualMs: number

  /** `usualMs`: the mean of the plans in use so far. */
  constructor(usualMs: number) {
    this.#usualMs = usualMs
  }

  /** Returns true once both can be compared. Runs that were sent in the other turn count too. */
  ran(isOther: boolean, ms: number): boolean {
    const runs = isOther ? this.others : this.inUse
    runs.add(ms)
    if (isOther !== this.isOtherNext) return false
    const usualMs = isOther ? this.#usualMs : this.others.meanMs
    const isHopeless = runs.ms - runs.longestMs > HOPELESS * TURN_RUNS * usualMs
    if (!isHopeless && runs.count < TURN_RUNS) return false
    // With plans that are much slower, one turn is enough.
    if (!isOther || isHopeless) return true
    this.isOtherNext = false
    return false
  }
}

class Runs {
  count = 0
  ms = 0
  longestMs = 0

  add(ms: number): void {
    this.count++
    this.ms += ms
    this.longestMs = Math.max(this.longestMs, ms)
  }

  /** Without the longest run, in which the server process may have been without a core. */
  get meanMs(): number {
    return (this.ms - this.longestMs) / Math.max(1, this.count - 1)
  }
}
