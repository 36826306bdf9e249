/** The outcome of a run: as a table for the terminal, and as rows of `bench/RESULTS.md`. */
import type { Verdict } from './judge.ts'
import { median } from './median.ts'
import type { Results, Run } from './results.ts'
import type { Measured } from './rounds.ts'

const HEADINGS = ['benchmark', 'lane', 'figure', 'reference', 'ratio (least – greatest)', 'target', ''] as const

export function printTable(verdicts: readonly Verdict[]): string {
  const rows = [HEADINGS, ...verdicts.map(cells)]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

interface Measurement {
  readonly run: Run
  readonly verdicts: readonly Verdict[]
  readonly measured: readonly Measured[]
}

export function resultsOf({ run, verdicts, measured }: Measurement): Results {
  return {
    targets: verdicts.map(verdict => [...cells(verdict), run.id]),
    lanes: measured.flatMap(laneRows).map(row => [...row, run.id]),
    runs: [run],
  }
}

function cells(verdict: Verdict): readonly string[] {
  const { benchmark, lane, unit, figure, reference, ratio, target } = verdict
  return [
    benchmark,
    lane,
    `${number(figure)} ${unit}`,
    reference === null ? '' : `${number(reference.figure)} ${unit} (${reference.lane})`,
    ratio === null ? '' : `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)} – ${ratio.greatest.toFixed(2)})`,
    target ?? 'for information',
    outcome(verdict),
  ]
}

function outcome({ met, missedBy }: Verdict): string {
  if (met === null) return ''
  return met ? 'met' : `missed by ${Math.max(1, Math.round(missedBy * 100))} %`
}

function laneRows({ benchmark, lanes }: Measured): readonly (readonly string[])[] {
  return [...lanes].map(([lane, figures]) => {
    const units = Object.keys(figures[0] ?? {})
    const texts = units.map(unit => {
      const values = figures.map(figure => figure[unit] ?? Number.NaN)
      const spread = values.length > 1 ? ` (${number(Math.min(...values))} – ${number(Math.max(...values))})` : ''
      return `${number(median(values))} ${unit}${spread}`
    })
    return [benchmark.name, lane, texts.join(', '), String(figures.length)]
  })
}

/** Three significant digits, with a thin space between thousands. */
function number(value: number): string {
  if (Math.abs(value) >= 1000) return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ')
  return String(Number(value.toPrecision(3)))
}
