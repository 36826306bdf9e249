/** Reads and writes by a gateway with one read replica, and by one without. All servers share the machine. */
import type { Benchmark } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { sending } from './harness/sending.ts'
import { fetchOk, type World } from './harness/world.ts'
import { assertReadings, emptyReadings, READINGS } from './harness/write-tables.ts'

const READS = 'reads, one replica'
const READS_ALONE = 'reads, no replica'
const WRITES = 'writes, one replica'
const WRITES_ALONE = 'writes, no replica'

const ROW = sending('POST', { sensor: 'sensor-17', value: 1, taken_at: '2026-01-01T12:00:00Z', unit: 'hPa', note: '' })

export const replicas: Benchmark = {
  name: 'replicas',
  title: 'One read replica and none',
  tools: ['wrk'],
  checks: [throughput(READS, [READS_ALONE], null), throughput(WRITES, [WRITES_ALONE], null)],
  async prepare(world) {
    const ids = await orderIds(world)
    const database = await world.database()
    const standby = await world.standby()
    const alone = await world.startGateway()
    const settings = ['[[gateway.replicas]]', `url = ${JSON.stringify(standby.url)}`]
    const { url } = await world.startGateway({ settings })
    await usesReplica(world, url, `${url}/api/orders/${ids.first}`)
    const inserts = {
      sending: ROW,
      before: () => emptyReadings(database),
      after: (requests: number) => assertReadings(database, requests),
    }
    return [
      await httpLane(world, READS_ALONE, `${alone.url}/api/orders/`, { ids }),
      await httpLane(world, READS, `${url}/api/orders/`, { ids }),
      await httpLane(world, WRITES_ALONE, `${alone.url}/api/${READINGS}`, inserts),
      await httpLane(world, WRITES, `${url}/api/${READINGS}`, inserts),
    ]
  },
}

/** Resolves when the replica has answered a read. */
async function usesReplica(world: World, gateway: string, read: string): Promise<void> {
  const headers = await world.headers()
  for (let count = 0; count < 1_000; count++) {
    await fetchOk(read, headers)
    const { replicas: states } = JSON.parse(await fetchOk(`${gateway}/health/internal`, headers))
    if (states[0].reads > 0) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  throw new Error('the replica answers no reads')
}
