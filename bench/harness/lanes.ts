/**
 * The lanes of HTTP benchmarks: the gateway with wrk, and pgbench with the statements of the same request.
 */
import type { Benchmark, Lane, Ratio } from './benchmark.ts'
import { pgbench, type Random, writeScript } from './pgbench.ts'
import type { Sending } from './sending.ts'
import { fetchOk, type World } from './world.ts'
import { type Load, wrk } from './wrk.ts'

/** The load for every figure in requests per second. */
const CONNECTIONS = 32
/**
 * The best of these is the limit: with 1 client nothing waits; with more, the server's processes share the
 * cores.
 */
const PGBENCH_CLIENTS = [1, 4, 16] as const
/** Server code becomes fast while it runs. */
const WARM_UP_SECONDS = 2

export const GATEWAY = 'gateway'
export const PGBENCH: readonly string[] = PGBENCH_CLIENTS.map(pgbenchName)

export interface Page {
  readonly name: string
  readonly title: string
  /** A request for rows that the caller can see. */
  readonly path: string
  /** A text that the response must contain, because a benchmark of an empty list measures nothing. */
  readonly contains: string
}

/** A benchmark of a list: at least 0.6 of PostgreSQL's rate with the same statements. */
export function pageBenchmark({ name, title, path, contains }: Page): Benchmark {
  return {
    name,
    title,
    tools: ['wrk', 'pgbench'],
    checks: [throughput(GATEWAY, PGBENCH, 0.6)],
    async prepare(world) {
      const gateway = await world.gateway()
      const body = await fetchOk(gateway.url + path, await world.headers())
      if (!body.includes(contains)) throw new Error(`${path} does not answer with ${contains}: ${body.slice(0, 500)}`)
      return [await httpLane(world, GATEWAY, gateway.url + path), ...(await pgbenchLanes(world, name, path, null))]
    },
  }
}

export function throughput(lane: string, references: readonly string[], target: number | null): Ratio {
  return { kind: 'ratio', unit: '/s', lane, references, better: 'higher', target }
}

/** For lanes that write; neither is included in the measured time. */
export interface Around {
  /** Removes what the previous lane has left. */
  before?(): Promise<void>
  /** Throws if the lane's results do not match its figure. */
  after?(requests: number): Promise<void>
}

/** A lane with wrk, warmed up. */
export async function httpLane(
  world: World,
  name: string,
  url: string,
  { before, after, ...more }: Partial<Load> & Around = {},
): Promise<Lane> {
  const load = { url, headers: await world.headers(), connections: CONNECTIONS, ...more }
  const run = (seconds: number) =>
    wrk({ ...load, seconds }).catch(cause => {
      throw new Error(`${name}: ${(cause as Error).message}`, { cause })
    })
  await run(WARM_UP_SECONDS)
  return {
    name,
    async measure() {
      await before?.()
      const { figures, requests } = await run(world.seconds)
      await after?.(requests)
      return figures
    },
  }
}

/** `random`: the value of the request that is replaced by random values. */
export async function pgbenchLanes(
  world: World,
  name: string,
  path: string,
  random: Random | null,
  { before, after, sending }: { readonly sending?: Sending } & Around = {},
): Promise<readonly Lane[]> {
  const { url } = await world.database()
  const script = await writeScript(world.folder, name, await world.sent(path, sending), random)
  return PGBENCH_CLIENTS.map(clients => ({
    name: pgbenchName(clients),
    async measure() {
      await before?.()
      const { figures, requests } = await pgbench(url, script, clients, world.seconds)
      await after?.(requests)
      return figures
    },
  }))
}

function pgbenchName(clients: number): string {
  return `pgbench -c ${clients}`
}
