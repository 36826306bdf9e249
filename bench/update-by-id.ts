/** Two columns of one row changed by primary key, a random row each time. */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, PGBENCH, pgbenchLanes, throughput } from './harness/lanes.ts'
import { sending } from './harness/sending.ts'
import { fetchOk } from './harness/world.ts'
import { ITEMS, ITEMS_COUNT, tidyItems } from './harness/write-tables.ts'

const CHANGES = sending('PATCH', { quantity: 250, price: 19.95 })

export const updateById: Benchmark = {
  name: 'update-by-id',
  title: 'Update by id',
  tools: ['wrk', 'pgbench'],
  checks: [throughput(GATEWAY, PGBENCH, 0.6)],
  async prepare(world) {
    const database = await world.database()
    const ids = { first: 1, last: ITEMS_COUNT }
    const path = `/api/${ITEMS}/`
    const gateway = await world.gateway()
    const body = await fetchOk(`${gateway.url}${path}${ids.last}`, await world.headers(), CHANGES)
    const [row] = await database.admin(`select quantity from ${ITEMS} where id = ${ids.last}`)
    if (JSON.parse(body).data.quantity !== row?.quantity || row?.quantity !== 250)
      throw new Error(`${gateway.url} has not changed the row that it answers: ${body}`)
    const more = { sending: CHANGES, before: () => tidyItems(database) }
    const random = { ...ids, value: String(ids.first) }
    return [
      await httpLane(world, GATEWAY, gateway.url + path, { ...more, ids }),
      ...(await pgbenchLanes(world, 'update-by-id', path + ids.first, random, more)),
    ]
  },
}
