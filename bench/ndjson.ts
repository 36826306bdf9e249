/** A million rows as NDJSON while PostgreSQL produces them, and the memory that the gateway uses. */
import type { Benchmark, Figures } from './harness/benchmark.ts'
import { STREAM_ROWS, STREAM_TABLE } from './harness/database.ts'
import { watchMemory } from './harness/memory.ts'
import { runProgram } from './harness/processes.ts'
import { copyRows } from './harness/psql.ts'
import { requireTool } from './harness/tools.ts'
import { COST_GUARD_OFF, type World } from './harness/world.ts'

const GATEWAY = 'gateway'
const COPY = 'psql, COPY (select row_to_json …) TO STDOUT'

export const ndjson: Benchmark = {
  name: 'ndjson',
  title: `Stream of ${STREAM_ROWS} rows`,
  tools: ['curl', 'psql'],
  checks: [
    { kind: 'ratio', unit: 'rows/s', lane: GATEWAY, references: [COPY], better: 'higher', target: 0.5 },
    { kind: 'limit', unit: 'MB grown', lane: GATEWAY, atMost: 64 },
  ],
  async prepare(world) {
    const database = await world.database()
    const [settings] = await world.sent(`/api/${STREAM_TABLE}?limit=1`)
    if (settings === undefined) throw new Error('the gateway sends settings first')
    const [size] = await database.admin(
      `select sum(octet_length(row_to_json(t)::text) + 1)::float8 as bytes from ${STREAM_TABLE} t`,
    )
    return [
      { name: GATEWAY, measure: () => stream(world, Number(size?.bytes), {}) },
      {
        name: COPY,
        async measure() {
          const seconds = await copyRows(database.url, settings, `select row_to_json(t) from ${STREAM_TABLE} t`)
          return { 'rows/s': STREAM_ROWS / seconds }
        },
      },
    ]
  },
}

/**
 * Streams the table. A new process for each measurement, because one that has streamed before already has its
 * memory. `bytesExpected`: null for any number.
 */
export async function stream(
  world: World,
  bytesExpected: number | null,
  more: Readonly<Record<string, string>>,
): Promise<Figures> {
  const gateway = await world.startGateway({ settings: ['max_result_rows = 0', ...COST_GUARD_OFF] })
  const memory = watchMemory(gateway.pid)
  try {
    const headers = { ...(await world.headers()), ...more }
    const { bytes, seconds } = await download(`${gateway.url}/api/${STREAM_TABLE}?stream=true`, headers)
    if (bytesExpected !== null && bytes !== bytesExpected)
      throw new Error(`the stream had ${bytes} bytes; expected ${bytesExpected}`)
    return { 'rows/s': STREAM_ROWS / seconds, 'MB grown': memory.stop() / 1e6 }
  } finally {
    memory.stop()
    await gateway.stop()
  }
}

async function download(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ bytes: number; seconds: number }> {
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const format = '%{size_download} %{time_total}'
  const { stdout } = await runProgram(requireTool('curl'), [
    '-sS',
    '--fail',
    '-o',
    '/dev/null',
    '-w',
    format,
    ...given,
    url,
  ])
  const [bytes = Number.NaN, seconds = Number.NaN] = stdout.split(' ').map(Number)
  return { bytes, seconds }
}
