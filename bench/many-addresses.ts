/** A million client addresses for the rate limit: their memory, and the time of each request. */
import { fileURLToPath } from 'node:url'
import type { Benchmark, Figures } from './harness/benchmark.ts'
import { runProgram } from './harness/processes.ts'

const LANE = 'rate limit'

export const manyAddresses: Benchmark = {
  name: 'addresses',
  title: 'Rate limit: 1 000 000 distinct client addresses',
  tools: [],
  roundsMax: 1,
  checks: [
    { kind: 'limit', unit: 'MB', lane: LANE, atMost: 100 },
    { kind: 'limit', unit: 'µs', lane: LANE, atMost: 10 },
  ],
  async prepare() {
    return [{ name: LANE, measure }]
  },
}

/** Runs in a separate process, which measures its own memory. */
async function measure(): Promise<Figures> {
  const script = fileURLToPath(new URL('addresses.ts', import.meta.url))
  const { stdout, stderr } = await runProgram(process.execPath, ['--expose-gc', '--import', 'tsx', script], {}, [0])
  const megabytes = Number(/: memory ([\d.]+) MB/.exec(stdout)?.[1])
  const microseconds = Number(/: request ([\d.]+) µs/.exec(stdout)?.[1])
  if (Number.isNaN(megabytes) || Number.isNaN(microseconds))
    throw new Error(`${script} printed unexpected output:\n${stdout}${stderr}`)
  return { MB: megabytes, µs: microseconds }
}
