/**
 * Calls of the tool server in one process on one core: a query is parsed, printed, formatted, and returned
 * with its tree.
 */
import type { Benchmark, Lane } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { type Sending, sending } from './harness/sending.ts'
import { fetchOk } from './harness/world.ts'

const PARSE = 'svc_parse_query'
const REFUSED = 'svc_parse_query, of a query that is wrong'
const SEARCH = 'svc_search'
const HELLO = 'Fastify, hello world'

/** 2 000 calls a second. */
const PARSE_MICROS_MAX = 500

const QUERY =
  'get users u join posts p on p.user_id = u.id fields u.name, p.title where u.active = true order by p.id limit 20'

export const mcp: Benchmark = {
  name: 'mcp',
  title: 'Tool server, one core',
  tools: ['wrk'],
  checks: [
    { kind: 'limit', unit: 'µs', lane: PARSE, atMost: PARSE_MICROS_MAX },
    throughput(PARSE, [HELLO], null),
    throughput(REFUSED, [HELLO], null),
    throughput(SEARCH, [HELLO], null),
  ],
  async prepare(world) {
    const server = await world.startReference('mcp', { path: '/mcp', status: 405 })
    const hello = await world.startReference('fastify-hello')
    const lane = async (name: string, called: Sending, contains: string): Promise<Lane> => {
      const url = `${server.url}/mcp`
      const body = await fetchOk(url, {}, called)
      if (!body.includes(contains)) throw new Error(`${name} does not answer with ${contains}: ${body.slice(0, 500)}`)
      return withMicros(await httpLane(world, name, url, { sending: called }))
    }
    return [
      await lane(PARSE, call('svc_parse_query', { query: QUERY }), '"ok":true'),
      await lane(REFUSED, call('svc_parse_query', { query: QUERY.replace('where', 'wher') }), '"ok":false'),
      await lane(SEARCH, call('svc_search', { query: 'rate limit behind a proxy' }), 'behind-proxies'),
      await httpLane(world, HELLO, `${hello.url}/hello`),
    ]
  },
}

function call(name: string, given: object): Sending {
  return sending('POST', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } })
}

/** CPU time of the process per call; the response time also includes waiting for other calls. */
function withMicros(lane: Lane): Lane {
  return {
    ...lane,
    async measure() {
      const figures = await lane.measure()
      return { ...figures, µs: 1e6 / (figures['/s'] ?? 0) }
    },
  }
}
