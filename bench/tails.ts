/** The slowest responses: at saturation, and at a constant rate. */
import type { Benchmark, Check, Lane } from './harness/benchmark.ts'
import { openLoop } from './harness/go.ts'
import { httpLane } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import type { Service } from './harness/processes.ts'
import { sending } from './harness/sending.ts'
import { fetchOk, type World } from './harness/world.ts'
import { emptyReadings, READINGS } from './harness/write-tables.ts'
import { type Load, wrk } from './harness/wrk.ts'

const LIST = '/api/orders?status=paid&sort=-placed_at&limit=25'
const ROW = sending('POST', { sensor: 's', value: 1013.25, taken_at: '2026-01-01T12:00:00Z', unit: 'hPa', note: 'n' })

/** Closed loops: so many clients wait for their response before they send the next request. */
const CROWDS = [32, 256] as const
const REQUESTS = ['get', 'list', 'expand', 'insert'] as const
/** Limit on the 99th percentile as a multiple of the median. */
const SPREAD_MAX = 3

/** Shares of the rate at which the server written with Fastify is saturated. */
const SHARES = [50, 80] as const
const READS = ['get', 'list'] as const
const SERVERS = ['gateway', 'Go + pgx', 'Fastify + pg'] as const
/** Enough for every request that is due while the slowest server answers. */
const OPEN_CONNECTIONS = 64
const RATE_SECONDS = 3

export const tails: Benchmark = {
  name: 'tails',
  title: 'Slowest responses',
  tools: ['wrk', 'go'],
  checks: [
    ...REQUESTS.flatMap(request => CROWDS.map(crowd => spread(crowdLane(request, crowd)))),
    ...READS.flatMap(read => SHARES.flatMap(share => tailChecks(read, share))),
  ],
  async prepare(world) {
    const ids = await orderIds(world)
    const servers: Record<(typeof SERVERS)[number], Service> = {
      gateway: await world.gateway(),
      'Go + pgx': await world.startGoReference(),
      'Fastify + pg': await world.startReference('fastify-pg'),
    }
    const { gateway } = servers
    const requests: Record<(typeof REQUESTS)[number], Pick<Load, 'url' | 'ids' | 'sending'>> = {
      get: { url: `${gateway.url}/api/orders/`, ids },
      list: { url: gateway.url + LIST },
      expand: { url: `${gateway.url}/api/orders?sort=-placed_at&limit=25&expand=customer` },
      insert: { url: `${gateway.url}/api/${READINGS}`, sending: ROW },
    }
    const database = await world.database()
    const before = () => emptyReadings(database)
    const crowds: Lane[] = []
    for (const request of REQUESTS) {
      const { url, ...load } = requests[request]
      for (const connections of CROWDS) {
        const more = request === 'insert' ? { before } : {}
        crowds.push(await httpLane(world, crowdLane(request, connections), url, { ...load, ...more, connections }))
      }
    }
    const paths = { get: { path: '/api/orders/', ids }, list: { path: LIST } }
    await assertSameRows(world, Object.values(servers), `/api/orders/${ids.first}`)
    const open: Lane[] = []
    for (const read of READS) {
      const { path, ...numbers } = paths[read]
      const load = { ...numbers, headers: await world.headers() }
      const slowest = { url: servers['Fastify + pg'].url + path, connections: CROWDS[0], seconds: RATE_SECONDS }
      const { figures } = await wrk({ ...load, ...slowest })
      for (const share of SHARES) {
        const rate = Math.round(((figures['/s'] ?? 0) * share) / 100)
        for (const server of SERVERS) {
          const url = servers[server].url + path
          const measure = () => openLoop({ ...load, url, rate, connections: OPEN_CONNECTIONS, seconds: world.seconds })
          await measure()
          open.push({ name: openLane(read, share, server), measure })
        }
      }
    }
    return [...crowds, ...open]
  },
}

function crowdLane(request: string, connections: number): string {
  return `${request} at saturation, ${connections} connections`
}

function spread(lane: string): Check {
  return { kind: 'limit', unit: 'p99 / p50', lane, atMost: SPREAD_MAX }
}

function openLane(read: string, share: number, server: string): string {
  return `${read} at ${share} % of Fastify's saturation: ${server}`
}

function tailChecks(read: string, share: number): readonly Check[] {
  const [lane = '', ...references] = SERVERS.map(server => openLane(read, share, server))
  return ['p99 ms', 'p99.9 ms'].map(unit => ({ kind: 'ratio', unit, lane, references, better: 'lower', target: 1 }))
}

/** Figures of servers that do different work cannot be compared. */
async function assertSameRows(world: World, servers: readonly Service[], path: string): Promise<void> {
  const bodies = await Promise.all(servers.map(async ({ url }) => fetchOk(url + path, await world.headers())))
  const numbers = new Set(bodies.map(body => JSON.parse(body).data.number))
  if (numbers.size !== 1) throw new Error(`the servers answer differently: ${bodies.join('\n')}`)
}
