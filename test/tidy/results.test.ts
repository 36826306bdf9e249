/** Recorded results can be read back, so that recording some benchmarks keeps the figures of the others. */
import { expect, test } from 'vitest'
import { readResultFiles } from '../../bench/harness/result-files.ts'
import { mergeResults, printResults, type Results, readResults } from '../../bench/harness/results.ts'
import { read } from './tree.ts'

const BENCHMARKS = [
  { name: 'get', title: 'Get by id' },
  { name: 'list', title: 'List' },
]
const resultsOf = (run: string, names: readonly string[], figure: string): Results => ({
  targets: BENCHMARKS.filter(({ name }) => names.includes(name)).map(({ title }) => [
    title,
    'gateway',
    figure,
    '',
    'a | b',
    '',
    '',
    run,
  ]),
  lanes: names.map(name => [name, 'gateway', figure, '7', run]),
  runs: [{ id: run, properties: [['Command', 'npm run bench']] }],
})

test('the recorded files are what the benchmarks write', async () => {
  const results = await readResultFiles()
  const named = new Set([...results.targets, ...results.lanes].map(row => row.at(-1)))
  expect(results.runs.map(({ id }) => id).sort()).toEqual([...named].sort())
})

test.each([
  ['README.md', 'Performance'],
  ['docs/guides/sizing.md', 'Throughput of one process'],
  ['docs/guides/sizing.md', 'Realtime'],
  ['docs/guides/sizing.md', 'Cost of captured tables and webhooks'],
])('each row of a table in the documentation has the figures of one benchmark: %s, %s', async (path, heading) => {
  const [, section = ''] = read(path).split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  const rows = [...own.matchAll(/^\| (?!-)[^|]+\|(.+)\|$/gm)].map(([, cells = '']) => figuresIn(cells))
  const recorded = await recordedFigures()
  const unknown = rows.filter(row => !recorded.some(figures => row.every(figure => figures.has(figure))))
  expect(rows.flat().length).toBeGreaterThan(5)
  expect(unknown).toEqual([])
})

/** The figures of each benchmark, without the least and the greatest of a lane. */
async function recordedFigures(): Promise<readonly ReadonlySet<string>[]> {
  const { targets, lanes } = await readResultFiles()
  const texts = new Map<string, string>()
  for (const [benchmark = '', , ...cells] of [...targets, ...lanes]) {
    const medians = cells
      .slice(0, -1)
      .join(' | ')
      .replaceAll(/\([^()]* – [^()]*\)/g, '')
    texts.set(benchmark, `${texts.get(benchmark) ?? ''} | ${medians}`)
  }
  return [...texts.values()].map(text => new Set(figuresIn(text)))
}

/** Numbers, with spaces between thousands, but not ordinals and the numbers of percentiles. */
function figuresIn(text: string): readonly string[] {
  return text.match(/(?<![\w.])\d{1,3}(?: \d{3})*(?:\.\d+)?(?!\w)/g) ?? []
}

test('a file that was edited by hand is refused', () => {
  const texts = printResults(resultsOf('1', ['get'], '5 /s'))
  const { results, lanes } = texts
  expect(readResults(texts)).toEqual(resultsOf('1', ['get'], '5 /s'))
  expect(() => readResults({ results: results.replace('Properties', 'Facts'), lanes })).toThrow(
    'RESULTS.md is not as npm run bench writes it',
  )
  expect(() => readResults({ results, lanes: lanes.replace('Medians', 'Means') })).toThrow(
    'LANES.md is not as npm run bench writes it',
  )
  expect(() => readResults({ results: '# Results', lanes })).toThrow(
    'RESULTS.md has no heading "## Against the targets"',
  )
})

test('a run replaces the rows of its benchmarks, and runs without rows are dropped', () => {
  const before = resultsOf('1', ['get', 'list'], '5 /s')
  const both = mergeResults(before, resultsOf('2', ['get'], '6 /s'), BENCHMARKS)
  expect(both.lanes).toEqual([
    ['get', 'gateway', '6 /s', '7', '2'],
    ['list', 'gateway', '5 /s', '7', '1'],
  ])
  expect(both.targets.map(([title, , figure]) => [title, figure])).toEqual([
    ['Get by id', '6 /s'],
    ['List', '5 /s'],
  ])
  expect(both.runs.map(({ id }) => id)).toEqual(['1', '2'])
  expect(mergeResults(both, resultsOf('3', ['list'], '7 /s'), BENCHMARKS).runs.map(({ id }) => id)).toEqual(['2', '3'])
})

test('a run lists only what differs from the run before, and is read back whole', () => {
  const machine = ['CPU', '2 cores']
  const [first, second] = [resultsOf('1', ['get'], '5 /s'), resultsOf('2', ['list'], '6 /s')]
  const runs = [
    { id: '1', properties: [['Command', 'a'], machine, ['Clients', 'wrk']] },
    { id: '2', properties: [['Command', 'b'], machine] },
    { id: '3', properties: [['Command', 'b'], machine] },
  ]
  const results = { ...mergeResults(first, second, BENCHMARKS), runs }
  const texts = printResults(results)
  expect(readResults(texts)).toEqual(results)
  const { results: text } = texts
  expect(text.slice(text.indexOf('### 2')).match(/^\| \w.*$/gm)).toEqual(['| Command | b |', '| Clients | none |'])
})
