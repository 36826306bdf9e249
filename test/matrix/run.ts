/**
 * `npm run test:matrix`: the database tests against each supported major version of PostgreSQL, the other tests on each supported major version of
 * Node. A run that was stopped resumes with the files that have not passed yet, as long as sources and tests are the same.
 */
import { spawn } from 'node:child_process'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { parseArgs } from 'node:util'
import { ROOT } from '../tidy/tree.ts'
import { allLanes, belongsTo, type Lane, laneOfTheDay } from './lanes.ts'
import { addResult, type FileResult, readResults, sourcesHash, sumOf, testFiles } from './results.ts'
import { type LaneSum, printTable } from './table.ts'

const HELP = `Usage: npm run test:matrix -- [options]

Runs the database tests on each supported PostgreSQL, and the other tests on each supported Node.
A stopped run resumes: files that have passed are not run again until sources or tests change.

Options:
  --only NAMES   comma-separated lanes, such as postgresql-14,node-22
  --slice        one PostgreSQL major other than the newest, in turn by date
  --files TEXT   only test files whose path contains TEXT
  --fresh        forget what has passed
  --help         show this text
`

const FOLDER = join(ROOT, '.cache/matrix')
const PROGRESS_FILES = 20
/** Of one file. */
const FAILURES_SHOWN = 5
const DAY_MS = 86_400_000
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    slice: { type: 'boolean', default: false },
    files: { type: 'string', default: '' },
    fresh: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (options.help) process.stdout.write(HELP)
else process.exitCode = await runMatrix()

async function runMatrix(): Promise<number> {
  const lanes = chosenLanes()
  const results = join(FOLDER, 'results', sourcesHash())
  if (options.fresh) await rm(results, { recursive: true, force: true })
  const sums: LaneSum[] = []
  for (const lane of lanes) sums.push({ lane, ...(await runLane(lane, results)) })
  console.log(`\n${printTable(sums)}`)
  const total = sumOf(sums.map(sum => ({ ...sum, file: '', failures: [] })))
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
  return total.failed === 0 ? 0 : 1
}

function chosenLanes(): readonly Lane[] {
  const lanes = allLanes(process.platform, process.arch)
  if (options.slice) return [laneOfTheDay(lanes, Math.floor(Date.now() / DAY_MS))]
  if (options.only === undefined) return lanes
  return options.only.split(',').map(name => {
    const lane = lanes.find(candidate => candidate.name === name.trim())
    if (lane !== undefined) return lane
    throw new Error(`--only: no lane "${name}"; there are ${lanes.map(candidate => candidate.name).join(', ')}`)
  })
}

async function runLane(lane: Lane, resultsFolder: string): Promise<Omit<LaneSum, 'lane'>> {
  const path = join(resultsFolder, `${lane.name}.jsonl`)
  const files = testFiles().filter(file => belongsTo(lane, file) && file.includes(options.files))
  const before = await readResults(path)
  const left = files.filter(file => before.get(file)?.failed !== 0)
  console.log(`${lane.title}: ${files.length} files, ${files.length - left.length} of them have passed before`)
  if (left.length > 0) {
    const folder = await installed(lane)
    await runFiles(lane, folder, left, result => addResult(path, result))
  }
  const after = await readResults(path)
  const missing = files.filter(file => !after.has(file))
  for (const file of missing) console.log(`  ${lane.title}: ${file} did not finish`)
  const sum = sumOf([...after.values()].filter(({ file }) => files.includes(file)))
  return { ...sum, failed: sum.failed + missing.length }
}

/** The folder in which the lane's package is installed. */
async function installed({ name, packageName, version }: Lane): Promise<string> {
  const folder = join(FOLDER, `${name}-${version}`)
  const done = join(folder, 'installed')
  if (existsSync(done)) return folder
  console.log(`  installing ${packageName}@${version} …`)
  await mkdir(folder, { recursive: true })
  await ended(
    'npm',
    // Install scripts only download or link what we find without them.
    [
      ...[
        'install',
        '--prefix',
        folder,
        '--no-save',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
      ],
      `${packageName}@${version}`,
    ],
  )
  await writeFile(done, '')
  return folder
}

async function runFiles(
  lane: Lane,
  folder: string,
  files: readonly string[],
  finished: (result: FileResult) => Promise<void>,
): Promise<void> {
  const log = join(FOLDER, `${lane.name}.log`)
  const node = lane.kind === 'node' ? await nodeIn(folder, lane.packageName) : process.execPath
  const child = spawn(
    node,
    [
      join(ROOT, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--reporter=default',
      `--reporter=${join(ROOT, 'test/matrix/reporter.ts')}`,
      ...files,
    ],
    {
      cwd: ROOT,
      env: {
        ...process.env,
        // Tests and the programs that they start find the lane's Node first.
        PATH: lane.kind === 'node' ? `${join(folder, 'bin')}:${process.env.PATH}` : process.env.PATH,
        ...(lane.kind === 'postgresql' ? { SVC_TEST_POSTGRESQL: folder } : {}),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    },
  )
  // Whoever stops the matrix stops its tests as well.
  const stop = (signal: NodeJS.Signals) => {
    child.once('close', () => process.exit(130))
    child.kill(signal)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  const output = createWriteStream(log)
  child.stdout?.pipe(output, { end: false })
  child.stderr?.pipe(output, { end: false })
  const exit = new Promise<void>((resolve, reject) => child.once('error', reject).once('close', () => resolve()))
  let count = 0
  for await (const line of createInterface({ input: child.stdio[3] as Readable })) {
    const result = JSON.parse(line) as FileResult
    await finished(result)
    count++
    printFailures(lane, result)
    if (count % PROGRESS_FILES === 0) console.log(`  ${lane.title}: ${count} of ${files.length} files`)
  }
  await exit
  for (const signal of STOP_SIGNALS) process.off(signal, stop)
  output.end()
  console.log(`  ${lane.title}: ${count} of ${files.length} files; output in ${log}`)
}

function printFailures({ title }: Lane, { file, failures }: FileResult): void {
  for (const failure of failures.slice(0, FAILURES_SHOWN)) console.log(`  ${title}: ${file}: ${failure}`)
  const more = failures.length - FAILURES_SHOWN
  if (more > 0) console.log(`  ${title}: ${file}: and ${more} more`)
}

async function nodeIn(folder: string, packageName: string): Promise<string> {
  const node = join(folder, 'node_modules', packageName, 'bin/node')
  const link = join(folder, 'bin/node')
  if (!existsSync(link)) {
    await mkdir(join(folder, 'bin'), { recursive: true })
    await symlink(node, link)
  }
  return link
}

async function ended(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: 'inherit' })
  const status = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('exit', resolve),
  )
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with status ${status}`)
}
