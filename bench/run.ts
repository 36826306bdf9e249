/**
 * `npm run bench`: compares performance claims with a reference measured in the same run. README.md explains
 * the results.
 */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { aggregate } from './aggregate.ts'
import { batch } from './batch.ts'
import { cache } from './cache.ts'
import { capacity } from './capacity.ts'
import { client } from './client.ts'
import { compression } from './compression.ts'
import { csvExport, csvImport } from './csv.ts'
import { expand } from './expand.ts'
import { firstPaintOfConsole } from './first-paint.ts'
import { getById } from './get-by-id.ts'
import { guarded } from './guarded.ts'
import type { Benchmark } from './harness/benchmark.ts'
import { judge } from './harness/judge.ts'
import { describeMachine } from './harness/machine.ts'
import { runProgram } from './harness/processes.ts'
import { printTable, resultsOf } from './harness/report.ts'
import { readResultFiles, writeResultFiles } from './harness/result-files.ts'
import { mergeResults } from './harness/results.ts'
import { runRounds } from './harness/rounds.ts'
import { printSelfTimes } from './harness/self-time.ts'
import { findTool, missing, type Tool } from './harness/tools.ts'
import { createWorld } from './harness/world.ts'
import { insertOne } from './insert-one.ts'
import { language } from './language.ts'
import { largeCatalog } from './large-catalog.ts'
import { latency } from './latency.ts'
import { list } from './list.ts'
import { manyAddresses } from './many-addresses.ts'
import { mcp } from './mcp.ts'
import { ndjson } from './ndjson.ts'
import { neighbours } from './neighbours.ts'
import { nestedExpand } from './nested-expand.ts'
import { oneConnection } from './one-connection.ts'
import { openapi } from './openapi.ts'
import { outbox } from './outbox.ts'
import { policies } from './policies.ts'
import { postgrest } from './postgrest.ts'
import { queryText } from './query-text.ts'
import { capture } from './realtime/capture.ts'
import { realtime } from './realtime/feed.ts'
import { manyShapes, publicShapes, shapeSync, shapes } from './realtime/shapes.ts'
import { replicas } from './replicas.ts'
import { rowsByKey } from './rows-by-key.ts'
import { rpc } from './rpc.ts'
import { simulate } from './simulate/simulate.ts'
import { start } from './start.ts'
import { statements } from './statements.ts'
import { tails } from './tails.ts'
import { tokens } from './tokens.ts'
import { tracing } from './tracing.ts'
import { updateById } from './update-by-id.ts'
import { webhooks } from './webhooks.ts'
import { workers } from './workers.ts'

const BENCHMARKS: readonly Benchmark[] = [
  ...[
    getById,
    guarded,
    tokens,
    tracing,
    neighbours,
    tails,
    oneConnection,
    cache,
    latency,
    list,
    rowsByKey,
    expand,
    nestedExpand,
    aggregate,
    queryText,
    language,
    mcp,
  ],
  ...[insertOne, updateById, batch, rpc, policies, postgrest, statements, webhooks, outbox, realtime, capture],
  ...[workers, replicas, ndjson, csvExport, csvImport, compression, start, largeCatalog, manyAddresses, openapi],
  ...[shapeSync, shapes, publicShapes, manyShapes, client, firstPaintOfConsole, capacity, simulate],
]
const ROUNDS = 5
const SECONDS = 3
const BUILD = fileURLToPath(new URL('../scripts/build.js', import.meta.url))

interface Request {
  readonly benchmarks: readonly Benchmark[]
  readonly rounds: number
  readonly seconds: number
  readonly profileFolder: string | null
  readonly build: boolean
  /** True if the figures are written to `bench/RESULTS.md`. */
  readonly record: boolean
  /** The command line, for the record. */
  readonly command: string
}

