/** One row created per request and returned with its key and its defaults. */
import type { Benchmark } from './harness/benchmark.ts'
import { GATEWAY, httpLane, PGBENCH, pgbenchLanes, throughput } from './harness/lanes.ts'
import { sending } from './harness/sending.ts'
import { fetchOk } from './harness/world.ts'
import { assertReadings, emptyReadings, READINGS } from './harness/write-tables.ts'

const FASTIFY_PG = 'Fastify + pg'
const ROW = sending('POST', {
  sensor: 'sensor-17',
  value: 1013.25,
  taken_at: '2026-01-01T12:00:00Z',
  unit: 'hPa',
  note: 'after the calibration',
})

export const insertOne: Benchmark = {
  name: 'insert-one',
  title: 'Insert one',
  tools: ['wrk', 'pgbench'],
  checks: [throughput(GATEWAY, PGBENCH, 0.6), throughput(GATEWAY, [FASTIFY_PG], null)],
  async prepare(world) {
    const database = await world.database()
    const path = `/api/${READINGS}`
    const gateway = await world.gateway()
    const pg = await world.startReference('fastify-pg')
    for (const { url } of [gateway, pg]) {
      await emptyReadings(database)
      const { data } = JSON.parse(await fetchOk(url + path, await world.headers(), ROW))
      const [row] = await database.admin(`select note from ${READINGS} where id = ${Number(data.id)}`)
      if (row?.note !== data.note)
        throw new Error(`${url} has not created the row that it answers: ${JSON.stringify(data)}`)
    }
    const more = {
      sending: ROW,
      before: () => emptyReadings(database),
      after: (requests: number) => assertReadings(database, requests),
    }
    return [
      await httpLane(world, GATEWAY, gateway.url + path, more),
      ...(await pgbenchLanes(world, 'insert-one', path, null, more)),
      await httpLane(world, FASTIFY_PG, pg.url + path, more),
    ]
  },
}
