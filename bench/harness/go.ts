/** The programs in Go: a reference server, and a load generator with a constant rate. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../../src/demo/folders.ts'
import type { Figures } from './benchmark.ts'
import { runProgram } from './processes.ts'
import { requireTool } from './tools.ts'

const SOURCES = fileURLToPath(new URL('../references/go', import.meta.url))
/** Go finds its caches there. */
const GO_VARIABLES = ['HOME', 'GOPATH', 'GOCACHE', 'GOMODCACHE', 'GOPROXY', 'GOFLAGS', 'GONOSUMDB', 'GOSUMDB']

export type GoProgram = 'server' | 'open-loop'

/** The path of the program, which is compiled if its sources have changed. */
export async function goProgram(name: GoProgram): Promise<string> {
  const path = join(await cacheFolder(process.env), 'bench', `go-${name}`)
  const environment = Object.fromEntries(GO_VARIABLES.flatMap(key => variable(key)))
  await runProgram(requireTool('go'), ['build', '-C', SOURCES, '-o', path, `./${name}`], environment)
  return path
}

function variable(key: string): readonly [string, string][] {
  const value = process.env[key]
  return value === undefined ? [] : [[key, value]]
}

/** Requests at a constant rate. */
export interface OpenLoad {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly seconds: number
  /** Requests per second. */
  readonly rate: number
  /** As `Load.ids`. */
  readonly ids?: { readonly first: number; readonly last: number } | undefined
}

/**
 * The median, the 99th and the 99.9th percentile of the time from the moment at which a request was due, so
 * that a delay also counts for the requests that had to wait for it. A failed request fails the measurement.
 */
export async function openLoop(load: OpenLoad): Promise<Figures> {
  const { ids, rate } = load
  const { stdout } = await runProgram(await goProgram('open-loop'), [
    ...['-url', load.url, '-rate', String(rate), '-seconds', String(load.seconds)],
    ...['-connections', String(load.connections), '-authorization', load.headers.Authorization ?? ''],
    ...(ids === undefined ? [] : ['-first', String(ids.first), '-last', String(ids.last)]),
  ])
  const [, requests, failed, p50, p99, p999] = (/RESULT (\d+) (\d+) (\d+) (\d+) (\d+)/.exec(stdout) ?? []).map(Number)
  if (p50 === undefined || p99 === undefined || p999 === undefined)
    throw new Error(`the load generator printed unexpected output:\n${stdout}`)
  if (failed !== 0) throw new Error(`of ${requests} requests to ${load.url} ${failed} failed`)
  return { 'p50 ms': p50 / 1e3, 'p99 ms': p99 / 1e3, 'p99.9 ms': p999 / 1e3 }
}
