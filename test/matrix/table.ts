/** The table that the matrix prints at its end. */
import type { Lane } from './lanes.ts'
import type { Sum } from './results.ts'

export interface LaneSum extends Sum {
  readonly lane: Lane
}

export function printTable(sums: readonly LaneSum[]): string {
  const rows = sums.map(({ lane, files, passed, failed, skipped }) => [lane.title, files, passed, failed, skipped])
  return [['Version', 'Test files', 'Passed', 'Failed', 'Skipped'], ['---', '---:', '---:', '---:', '---:'], ...rows]
    .map(cells => `| ${cells.join(' | ')} |\n`)
    .join('')
}
