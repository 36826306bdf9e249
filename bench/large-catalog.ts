/** The catalog of a very large schema: the time to load it, and the memory to keep it. */
import { fileURLToPath } from 'node:url'
import type { Benchmark, Figures } from './harness/benchmark.ts'
import { runProgram } from './harness/processes.ts'

const LANE = 'catalogue'

export const largeCatalog: Benchmark = {
  name: 'catalog',
  title: 'Catalogue of 5 000 tables, 60 000 columns: load',
  tools: [],
  roundsMax: 1,
  checks: [
    { kind: 'limit', unit: 'ms', lane: LANE, atMost: 3_000 },
    { kind: 'limit', unit: 'MB', lane: LANE, atMost: 150 },
  ],
  async prepare() {
    return [{ name: LANE, measure }]
  },
}

/** Runs in a separate process, which measures its own memory and repeats the measurement itself. */
async function measure(): Promise<Figures> {
  const script = fileURLToPath(new URL('catalog.ts', import.meta.url))
  const { stdout, stderr } = await runProgram(process.execPath, ['--expose-gc', '--import', 'tsx', script], {}, [0, 1])
  const ms = Number(/: load ([\d.]+) ms/.exec(stdout)?.[1])
  const megabytes = Number(/: memory ([\d.]+) MB/.exec(stdout)?.[1])
  if (Number.isNaN(ms) || Number.isNaN(megabytes))
    throw new Error(`${script} printed unexpected output:\n${stdout}${stderr}`)
  return { ms, MB: megabytes }
}
