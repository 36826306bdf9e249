/** A function that does almost nothing, called with named arguments: the overhead of a call. */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, PGBENCH, pgbenchLanes, throughput } from './harness/lanes.ts'
import { sending } from './harness/sending.ts'
import { fetchOk } from './harness/world.ts'
import { ADD, ADD_RESETTING } from './harness/write-tables.ts'

/** A function that sets a setting is followed by a reset of the session. */
const RESETTING = 'gateway, a function that sets a setting'
const ARGUMENTS = sending('POST', { a: 19, b: 23 })

export const rpc: Benchmark = {
  name: 'rpc',
  title: 'Call of a trivial function',
  tools: ['wrk', 'pgbench'],
  checks: [throughput(GATEWAY, PGBENCH, 0.6), throughput(RESETTING, [GATEWAY], null)],
  async prepare(world) {
    const gateway = await world.gateway()
    const lane = async (name: string, called: string) => {
      const url = `${gateway.url}/api/rpc/${called}`
      const body = await fetchOk(url, await world.headers(), ARGUMENTS)
      if (JSON.parse(body).data !== 42) throw new Error(`${url} does not answer with 42: ${body}`)
      return httpLane(world, name, url, { sending: ARGUMENTS })
    }
    return [
      await lane(GATEWAY, ADD),
      ...(await pgbenchLanes(world, 'rpc', `/api/rpc/${ADD}`, null, { sending: ARGUMENTS })),
      await lane(RESETTING, ADD_RESETTING),
    ]
  },
}
