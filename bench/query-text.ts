/** A text of the query language, sent again and again, and the list that the same statement answers. */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, throughput } from './harness/lanes.ts'
import { sending } from './harness/sending.ts'
import { fetchOk, type World } from './harness/world.ts'

const LIST = 'list below /api'
const CONTAINS = '"count":25'
const PATH = '/api/orders?status=paid&sort=-placed_at&limit=25'
const TEXT = sending('POST', {
  query: 'get orders where status = :status order by placed_at desc, id limit 25',
  parameters: { status: 'paid' },
})

export const queryText: Benchmark = {
  name: 'query-text',
  title: 'Text of the query language, the same each time',
  tools: ['wrk'],
  checks: [throughput(GATEWAY, [LIST], 0.9)],
  async prepare(world: World) {
    const gateway = await world.gateway()
    const lane = async (name: string, path: string, sent?: typeof TEXT) => {
      const url = gateway.url + path
      const body = await fetchOk(url, await world.headers(), sent)
      if (!body.includes(CONTAINS)) throw new Error(`${path} does not answer with ${CONTAINS}: ${body.slice(0, 500)}`)
      return httpLane(world, name, url, { sending: sent })
    }
    return [await lane(GATEWAY, '/api/_query', TEXT), await lane(LIST, PATH)]
  },
}
