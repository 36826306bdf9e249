/** Reads answered from the result cache: a token, a plan and a map lookup, without the database. */
import type { Benchmark, Lane } from './harness/benchmark.ts'
import { GATEWAY, httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { fetchOk, type World } from './harness/world.ts'

const HELLO = 'Fastify, hello of the same size'
const LIST = 'gateway, a list of 25'
const HELLO_LIST = 'Fastify, hello of the size of the list'

/** Enough rows that every requested one exists. */
const ROWS = 500
/** No entry expires during a measurement. */
const CACHE_ON: readonly string[] = ['cache.enabled = true', 'cache.ttl_secs = 86400']
const LIST_PATH = '/api/orders?sort=-placed_at&limit=25'

export const cache: Benchmark = {
  name: 'cache',
  title: 'A hit of the result cache',
  tools: ['wrk'],
  checks: [throughput(GATEWAY, [HELLO], 0.6), throughput(LIST, [HELLO_LIST], null)],
  async prepare(world) {
    const { first } = await orderIds(world)
    const gateway = await world.startGateway({ settings: CACHE_ON })
    const hello = await world.startReference('fastify-hello')
    const one = `${gateway.url}/api/orders/`
    const list = gateway.url + LIST_PATH
    const oneBytes = (await fetchOk(one + first, await world.headers())).length
    const listBytes = (await fetchOk(list, await world.headers())).length
    return [
      await hits(world, GATEWAY, one, gateway.url, { first, last: first + ROWS - 1 }),
      await httpLane(world, HELLO, `${hello.url}/hello/${oneBytes}`),
      await hits(world, LIST, list, gateway.url),
      await httpLane(world, HELLO_LIST, `${hello.url}/hello/${listBytes}`),
    ]
  },
}

/** A lane that fails if its responses did not come from the cache. */
async function hits(
  world: World,
  name: string,
  url: string,
  gateway: string,
  ids?: { readonly first: number; readonly last: number },
): Promise<Lane> {
  let before = 0
  return httpLane(world, name, url, {
    ids,
    async before() {
      before = await hitsOf(gateway)
    },
    async after(requests) {
      const found = (await hitsOf(gateway)) - before
      if (found < requests - ROWS) throw new Error(`${name}: of ${requests} requests only ${found} were hits`)
    },
  })
}

async function hitsOf(gateway: string): Promise<number> {
  return JSON.parse(await fetchOk(`${gateway}/health/internal`, {})).cache.hits
}
