/** Compares the measured figures with their targets. */
import type { Check, Figures, Limit, Ratio } from './benchmark.ts'
import { median } from './median.ts'
import type { Measured } from './rounds.ts'

export interface Verdict {
  readonly benchmark: string
  readonly lane: string
  readonly unit: string
  /** Medians over the rounds. */
  readonly figure: number
  readonly reference: { readonly lane: string; readonly figure: number } | null
  /** The median of the ratios of each round, and the lowest and highest of them. */
  readonly ratio: { readonly median: number; readonly least: number; readonly greatest: number } | null
  readonly target: string | null
  /** Null without a target. */
  readonly met: boolean | null
  /** How far a target was missed, as a fraction of it; 0 if it was met. */
  readonly missedBy: number
}

export function judge({ benchmark, lanes }: Measured): readonly Verdict[] {
  return benchmark.checks.map(check => ({
    benchmark: benchmark.title,
    lane: check.lane,
    unit: check.unit,
    ...verdictOf(check, lanes),
  }))
}

type Judged = Omit<Verdict, 'benchmark' | 'lane' | 'unit'>

function verdictOf(check: Check, lanes: Measured['lanes']): Judged {
  const values = valuesOf(lanes, check.lane, check.unit)
  return check.kind === 'limit' ? judgeLimit(check, values) : judgeRatio(check, values, lanes)
}

function judgeLimit({ atMost, unit }: Limit, values: readonly number[]): Judged {
  const figure = median(values)
  return { figure, reference: null, ratio: null, target: `< ${atMost} ${unit}`, ...missed(figure, atMost, 'lower') }
}

function judgeRatio(
  { references, better, target, unit }: Ratio,
  values: readonly number[],
  lanes: Measured['lanes'],
): Judged {
  const reference = best(
    references.map(lane => ({ lane, values: valuesOf(lanes, lane, unit) })),
    better,
  )
  const ratios = values.map((value, round) => value / (reference.values[round] ?? Number.NaN))
  const ratio = { median: median(ratios), least: Math.min(...ratios), greatest: Math.max(...ratios) }
  return {
    figure: median(values),
    reference: { lane: reference.lane, figure: median(reference.values) },
    ratio,
    target: target === null ? null : `${better === 'higher' ? '≥' : '≤'} ${target}`,
    ...(target === null ? { met: null, missedBy: 0 } : missed(ratio.median, target, better)),
  }
}

interface Contestant {
  readonly lane: string
  readonly values: readonly number[]
}

/** By the median over all rounds: the best of a single round would be luck. */
function best(contestants: readonly Contestant[], better: Ratio['better']): Contestant {
  const [first, ...rest] = contestants
  if (first === undefined) throw new Error('a ratio needs a reference')
  return rest.reduce(
    (ahead, next) => (isBetter(median(next.values), median(ahead.values), better) ? next : ahead),
    first,
  )
}

function isBetter(value: number, than: number, better: Ratio['better']): boolean {
  return better === 'higher' ? value > than : value < than
}

function missed(value: number, target: number, better: Ratio['better']): { met: boolean; missedBy: number } {
  const met = better === 'higher' ? value >= target : value <= target
  return { met, missedBy: met ? 0 : Math.abs(value - target) / target }
}

function valuesOf(lanes: Measured['lanes'], lane: string, unit: string): readonly number[] {
  const figures: readonly Figures[] = lanes.get(lane) ?? []
  return figures.map(figure => {
    const value = figure[unit]
    if (value === undefined) throw new Error(`lane "${lane}" measures no ${unit}`)
    return value
  })
}
