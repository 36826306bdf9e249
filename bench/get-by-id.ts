/** One row by its primary key, a random one each time. */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, PGBENCH, pgbenchLanes, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { fetchOk } from './harness/world.ts'

const LOGGING = 'gateway, a log line per request'
const FASTIFY_PG = 'Fastify + pg'
const FASTIFY_POSTGRES = 'Fastify + postgres.js'
const HELLO = 'Fastify, hello world'

export const getById: Benchmark = {
  name: 'get-by-id',
  title: 'Get by id',
  tools: ['wrk', 'pgbench'],
  checks: [
    throughput(GATEWAY, PGBENCH, 0.6),
    throughput(GATEWAY, [FASTIFY_PG], 4),
    throughput(GATEWAY, [FASTIFY_POSTGRES], null),
    throughput(GATEWAY, [HELLO], null),
    throughput(LOGGING, PGBENCH, null),
  ],
  async prepare(world) {
    const ids = await orderIds(world)
    const path = '/api/orders/'
    const gateway = await world.gateway()
    const logging = await world.startGateway({ logLevel: 'info' })
    const pg = await world.startReference('fastify-pg')
    const postgres = await world.startReference('fastify-postgres')
    const hello = await world.startReference('fastify-hello')
    for (const { url } of [gateway, pg, postgres]) {
      const body = await fetchOk(`${url}${path}${ids.first}`, await world.headers())
      const { data } = JSON.parse(body)
      if (Number(data.id) !== ids.first || data.number === undefined)
        throw new Error(`${url} does not answer with the order: ${body}`)
    }
    return [
      await httpLane(world, GATEWAY, gateway.url + path, { ids }),
      ...(await pgbenchLanes(world, 'get-by-id', path + ids.first, { ...ids, value: String(ids.first) })),
      await httpLane(world, FASTIFY_PG, pg.url + path, { ids }),
      await httpLane(world, FASTIFY_POSTGRES, postgres.url + path, { ids }),
      await httpLane(world, HELLO, `${hello.url}/hello`),
      await httpLane(world, LOGGING, logging.url + path, { ids }),
    ]
  },
}
