/** Get by id without tracing, for callers that send a trace, and with spans of some or all requests. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseTraceContext } from '../src/trace-context.ts'
import type { Benchmark, Lane } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { fetchOk, type World } from './harness/world.ts'

const OFF = 'no tracing'
const PASSED_ON = 'no tracing, with a trace of the caller'
const UNRECORDED = 'tracing, no trace recorded'
const TENTH = 'tracing, a tenth of the traces recorded'
const ALL = 'tracing, every trace recorded'

/** The work of every request for tracing while it is off. */
const OFF_WORK = 'its whole work without a trace'
/** Tracing that is off may cost a hundredth of a request. */
const OFF_RATIO = 100

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00'

export const tracing: Benchmark = {
  name: 'tracing',
  title: 'Get by id with tracing',
  tools: ['wrk'],
  checks: [
    throughput(OFF_WORK, [OFF], OFF_RATIO),
    ...[PASSED_ON, UNRECORDED, TENTH, ALL].map(lane => throughput(lane, [OFF], null)),
  ],
  async prepare(world) {
    const ids = await orderIds(world)
    const collector = createServer((request, response) => {
      request.resume()
      request.once('end', () => response.end('{}'))
    })
    await new Promise<void>(resolve => collector.listen(0, '127.0.0.1', resolve))
    // It must not keep the program running.
    collector.unref()
    const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`
    const lanes: Lane[] = []
    const token = await world.headers()
    const add = async (name: string, settings: readonly string[], more: Readonly<Record<string, string>> = {}) => {
      const headers = { ...token, ...more }
      const gateway = await world.startGateway({ settings })
      const url = `${gateway.url}/api/orders/`
      await fetchOk(url + ids.first, headers)
      lanes.push(await httpLane(world, name, url, { ids, headers }))
    }
    const traced = (ratio: string) => [
      '[gateway.tracing]',
      'enabled = true',
      `otlp_endpoint = "${endpoint}"`,
      `sample_ratio = ${ratio}`,
    ]
    await add(OFF, [])
    await add(PASSED_ON, [], { traceparent: TRACEPARENT })
    await add(UNRECORDED, traced('0.0'))
    await add(TENTH, traced('0.1'))
    await add(ALL, traced('1.0'))
    return [...lanes, offLane(world, token)]
  },
}

/** Reads the headers of a request that has no trace, which is all that is left of tracing when it is off. */
function offLane({ seconds }: World, headers: Readonly<Record<string, string>>): Lane {
  return {
    name: OFF_WORK,
    async measure() {
      const startedAt = performance.now()
      let [requests, elapsed] = [0, 0]
      while (elapsed < seconds * 1_000) {
        for (let count = 0; count < 100_000; count++) {
          if (parseTraceContext(headers) !== null) throw new Error('the headers have a trace')
        }
        requests += 100_000
        elapsed = performance.now() - startedAt
      }
      return { '/s': (requests / elapsed) * 1_000 }
    },
  }
}