function parseRequest(argv: readonly string[]): Request {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: String(ROUNDS) },
      seconds: { type: 'string', default: String(SECONDS) },
      profile: { type: 'string' },
      'no-build': { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
    },
  })
  const unknown = positionals.filter(name => !BENCHMARKS.some(benchmark => benchmark.name === name))
  if (unknown.length > 0) {
    throw new Error(`no benchmark ${unknown.join(', ')}; there are ${BENCHMARKS.map(({ name }) => name).join(', ')}`)
  }
  return {
    benchmarks: positionals.length === 0 ? possible(BENCHMARKS) : BENCHMARKS.filter(isNamedIn(positionals)),
    rounds: wholeNumber('rounds', values.rounds),
    seconds: wholeNumber('seconds', values.seconds),
    profileFolder: values.profile === undefined ? null : resolve(values.profile),
    build: !values['no-build'],
    record: values.record || positionals.length === 0,
    command: ['npm run bench', ...(argv.length === 0 ? [] : ['--', ...argv])].join(' '),
  }
}

function isNamedIn(names: readonly string[]): (benchmark: Benchmark) => boolean {
  return ({ name }) => names.includes(name)
}

/** Programs that are large to install: without them, the benchmarks that need them are left out. */
const OPTIONAL: readonly Tool[] = ['go', 'chromium']

function possible(benchmarks: readonly Benchmark[]): readonly Benchmark[] {
  const absent = OPTIONAL.filter(tool => findTool(tool) === null)
  const skipped = benchmarks.filter(({ tools }) => tools.some(tool => absent.includes(tool)))
  for (const { name } of skipped) print(`${name}: skipped. ${missing(absent)}`)
  return benchmarks.filter(benchmark => !skipped.includes(benchmark))
}

function wholeNumber(option: string, text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`--${option} ${text} is not a whole number from 1 to 9999`)
  return Number(text)
}

async function run(request: Request): Promise<void> {
  const tools = request.benchmarks.flatMap(benchmark => benchmark.tools)
  const absent = missing(tools)
  if (absent !== '') throw new Error(`${absent}\nOr name benchmarks that need less: npm run bench -- start catalog`)
  if (request.build) build()
  if (request.profileFolder !== null) await mkdir(request.profileFolder, { recursive: true })

  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'))
  const world = createWorld({ ...request, folder, print })
  try {
    const machine = await describeMachine((await world.database()).version, tools)
    const measured = await runRounds(request.benchmarks, world, { rounds: request.rounds, print })
    const verdicts = measured.flatMap(judge)
    print(`\n${printTable(verdicts)}`)
    if (!request.record) {
      print('\nbench/RESULTS.md stays as it is; --record writes to it.')
    } else {
      const id = new Date().toISOString().slice(0, 19)
      const properties = [['Command', `\`${request.command}\``], ['Commit', await commit()], ...Object.entries(machine)]
      const current = resultsOf({ run: { id, properties }, verdicts, measured })
      await writeResultFiles(mergeResults(await readResultFiles(), current, BENCHMARKS))
      print('\nWritten to bench/RESULTS.md and bench/LANES.md.')
    }
  } finally {
    await world.close()
    await rm(folder, { recursive: true, force: true })
  }
  // Written when the gateway has exited.
  if (request.profileFolder !== null) print(`\n${printSelfTimes(request.profileFolder)}`)
}

/** The commit that is measured, and whether files differ from it. */
async function commit(): Promise<string> {
  const { stdout } = await runProgram('git', ['describe', '--always', '--dirty', '--exclude', '*'], {})
  return stdout.trim()
}

/** Builds the current sources, which are then measured. */
function build(): void {
  const { status } = spawnSync(process.execPath, [BUILD], { stdio: 'inherit' })
  if (status !== 0) throw new Error('the build failed')
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

// The handlers of `exit` end every process that was started.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    process.stderr.write(`ended by ${signal}, before the results\n`)
    process.exit(1)
  })
}
try {
  await run(parseRequest(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
