/** The cost of a request's statements in PostgreSQL, against the fewest that isolate a tenant. */
import type { Benchmark, Lane } from './harness/benchmark.ts'
import type { Sent } from './harness/capture.ts'
import { throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { pgbench, type Random, writeScript } from './harness/pgbench.ts'
import { sending } from './harness/sending.ts'
import type { World } from './harness/world.ts'
import { emptyReadings, READINGS } from './harness/write-tables.ts'

const KINDS = ['get', 'list', 'insert'] as const
type Kind = (typeof KINDS)[number]

const CLIENTS = 4
const SETTINGS = ['app.current_tenant_id', 'app.current_user_id', 'app.current_role', 'statement_timeout'] as const

const own = (kind: Kind) => `${kind}: the gateway's statements`
const plain = (kind: Kind) => `${kind}: BEGIN, 4 settings, the statement, COMMIT`

export const statements: Benchmark = {
  name: 'statements',
  title: 'Statements of a request',
  tools: ['pgbench'],
  checks: KINDS.map(kind => throughput(own(kind), [plain(kind)], 0.95)),
  async prepare(world) {
    const ids = await orderIds(world)
    const random = { ...ids, value: String(ids.first) }
    const row = sending('POST', { sensor: 'sensor-17', value: 1013.25, taken_at: '2026-01-01T12:00:00Z', unit: 'hPa' })
    return [
      ...(await lanes(world, 'get', await world.sent(`/api/orders/${ids.first}`), random)),
      ...(await lanes(world, 'list', await world.sent('/api/orders?status=paid&sort=-placed_at&limit=25'))),
      ...(await lanes(world, 'insert', await world.sent(`/api/${READINGS}`, row))),
    ]
  },
}

async function lanes(world: World, kind: Kind, sent: readonly Sent[], random: Random | null = null): Promise<Lane[]> {
  const database = await world.database()
  const lane = async (name: string, file: string, list: readonly Sent[]): Promise<Lane> => {
    const script = await writeScript(world.folder, file, list, random)
    return {
      name,
      async measure() {
        await emptyReadings(database)
        return (await pgbench(database.url, script, CLIENTS, world.seconds)).figures
      },
    }
  }
  return [await lane(own(kind), `${kind}-own`, sent), await lane(plain(kind), `${kind}-plain`, plainOf(sent))]
}

/** The same statement in an explicit transaction, after the settings that a hand-written server would set. */
function plainOf([settings, statement]: readonly Sent[]): readonly Sent[] {
  if (settings === undefined || statement === undefined) throw new Error('expected the settings and a statement')
  const values = SETTINGS.map(name => {
    const [, number] = new RegExp(`set_config\\('${name}', \\$(\\d+)`).exec(settings.text) ?? []
    const value = settings.parameters[Number(number) - 1]
    if (value === undefined) throw new Error(`the gateway does not set ${name}: ${settings.text}`)
    return value
  })
  const calls = SETTINGS.map((name, index) => `set_config('${name}', $${index + 1}, true)`)
  return [
    { text: 'BEGIN', parameters: [] },
    { text: `SELECT ${calls.join(', ')}`, parameters: values },
    statement,
    { text: 'COMMIT', parameters: [] },
  ]
}
