/** Counts the rows that match a filter. */
import type { Benchmark } from './harness/benchmark.ts'
import { TENANT } from './harness/database.ts'
import { GATEWAY, httpLane, PGBENCH, pgbenchLanes, throughput } from './harness/lanes.ts'
import { fetchOk } from './harness/world.ts'

const PATH = '/api/orders/aggregate?fn=count&status=pending'

export const aggregate: Benchmark = {
  name: 'aggregate',
  title: 'Aggregate: count of the rows that a filter leaves',
  tools: ['wrk', 'pgbench'],
  checks: [throughput(GATEWAY, PGBENCH, 0.6)],
  async prepare(world) {
    const database = await world.database()
    const gateway = await world.gateway()
    const [expected] = await database.admin(
      `select count(*)::int as count from orders where status = 'pending' and tenant_id = '${TENANT.id}'`,
    )
    const body = await fetchOk(gateway.url + PATH, await world.headers())
    if (expected?.count === 0 || JSON.parse(body).data.count !== expected?.count)
      throw new Error(`${PATH} does not answer with ${expected?.count}: ${body}`)
    return [await httpLane(world, GATEWAY, gateway.url + PATH), ...(await pgbenchLanes(world, 'aggregate', PATH, null))]
  },
}
