/**
 * Runs the database tests on each supported major version of PostgreSQL, and the other tests on each
 * supported major version of Node. An interrupted run resumes with the files that have not passed, as long as
 * sources and tests are unchanged.
 */
import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { ROOT } from '../tidy/tree.ts'
import { installLane, RegistryUnreachable } from './install.ts'
import { allLanes, belongsTo, filesOfPart, type Lane, minimumNode, sliceOfTheDay } from './lanes.ts'
import { publishRows } from './page.ts'
import { addResult, type FileResult, fileHash, readResults, type Sum, sharedHash, sumOf, testFiles } from './results.ts'
import { type LaneSum, PUBLISHED_HEAD, printPublishedRow, printTable } from './table.ts'
import { runTests } from './tests.ts'

const HELP = `Usage: npm run test:matrix -- [options]

Runs the database tests on each supported PostgreSQL, and the other tests on each supported Node.
A stopped run resumes: files that have passed are not run again until sources or tests change.

Options:
  --only NAMES   comma-separated lanes, such as postgresql-14,node-22
  --files TEXTS  only test files whose path contains one of these comma-separated texts
  --slice        a part of the test files on one PostgreSQL other than the newest, in turn by date
  --publish      write the results of these versions to docs/reference/compatibility.md
  --fresh        forget what has passed
  --help         show this text
`

const PROGRESS_FILES = 20
/** The result of one file. */
const FAILURES_SHOWN = 5
const DAY_MS = 86_400_000

/** The folders and inputs of a run. */
export interface MatrixOptions {
  /** The folder for packages of lanes, results, and output of tests. */
  readonly cache: string
  /** The page that `--publish` writes to. */
  readonly page: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** Interrupts the run; the next one resumes it. */
  readonly signal: AbortSignal
  print(line: string): void
}

interface Plan {
  readonly lane: Lane
  readonly files: readonly string[]
}

/** An invalid command line. */
class UsageError extends Error {}

const FAILED = 1
const WRONG_USAGE = 2

/** Resolves with the exit status: 0 if all tests have passed. */
export async function runMatrix(argv: readonly string[], options: MatrixOptions): Promise<number> {
  try {
    const args = parseOptions(argv)
    if (!args.help) return await runPlans(args, options)
    options.print(HELP)
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    options.print(`${error.message}; see --help`)
    return WRONG_USAGE
  }
}

