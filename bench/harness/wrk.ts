/** HTTP load with wrk. */
import { fileURLToPath } from 'node:url'
import type { Loaded } from './benchmark.ts'
import { runProgram } from './processes.ts'
import { JSON_TYPE, type Sending } from './sending.ts'
import { requireTool } from './tools.ts'

export interface Load {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly seconds: number
  /** Appended to the URL: a random number in this range, including both ends. */
  readonly ids?: { readonly first: number; readonly last: number } | undefined
  /** Replaces the GET. */
  readonly sending?: Sending | undefined
}

const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url))

/** One thread: with two cores, a second thread would take more from the server than it adds. */
const THREADS = 1

/**
 * Requests per second, the mean and the 99th percentile of the response time, and that percentile as a
 * multiple of the median. A failed request fails the measurement.
 */
export async function wrk(load: Load): Promise<Loaded> {
  const { ids, sending } = load
  const allHeaders = { ...load.headers, ...(sending === undefined ? {} : JSON_TYPE) }
  const headers = Object.entries(allHeaders).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const { stdout } = await runProgram(requireTool('wrk'), [
    ...['-t', String(THREADS), '-c', String(load.connections), '-d', `${load.seconds}s`, '-s', SCRIPT],
    ...headers,
    load.url,
    '--',
    ...(ids === undefined ? [] : [`first=${ids.first}`, `last=${ids.last}`]),
    ...(sending === undefined ? [] : [`method=${sending.method}`, `body=${sending.body}`]),
  ])
  const [, requests, micros, p50, p99] = (/RESULT (\d+) (\d+) (\d+) (\d+)/.exec(stdout) ?? []).map(Number)
  const failed = /FAILED (.+)/.exec(stdout)?.[1]
  if (
    requests === undefined ||
    micros === undefined ||
    p50 === undefined ||
    p99 === undefined ||
    failed === undefined
  ) {
    throw new Error(`wrk printed unexpected output:\n${stdout}`)
  }
  if (requests === 0 || /[1-9]/.test(failed))
    throw new Error(`of ${requests} requests to ${load.url} some failed: ${failed}`)
  const ms = (load.connections * micros) / 1e3 / requests
  const figures = { '/s': requests / (micros / 1e6), ms, 'p99 ms': p99 / 1e3, 'p99 / p50': p99 / p50 }
  return { figures, requests }
}
