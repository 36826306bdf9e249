/** The tables of the matrix: the one printed at the end, and the published one. */
import type { Lane } from './lanes.ts'
import type { Sum } from './results.ts'

export interface LaneSum extends Sum {
  readonly lane: Lane
}

export function printTable(sums: readonly LaneSum[]): string {
  const rows = sums.map(sum => printRow(cellsOf(sum)))
  return `${printHead(TITLES)}${rows.join('')}`
}

const TITLES = ['Version', 'Test files', 'Passed', 'Failed', 'Skipped']
const NUMBERS = TITLES.slice(1)

function cellsOf({ lane, files, passed, failed, skipped }: LaneSum): readonly (string | number)[] {
  return [lane.title, files, passed, failed, skipped]
}

/** The published table has more columns: when and where the tests ran, and why some were skipped. */
export const PUBLISHED_HEAD: string = printHead([...TITLES, 'Tested', 'Why skipped'])

/** @param tested The date, machine and commit of the tests. */
export function printPublishedRow(sum: LaneSum, tested: string): string {
  return printRow([...cellsOf(sum), tested, printReasons(sum.reasons)])
}

function printHead(titles: readonly string[]): string {
  return printRow(titles) + printRow(titles.map(title => (NUMBERS.includes(title) ? '---:' : '---')))
}

function printRow(cells: readonly (string | number)[]): string {
  return `| ${cells.join(' | ')} |\n`
}

/**
 * Features that PostgreSQL lacks, by the version that introduced them. All other reasons are about the
 * machine.
 */
export function printReasons(reasons: readonly string[]): string {
  const versions = new Map<string, string[]>()
  let others = 0
  for (const reason of reasons) {
    const [, major, lacks] = /^needs PostgreSQL (\d+): (.*)$/s.exec(reason) ?? []
    if (major === undefined || lacks === undefined) others++
    else versions.set(major, [...(versions.get(major) ?? []), lacks])
  }
  const lacking = [...versions]
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([major, lacks]) => `${lacks.length} need PostgreSQL ${major}: ${[...new Set(lacks)].sort().join(', ')}`)
  return [...lacking, ...(others === 0 ? [] : [`${others}: a program or data of the test is not on the machine`])].join(
    '; ',
  )
}
