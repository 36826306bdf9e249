/** A thousand rows created by one request and returned: in one PostgreSQL statement, and in ten. */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, PGBENCH, pgbenchLanes, throughput } from './harness/lanes.ts'
import { type Sending, sending } from './harness/sending.ts'
import { fetchOk } from './harness/world.ts'
import { assertReadings, emptyReadings, READINGS } from './harness/write-tables.ts'

const ROWS = 1_000
/**
 * A request takes so long that more concurrency would only add waiting. Requests in progress at the end do
 * not count.
 */
const CONNECTIONS = 4
const MIXED = 'gateway, 10 sets of keys in turn'

export const batch: Benchmark = {
  name: 'batch',
  title: `Insert ${ROWS} rows at once`,
  tools: ['wrk', 'pgbench'],
  checks: [throughput(GATEWAY, PGBENCH, 0.6), throughput(MIXED, PGBENCH, null)],
  async prepare(world) {
    const database = await world.database()
    const path = `/api/${READINGS}`
    const gateway = await world.gateway()
    const alike = sending(
      'POST',
      Array.from({ length: ROWS }, (_, n) => reading(n)),
    )
    const mixed = sending(
      'POST',
      Array.from({ length: ROWS }, (_, n) => ({ ...reading(n), ...KEY_SETS[n % KEY_SETS.length] })),
    )
    const more = {
      before: () => emptyReadings(database),
      after: (requests: number) => assertReadings(database, requests * ROWS),
    }
    const lane = async (name: string, rows: Sending) => {
      await emptyReadings(database)
      const { count } = JSON.parse(await fetchOk(gateway.url + path, await world.headers(), rows))
      const [found] = await database.admin(`select count(*)::int as rows, sum(value)::text as sum from ${READINGS}`)
      if (count !== ROWS || found?.rows !== ROWS || found.sum !== SUM)
        throw new Error(`${name} answers with ${count} rows, the table has ${found?.rows} with the sum ${found?.sum}`)
      return httpLane(world, name, gateway.url + path, { ...more, sending: rows, connections: CONNECTIONS })
    }
    return [
      await lane(GATEWAY, alike),
      ...(await pgbenchLanes(world, 'batch', path, null, { ...more, sending: alike })),
      await lane(MIXED, mixed),
    ]
  },
}

function reading(n: number) {
  return {
    sensor: `sensor-${n % 50}`,
    value: 1000 + n / 1000,
    taken_at: new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString(),
    unit: 'hPa',
    note: `reading ${n}`,
  }
}

/** The sum over the values of all rows: 1000.000 to 1000.999. */
const SUM = '1000499.500'

/** Undefined members are omitted from the JSON, so every row has different keys. */
const KEY_SETS: readonly object[] = [
  {},
  { note: undefined },
  { unit: undefined },
  { taken_at: undefined },
  { note: undefined, unit: undefined },
  { quality: 1 },
  { quality: 1, note: undefined },
  { station: 'north' },
  { station: 'north', note: undefined },
  { station: 'north', quality: 1 },
]
