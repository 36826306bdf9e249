/** A function that does almost nothing, called with named arguments: the overhead of a call. */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, PGBENCH, pgbenchLanes, throughput } from './harness/lanes.ts'
import { sending } from './harness/sending.ts'
import { fetchOk } from './harness/world.ts'
import { ADD, ADD_VOLATILE } from './harness/write-tables.ts'

/** A volatile function can write, so more has to be reset after it. */
const VOLATILE = 'gateway, a volatile function'
const ARGUMENTS = sending('POST', { a: 19, b: 23 })

export const rpc: Benchmark = {
  name: 'rpc',
  title: 'Call of a trivial function',
  tools: ['wrk', 'pgbench'],
  checks: [throughput(GATEWAY, PGBENCH, 0.6), throughput(VOLATILE, [GATEWAY], null)],
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
      await lane(VOLATILE, ADD_VOLATILE),
    ]
  },
}
