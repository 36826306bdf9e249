/** The OpenAPI document of a large schema: the time to create it, and its size. */
import { fileURLToPath } from 'node:url'
import type { Benchmark, Figures } from './harness/benchmark.ts'
import { runProgram } from './harness/processes.ts'

const LANE = 'document'
const TABLES = 500
const SCRIPT = fileURLToPath(new URL('references/openapi.js', import.meta.url))

export const openapi: Benchmark = {
  name: 'openapi',
  title: `OpenAPI document of ${TABLES} tables, ${TABLES * 12} columns`,
  tools: [],
  checks: [{ kind: 'limit', unit: 'ms', lane: LANE, atMost: 300 }],
  async prepare() {
    return [{ name: LANE, measure }]
  },
}

/** Runs in a separate process, because the first request of a gateway runs cold code. */
async function measure(): Promise<Figures> {
  const { stdout } = await runProgram(process.execPath, [SCRIPT, String(TABLES)], {}, [0])
  const [ms = Number.NaN, megabytes = Number.NaN] = stdout.split(' ').map(Number)
  if (!(ms > 0 && megabytes > 0)) throw new Error(`${SCRIPT} printed unexpected output:\n${stdout}`)
  return { ms, MB: megabytes }
}
