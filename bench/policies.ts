/** One row by its primary key, of tables that differ in what their policy calls. */
import type { Benchmark, Lane } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { fetchOk } from './harness/world.ts'
import { ITEMS, ITEMS_COUNT, ITEMS_OF_FUNCTION, ITEMS_OF_RESETTING } from './harness/write-tables.ts'

const PLAIN = 'policy that reads a setting'
const HARMLESS = 'policy that calls a function'
const RESETTING = 'policy with a function that sets a setting'

const TABLES: Readonly<Record<string, string>> = {
  [PLAIN]: ITEMS,
  [HARMLESS]: ITEMS_OF_FUNCTION,
  [RESETTING]: ITEMS_OF_RESETTING,
}

export const policies: Benchmark = {
  name: 'policies',
  title: 'Get by id, by policy',
  tools: ['wrk'],
  checks: [throughput(HARMLESS, [PLAIN], 0.95), throughput(RESETTING, [PLAIN], null)],
  async prepare(world) {
    const gateway = await world.gateway()
    const lanes: Lane[] = []
    for (const [name, table] of Object.entries(TABLES)) {
      const url = `${gateway.url}/api/${table}/`
      const body = await fetchOk(`${url}${ITEMS_COUNT}`, await world.headers())
      if (JSON.parse(body).data.id !== ITEMS_COUNT) throw new Error(`${url} does not answer with the row: ${body}`)
      lanes.push(await httpLane(world, name, url, { ids: { first: 1, last: ITEMS_COUNT } }))
    }
    return lanes
  },
}
