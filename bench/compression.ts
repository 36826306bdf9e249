/**
 * The size from which compressing a response pays off: the CPU time on the gateway's core, compared with the
 * time that the saved bytes would take on a link of 100 Mbit/s. `cost` is the ratio, so below 1 the client
 * has its response sooner.
 */
import { type Coding, compress } from '../src/http/compression.ts'
import type { Benchmark, Figures, Lane } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { fetchOk, type World } from './harness/world.ts'

const CODINGS: readonly Coding[] = ['br', 'gzip']
const SIZES = [256, 512, 1_024, 2_048, 4_096, 16_384] as const
/** The default of `compress_min_bytes`. */
const THRESHOLD = 1_024

const LINK_BYTES_PER_US = 12.5

/** More bytes than the largest size. */
const BODY_PATH = '/api/orders?limit=200'
const LIST_PATH = '/api/orders?limit=25'

const PLAIN = 'list of 25 rows, as it is'

export const compression: Benchmark = {
  name: 'compression',
  title: 'Compression: time on the core against time saved on a link of 100 Mbit/s',
  tools: ['wrk'],
  checks: [
    ...CODINGS.map(coding => ({
      ...({ kind: 'limit', unit: 'cost', lane: laneName(coding, THRESHOLD), atMost: 1 } as const),
    })),
    ...CODINGS.map(coding => throughput(listName(coding), [PLAIN], null)),
  ],
  async prepare(world) {
    const gateway = await world.gateway()
    const headers = await world.headers()
    const body = Buffer.from(await fetchOk(gateway.url + BODY_PATH, headers))
    const list = (name: string, accepted: Readonly<Record<string, string>>) =>
      httpLane(world, name, gateway.url + LIST_PATH, { headers: { ...headers, ...accepted } })
    return [
      ...CODINGS.flatMap(coding => SIZES.map(size => sizeLane(world, coding, body.subarray(0, size)))),
      await list(PLAIN, {}),
      await list(listName('br'), { 'Accept-Encoding': 'br' }),
      await list(listName('gzip'), { 'Accept-Encoding': 'gzip' }),
    ]
  },
}

function laneName(coding: Coding, size: number): string {
  return `${coding}, ${size} bytes`
}

function listName(coding: Coding): string {
  return `list of 25 rows, ${coding}`
}

const WARM_UP = 200

function sizeLane(world: World, coding: Coding, body: Buffer): Lane {
  return {
    name: laneName(coding, body.length),
    async measure(): Promise<Figures> {
      for (let i = 0; i < WARM_UP; i++) await compress(body, coding)
      const until = performance.now() + (world.seconds * 1_000) / SIZES.length
      const before = process.cpuUsage()
      let times = 0
      let bytes = 0
      for (; performance.now() < until; times++) bytes = (await compress(body, coding)).length
      const { user, system } = process.cpuUsage(before)
      const us = (user + system) / times
      return { µs: us, '% left': (100 * bytes) / body.length, cost: us / ((body.length - bytes) / LINK_BYTES_PER_US) }
    },
  }
}
