/** The results as a table: for the terminal, and as `bench/RESULTS.md`. */
import type { Verdict } from './judge.ts'
import type { Machine } from './machine.ts'
import { median } from './median.ts'
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

export interface Run {
  readonly command: string
  readonly machine: Machine
  readonly verdicts: readonly Verdict[]
  readonly measured: readonly Measured[]
}

export function printMarkdown({ command, machine, verdicts, measured }: Run): string {
  return [
    '# Results',
    '',
    `Written by \`${command}\`; [README.md](README.md) says how to read it.`,
    '',
    ...markdownTable(['', ''], Object.entries(machine)),
    '',
    '## Against the targets',
    '',
    ...markdownTable(HEADINGS, verdicts.map(cells)),
    '',
    '## Every lane',
    '',
    'Medians over the rounds, in brackets the least and the greatest.',
    '',
    ...markdownTable(['benchmark', 'lane', 'figures', 'rounds'], measured.flatMap(laneRows)),
    '',
  ].join('\n')
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

function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (row: readonly string[]) => `| ${row.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(headings), `|${headings.map(() => '---').join('|')}|`, ...rows.map(line)]
}

/** Three significant digits, with a thin space between thousands. */
function number(value: number): string {
  if (Math.abs(value) >= 1000) return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ')
  return String(Number(value.toPrecision(3)))
}