async function runPlans(args: Arguments, options: MatrixOptions): Promise<number> {
  const { cache, now, signal, print } = options
  const plans = plansOf(args, now)
  const results = join(cache, 'results', sharedHash())
  if (args.fresh) await rm(results, { recursive: true, force: true })
  await mkdir(results, { recursive: true })
  const sums: LaneSum[] = []
  const absent: Lane[] = []
  for (const plan of plans) {
    try {
      sums.push({ lane: plan.lane, ...(await runPlan(plan, results, options)) })
    } catch (error) {
      if (signal.aborted) return FAILED
      if (!(error instanceof RegistryUnreachable)) throw error
      print(`${plan.lane.title}: not tested: ${error.message}`)
      absent.push(plan.lane)
    }
    if (signal.aborted) return FAILED
  }
  print(`\n${printTable(sums)}`)
  const total = sumOf(sums)
  print(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
  if (args.publish) await publish(sums, options)
  // A machine without network cannot run its slice, which is not an error. Versions requested explicitly must
  // be tested.
  const isComplete = absent.length === 0 || args.slice
  return total.failed === 0 && isComplete ? 0 : FAILED
}

type Arguments = ReturnType<typeof parseOptions>

function parseOptions(argv: readonly string[]) {
  const values = parsed(argv)
  const { slice, only, files } = values
  if (slice && (only !== undefined || files !== undefined)) {
    throw new UsageError('--slice chooses the version and the files by itself: leave out --only and --files')
  }
  if (values.publish && (slice || files !== undefined)) {
    throw new UsageError('--publish needs all test files of a version: leave out --slice and --files')
  }
  return values
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        only: { type: 'string' },
        files: { type: 'string' },
        slice: { type: 'boolean', default: false },
        publish: { type: 'boolean', default: false },
        fresh: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function plansOf({ slice, only, files }: Arguments, now: number): readonly Plan[] {
  const lanes = allLanes(process.platform, process.arch)
  if (slice) {
    const { lane, part } = sliceOfTheDay(lanes, Math.floor(now / DAY_MS))
    return [{ lane, files: filesOfPart(filesOf(lane), part) }]
  }
  const texts = files?.split(',').map(text => text.trim()) ?? ['']
  return chosenLanes(lanes, only).map(lane => ({
    lane,
    files: filesOf(lane).filter(file => texts.some(text => file.includes(text))),
  }))
}

function chosenLanes(lanes: readonly Lane[], only: string | undefined): readonly Lane[] {
  if (only === undefined) return lanes
  return only.split(',').map(name => {
    const lane = lanes.find(candidate => candidate.name === name.trim())
    if (lane !== undefined) return lane
    throw new UsageError(`--only: no lane "${name}"; there are ${lanes.map(one => one.name).join(', ')}`)
  })
}

function filesOf(lane: Lane): readonly string[] {
  return testFiles().filter(file => belongsTo(lane, file))
}

async function runPlan({ lane, files }: Plan, results: string, options: MatrixOptions): Promise<Sum> {
  const { cache, signal, print } = options
  const { title } = lane
  const path = join(results, `${lane.name}.jsonl`)
  const before = await readResults(path)
  const left = files.filter(file => before.get(file)?.failed !== 0)
  print(`${title}: ${files.length} files, ${files.length - left.length} of them have passed before`)
  let status: number | null = 0
  if (left.length > 0) {
    const installed = await installLane(lane, options)
    const minimum = minimumNode(process.platform, process.arch)
    // The tutorial also runs on the oldest Node of the major.
    if (lane.kind === 'node' && lane.major === minimum.major) await installLane(minimum, options)
    const log = join(cache, `${lane.name}.log`)
    const hashes = new Map(left.map(file => [file, fileHash(file)]))
    let count = 0
    const finished = async (result: FileResult): Promise<void> => {
      await addResult(path, result, hashes.get(result.file) ?? '')
      for (const line of failureLines(result)) print(`  ${title}: ${line}`)
      count++
      if (count % PROGRESS_FILES === 0 || left.length < PROGRESS_FILES)
        print(`  ${title}: ${count} of ${left.length} files`)
    }
    status = await runTests({ ...installed, files: left, log, signal, finished })
    print(`  ${title}: ${count} of ${left.length} files; output in ${log}`)
  }
  const after = await readResults(path)
  const known = files.flatMap(file => after.get(file) ?? [])
  const sum = sumOf(known)
  if (signal.aborted) return sum
  for (const file of files.filter(name => !after.has(name))) print(`  ${title}: ${file} did not finish`)
  const missing = files.length - known.length
  // For example, an error in the set-up of all files.
  const unexplained = status !== 0 && sum.failed + missing === 0 ? 1 : 0
  if (unexplained > 0) print(`  ${title}: vitest ended with status ${status}, although no test failed`)
  return { ...sum, failed: sum.failed + missing + unexplained }
}

function failureLines({ file, failures }: FileResult): readonly string[] {
  const lines = failures.slice(0, FAILURES_SHOWN).map(failure => `${file}: ${failure}`)
  const more = failures.length - FAILURES_SHOWN
  return more > 0 ? [...lines, `${file}: and ${more} more`] : lines
}

async function publish(sums: readonly LaneSum[], { page, now }: MatrixOptions): Promise<void> {
  const { stdout } = await promisify(execFile)('git', ['describe', '--always', '--dirty', '--abbrev=10'], { cwd: ROOT })
  const day = new Date(now).toISOString().slice(0, 10)
  const tested = `${day}, ${process.platform}-${process.arch}, \`${stdout.trim()}\``
  const rows = allLanes(process.platform, process.arch).map(lane => {
    const sum = sums.find(one => one.lane.name === lane.name)
    return [/^\w+ \d+/.exec(lane.title)?.[0] ?? '', sum && printPublishedRow(sum, tested)] as const
  })
  await publishRows(page, PUBLISHED_HEAD, new Map(rows))
}
