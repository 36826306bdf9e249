/** One connection for a tenant instead of several, where PostgreSQL and the gateway share two cores. */
import type { Benchmark, Lane } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { sending } from './harness/sending.ts'
import { emptyReadings, READINGS } from './harness/write-tables.ts'

const REQUESTS = ['get', 'list', 'expand', 'insert'] as const
const ROW = sending('POST', { sensor: 's', value: 1013.25, taken_at: '2026-01-01T12:00:00Z', unit: 'hPa', note: 'n' })

export const oneConnection: Benchmark = {
  name: 'one-connection',
  title: 'One connection for a tenant',
  tools: ['wrk'],
  checks: REQUESTS.flatMap(request => [
    throughput(one(request), [request], null),
    { kind: 'limit', unit: 'p99 / p50', lane: one(request), atMost: 3 },
  ]),
  async prepare(world) {
    const ids = await orderIds(world)
    const database = await world.database()
    const usual = await world.gateway()
    const narrow = await world.startGateway({ settings: ['tenant_max_connections = 1'] })
    const loads = {
      get: { path: '/api/orders/', ids },
      list: { path: '/api/orders?status=paid&sort=-placed_at&limit=25' },
      expand: { path: '/api/orders?sort=-placed_at&limit=25&expand=customer' },
      insert: { path: `/api/${READINGS}`, sending: ROW, before: () => emptyReadings(database) },
    }
    const lanes: Lane[] = []
    for (const request of REQUESTS) {
      const { path, ...load } = loads[request]
      lanes.push(await httpLane(world, request, usual.url + path, load))
      lanes.push(await httpLane(world, one(request), narrow.url + path, load))
    }
    return lanes
  },
}

function one(request: string): string {
  return `${request}, tenant_max_connections = 1`
}
