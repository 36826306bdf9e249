/** A million rows as CSV: a stream, and an import; and the memory that the gateway uses. */
import { join } from 'node:path'
import type { Benchmark, Figures } from './harness/benchmark.ts'
import { STREAM_ROWS, STREAM_TABLE, TENANT } from './harness/database.ts'
import { watchMemory } from './harness/memory.ts'
import { runProgram } from './harness/processes.ts'
import { copyFrom, copyRows } from './harness/psql.ts'
import { requireTool } from './harness/tools.ts'
import type { World } from './harness/world.ts'
import { assertReadings, emptyReadings, READINGS } from './harness/write-tables.ts'
import { stream } from './ndjson.ts'

const GATEWAY = 'gateway'
const CSV = 'format csv, header'
const COPY_TO = 'psql, COPY (select …) TO STDOUT (FORMAT csv)'
const COPY_FROM = 'psql, COPY … FROM STDIN (FORMAT csv), as superuser'

export const csvExport: Benchmark = {
  name: 'csv-export',
  title: `Export of ${STREAM_ROWS} rows as CSV`,
  tools: ['curl', 'psql'],
  checks: [
    { kind: 'ratio', unit: 'rows/s', lane: GATEWAY, references: [COPY_TO], better: 'higher', target: 0.5 },
    { kind: 'limit', unit: 'MB grown', lane: GATEWAY, atMost: 64 },
  ],
  async prepare(world) {
    const { url } = await world.database()
    const [settings] = await world.sent(`/api/${STREAM_TABLE}?limit=1`)
    if (settings === undefined) throw new Error('the gateway sends settings first')
    const query = `select * from ${STREAM_TABLE}`
    return [
      { name: GATEWAY, measure: () => stream(world, null, { Accept: 'text/csv' }) },
      {
        name: COPY_TO,
        measure: async () => ({ 'rows/s': STREAM_ROWS / (await copyRows(url, settings, query, CSV)) }),
      },
    ]
  },
}

/** For the default of `tenant_id`. */
const AS_TENANT = { text: "SELECT set_config('app.current_tenant_id', $1, true)", parameters: [TENANT.id] }

/** The columns of the file; the others get their defaults. */
const COLUMNS = 'sensor, value, taken_at, unit, note'
const ROWS = `select 'sensor-' || n % 50 as sensor, 1000 + n % 1000 / 1000.0 as value,
  timestamptz '2026-01-01Z' + n * interval '1 second' as taken_at, 'hPa' as unit, 'reading ' || n as note
  from generate_series(1, ${STREAM_ROWS}) n`

export const csvImport: Benchmark = {
  name: 'csv-import',
  title: `Import of ${STREAM_ROWS} rows of CSV`,
  tools: ['curl', 'psql'],
  checks: [
    { kind: 'ratio', unit: 'rows/s', lane: GATEWAY, references: [COPY_FROM], better: 'higher', target: 0.6 },
    { kind: 'limit', unit: 'MB grown', lane: GATEWAY, atMost: 64 },
  ],
  async prepare(world) {
    const database = await world.database()
    const file = join(world.folder, 'readings.csv')
    await copyRows(database.adminUrl, AS_TENANT, ROWS, CSV, file)
    return [
      {
        name: GATEWAY,
        async measure() {
          await emptyReadings(database)
          const figures = await upload(world, file)
          await assertReadings(database, STREAM_ROWS)
          return figures
        },
      },
      {
        name: COPY_FROM,
        async measure() {
          await emptyReadings(database)
          const seconds = await copyFrom(database.adminUrl, AS_TENANT, `${READINGS} (${COLUMNS})`, CSV, file)
          await assertReadings(database, STREAM_ROWS)
          return { 'rows/s': STREAM_ROWS / seconds }
        },
      },
    ]
  },
}

/** A new process for each measurement, because one that has imported before already has its memory. */
async function upload(world: World, file: string): Promise<Figures> {
  const gateway = await world.startGateway()
  const memory = watchMemory(gateway.pid)
  try {
    const headers = Object.entries({ ...(await world.headers()), 'Content-Type': 'text/csv' })
    const { stdout } = await runProgram(requireTool('curl'), [
      ...['-sS', '--fail', '-X', 'POST', '-T', file, '-o', '/dev/null', '-w', '%{time_total}'],
      ...headers.flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
      `${gateway.url}/api/${READINGS}`,
    ])
    return { 'rows/s': STREAM_ROWS / Number(stdout), 'MB grown': memory.stop() / 1e6 }
  } finally {
    memory.stop()
    await gateway.stop()
  }
}
