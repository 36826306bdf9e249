/**
 * Webhooks that wait in the database: their cost for a write, the rate of one gateway's deliveries, and the
 * effect of a dead endpoint on others. Receivers, database and gateway share the machine.
 */
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { installScript } from '../src/install/script.ts'
import type { Benchmark, Figures } from './harness/benchmark.ts'
import type { Database } from './harness/database.ts'
import { throughput } from './harness/lanes.ts'
import type { Service } from './harness/processes.ts'
import { sending } from './harness/sending.ts'
import type { World } from './harness/world.ts'
import { assertReadings, emptyReadings, HOOKED, READINGS } from './harness/write-tables.ts'
import { wrk } from './harness/wrk.ts'
import { type Capture, withReader } from './realtime/installed.ts'

const PLAIN = 'insert one, without a webhook'
const CAPTURED = 'insert one, with its webhook, by the triggers of a table that is captured'
const LOGGED = 'insert one, with its webhook, from the write-ahead log by this gateway'
const ONE = 'delivered to one receiver'
const TEN = 'delivered to nine of ten receivers'
const DEAD = 'delivered to nine receivers beside a dead one'

const ROW = sending('POST', {
  ...{ sensor: 'sensor-17', value: 1013.25, taken_at: '2026-01-01T12:00:00Z', unit: 'hPa' },
  note: 'after the calibration',
})

const SECRET = Buffer.alloc(32, 1).toString('base64')

/** The number of webhooks to each receiver. */
const DELIVERIES = 5_000

/** The same as in `harness/lanes.ts`. */
const CONNECTIONS = 32
const WARM_UP_SECONDS = 2

type Manner = 'answers' | 'hangs'

export const outbox: Benchmark = {
  name: 'outbox',
  title: 'Webhooks in the outbox of the database',
  tools: ['wrk'],
  checks: [
    throughput(CAPTURED, [PLAIN], null),
    throughput(LOGGED, [PLAIN], 0.9),
    { kind: 'limit', unit: 'µs', lane: ONE, atMost: 500 },
    throughput(DEAD, [TEN], 0.95),
  ],
  async prepare(world) {
    const database = await world.database()
    await install(database, 'triggers')
    return [
      // With the same gateway and triggers, so that only the table differs.
      { name: PLAIN, measure: () => write(world, database, READINGS) },
      { name: CAPTURED, measure: () => write(world, database, HOOKED) },
      {
        name: LOGGED,
        async measure() {
          await install(database, 'wal')
          const figures = await write(world, database, HOOKED, withReader)
          await install(database, 'triggers')
          return figures
        },
      },
      { name: ONE, measure: () => deliver(world, database, 1, null) },
      { name: TEN, measure: () => deliver(world, database, 9, 'answers') },
      { name: DEAD, measure: () => deliver(world, database, 9, 'hangs') },
    ]
  },
}

async function install(database: Database, capture: Capture): Promise<void> {
  const role = new URL(database.url).username
  const selected = [{ schema: 'public', table: HOOKED }]
  const script = installScript({ role, selected, superuser: true, capture })
  await database.admin(['begin', ...script, 'commit'].join(';\n'))
}

/** Uses a gateway, and stops it afterwards. */
const withGateway: typeof withReader = async (_, start, use) => {
  const gateway = await start()
  try {
    return await use(gateway)
  } finally {
    await gateway.stop()
  }
}

/** The webhooks of a hanging receiver are written, and hardly any is delivered. */
async function write(world: World, database: Database, table: string, using = withGateway): Promise<Figures> {
  const receiver = await listen('hangs', () => {})
  await database.admin('truncate svc.change, svc.webhook, svc.webhook_attempt')
  await emptyReadings(database, table)
  const start = () => startGateway(world, [receiver])
  try {
    return await using(database, start, async gateway => {
      const load = {
        url: `${gateway.url}/api/${table}`,
        headers: await world.headers(),
        connections: CONNECTIONS,
        sending: ROW,
      }
      await wrk({ ...load, seconds: WARM_UP_SECONDS })
      const { figures, requests } = await wrk({ ...load, seconds: world.seconds })
      await assertReadings(database, requests, table)
      return figures
    })
  } finally {
    close([receiver])
  }
}

/** Deliveries already waiting for `counted` receivers, timed from the first to arrive to the last. */
async function deliver(world: World, database: Database, counted: number, beside: Manner | null): Promise<Figures> {
  let left = counted * DELIVERIES
  let beganMs = 0
  let finish = (): void => {}
  const finished = new Promise<void>(resolve => {
    finish = resolve
  })
  const count = (): void => {
    if (beganMs === 0) beganMs = performance.now()
    left -= 1
    if (left === 0) finish()
  }
  const receivers = await Promise.all(Array.from({ length: counted }, () => listen('answers', count)))
  const others = beside === null ? [] : [await listen(beside, () => {})]
  const all = [...receivers, ...others]
  await database.admin('truncate svc.webhook, svc.webhook_attempt')
  await database.admin(
    `insert into svc.webhook (id, trigger, "schema", "table", operation, new, created_at, tenant)
     select 'msg_' || r || '_' || n, 'receiver ' || r, 'public', '${HOOKED}', 'INSERT', '${ROW.body}', now(),
       'tenant ' || n % 10
     from generate_series(0, ${all.length - 1}) as r, generate_series(1, ${DELIVERIES}) as n order by n, r`,
  )
  const gateway = await startGateway(world, all)
  try {
    await finished
    const seconds = (performance.now() - beganMs) / 1_000
    return { '/s': (counted * DELIVERIES) / seconds, µs: (seconds * 1e6) / (counted * DELIVERIES) }
  } finally {
    await gateway.stop()
    close(all)
  }
}

async function startGateway(world: World, receivers: readonly Server[]): Promise<Service> {
  const triggers = receivers.map((server, index) => ({
    ...{ name: `receiver ${index}`, table: HOOKED, operations: ['create'] },
    ...{ webhook_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, secret: SECRET },
  }))
  const file = join(world.folder, 'triggers.yaml')
  await writeFile(file, JSON.stringify(triggers))
  const settings = [`events_path = ${JSON.stringify(file)}`, 'webhook_allow = ["127.0.0.1"]', 'drain_timeout_ms = 100']
  return world.startGateway({ settings })
}

async function listen(manner: Manner, came: () => void): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      came()
      if (manner === 'answers') response.writeHead(204).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return server
}

function close(servers: readonly Server[]): void {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
}
