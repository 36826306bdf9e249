/** The same requests to a gateway of one process and to one of two workers, with the same pool. */
import type { Benchmark } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { fetchOk } from './harness/world.ts'

const ONE_CACHED = 'one process, hits of the result cache'
const TWO_CACHED = 'two workers, hits of the result cache'
const ONE = 'one process'
const TWO = 'two workers'

/** Enough rows that every requested one exists, and few enough that each worker soon has all of them. */
const ROWS = 200
const CACHE_ON: readonly string[] = ['cache.enabled = true', 'cache.ttl_secs = 86400']

export const workers: Benchmark = {
  name: 'workers',
  title: 'One process and two workers',
  tools: ['wrk'],
  checks: [throughput(TWO_CACHED, [ONE_CACHED], null), throughput(TWO, [ONE], null)],
  async prepare(world) {
    const { first } = await orderIds(world)
    const ids = { first, last: first + ROWS - 1 }
    const lanes = [
      [ONE_CACHED, ['workers = 1', ...CACHE_ON]],
      [TWO_CACHED, ['workers = 2', ...CACHE_ON]],
      [ONE, ['workers = 1']],
      [TWO, ['workers = 2']],
    ] as const
    return Promise.all(
      lanes.map(async ([name, settings]) => {
        const gateway = await world.startGateway({ settings })
        const url = `${gateway.url}/api/orders/`
        await fetchOk(url + first, await world.headers())
        return httpLane(world, name, url, { ids })
      }),
    )
  },
}
