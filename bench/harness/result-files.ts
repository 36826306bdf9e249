/** Reads and writes `bench/RESULTS.md` and `bench/LANES.md`. */
import { readFile, writeFile } from 'node:fs/promises'
import { printResults, type ResultFiles, type Results, readResults } from './results.ts'

const FILES: Readonly<Record<keyof ResultFiles, URL>> = {
  results: new URL('../RESULTS.md', import.meta.url),
  lanes: new URL('../LANES.md', import.meta.url),
}

/** Throws if the files are not as `npm run bench` writes them. */
export async function readResultFiles(): Promise<Results> {
  const [results, lanes] = await Promise.all([readFile(FILES.results, 'utf8'), readFile(FILES.lanes, 'utf8')])
  return readResults({ results, lanes })
}

export async function writeResultFiles(measured: Results): Promise<void> {
  const { results, lanes } = printResults(measured)
  await Promise.all([writeFile(FILES.results, results), writeFile(FILES.lanes, lanes)])
}
