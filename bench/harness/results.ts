/**
 * `bench/RESULTS.md` and `bench/LANES.md` as data; the package has only the first. The rows of a benchmark
 * are kept until it is recorded again. Each row names the run that measured it.
 */
import { markdownTable, readMarkdownTable } from './markdown-table.ts'

/** The cells of a row; the last one names the run. */
export type Row = readonly string[]

export interface Run {
  readonly id: string
  /** The command, the machine, and its load. */
  readonly properties: readonly Row[]
}

export interface Results {
  /** By the title of the benchmark, in the first cell. */
  readonly targets: readonly Row[]
  /** By the name of the benchmark, in the first cell. */
  readonly lanes: readonly Row[]
  readonly runs: readonly Run[]
}

const TARGETS = ['benchmark', 'lane', 'figure', 'reference', 'ratio (least – greatest)', 'target', '', 'run']
const LANES = ['benchmark', 'lane', 'figures', 'rounds', 'run']

/** The text of each file. */
export interface ResultFiles {
  /** `RESULTS.md`. */
  readonly results: string
  /** `LANES.md`. */
  readonly lanes: string
}

export function printResults(results: Results): ResultFiles {
  return { results: printTargets(results), lanes: printLanes(results) }
}

function printLanes({ lanes }: Results): string {
  return [
    '# Every lane',
    '',
    'Medians over the rounds, with the least and the greatest in brackets. [RESULTS.md](RESULTS.md) lists the runs.',
    '',
    ...markdownTable(LANES, lanes),
    '',
  ].join('\n')
}

function printTargets({ targets, runs }: Results): string {
  return [
    '# Results',
    '',
    'Written by `npm run bench`; [README.md](README.md) explains how to read it.',
    '',
    '## Against the targets',
    '',
    ...markdownTable(TARGETS, targets),
    '',
    '## Runs',
    '',
    'Properties that a run does not list are those of the run before it.',
    '',
    ...runs.flatMap(({ id, properties }, index) => [
      ...[`### ${id}`, '', ...markdownTable(['', ''], differences(runs[index - 1]?.properties ?? [], properties)), ''],
    ]),
  ].join('\n')
}

/** Throws unless the texts are what `printResults` prints. */
export function readResults(texts: ResultFiles): Results {
  const parts = texts.results.split(/^(?=##+ )/m)
  const part = (heading: string) => {
    const found = parts.find(each => each.startsWith(`${heading}\n`))
    if (found === undefined) throw new Error(`RESULTS.md has no heading "${heading}"`)
    return found
  }
  const results = {
    targets: readMarkdownTable(part('## Against the targets')),
    lanes: readMarkdownTable(texts.lanes),
    runs: readRuns(parts.filter(each => each.startsWith('### '))),
  }
  const printed = printResults(results)
  if (printed.results !== texts.results) throw new Error('RESULTS.md is not as npm run bench writes it')
  if (printed.lanes !== texts.lanes) throw new Error('LANES.md is not as npm run bench writes it')
  return results
}

/** Stands for a property that only the run before has. */
const NONE = 'none'

/** In alphabetical order, after the command and the commit. */
function differences(before: readonly Row[], properties: readonly Row[]): readonly Row[] {
  const [known, current] = [before, properties].map(rows => new Map(rows.map(([name = '', value]) => [name, value])))
  const names = ['Command', 'Commit', ...[...before, ...properties].map(([name = '']) => name).sort()]
  return [...new Set(names)]
    .filter(name => known?.get(name) !== current?.get(name))
    .map(name => [name, current?.get(name) ?? NONE])
}

function readRuns(sections: readonly string[]): readonly Run[] {
  let before: readonly Row[] = []
  return sections.map(section => {
    const properties = new Map(before.map(([name = '', value = '']) => [name, value]))
    for (const [name = '', value = ''] of readMarkdownTable(section)) {
      if (value === NONE) properties.delete(name)
      else properties.set(name, value)
    }
    before = [...properties]
    return { id: section.slice(4, section.indexOf('\n')), properties: before }
  })
}

/** The known benchmarks, in the order in which they are printed. */
type Benchmarks = readonly { readonly name: string; readonly title: string }[]

/** Replaces the rows of the benchmarks in `current`, and drops unknown benchmarks and runs without rows. */
export function mergeResults(previous: Results, current: Results, benchmarks: Benchmarks): Results {
  const merge = (before: readonly Row[], now: readonly Row[], names: readonly string[]) => {
    const measured = new Set(now.map(([name]) => name))
    const rows = [...before.filter(([name]) => !measured.has(name)), ...now]
    return names.flatMap(name => rows.filter(row => row[0] === name))
  }
  const targets = merge(
    previous.targets,
    current.targets,
    benchmarks.map(({ title }) => title),
  )
  const lanes = merge(
    previous.lanes,
    current.lanes,
    benchmarks.map(({ name }) => name),
  )
  const used = new Set([...targets, ...lanes].map(row => row.at(-1)))
  return { targets, lanes, runs: [...previous.runs, ...current.runs].filter(({ id }) => used.has(id)) }
}
