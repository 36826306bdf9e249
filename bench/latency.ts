/**
 * One client that sends a request, waits for the response, and repeats: the time that the gateway adds to
 * each response.
 */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, pgbenchLanes } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'

const ALONE = 'pgbench -c 1'
/**
 * The time of an HTTP response without a database: no HTTP gateway can be faster than this and pgbench
 * together.
 */
const HELLO = 'Fastify, hello world'

export const latency: Benchmark = {
  name: 'latency',
  title: 'Get by id, one client: mean time to answer',
  tools: ['wrk', 'pgbench'],
  checks: [
    { kind: 'ratio', unit: 'ms', lane: GATEWAY, references: [ALONE], better: 'lower', target: 1.7 },
    { kind: 'ratio', unit: 'ms', lane: HELLO, references: [ALONE], better: 'lower', target: null },
  ],
  async prepare(world) {
    const ids = await orderIds(world)
    const path = '/api/orders/'
    const gateway = await world.gateway()
    const hello = await world.startReference('fastify-hello')
    const pgbench = await pgbenchLanes(world, 'latency', path + ids.first, { ...ids, value: String(ids.first) })
    return [
      await httpLane(world, GATEWAY, gateway.url + path, { ids, connections: 1 }),
      await httpLane(world, HELLO, `${hello.url}/hello`, { connections: 1 }),
      ...pgbench.filter(({ name }) => name === ALONE),
    ]
  },
}
