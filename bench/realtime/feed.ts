/**
 * Subscribers to one table, each of whom sees its tenant's rows, while another client changes the rows
 * directly.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Benchmark, Figures, Lane } from '../harness/benchmark.ts'
import { cpuSeconds } from '../harness/cpu-time.ts'
import { residentBytes } from '../harness/memory.ts'
import { type Service, startClients } from '../harness/processes.ts'
import { SECRET } from '../harness/world.ts'
import type { Heard } from './clients.ts'
import { withReader } from './installed.ts'
import { openPrices, type Prices } from './prices.ts'

const CLIENTS = fileURLToPath(new URL('clients.ts', import.meta.url))
const TENANTS = 200
const SUBSCRIBERS = 4_000
const IDLE = 10_000
const CHANGES_PER_SECOND = 500
const TICK_MS = 20
const BEHIND_MS_MAX = 30_000
const ASK_MS = 500

/** All sockets come from one address, and there are more than the limits allow by default. */
const ALL_CONNECTED = ['max_sockets = 0', 'max_client_connections = 0', 'address_max_client_connections = 0']

const LANE = `${SUBSCRIBERS} subscribers, ${TENANTS} tenants, ${CHANGES_PER_SECOND} changes a second`
const FROM_LOG = `${LANE}, from the write-ahead log by this gateway`
const QUIET = `${IDLE} sockets that ask for nothing`

export const realtime: Benchmark = {
  name: 'realtime',
  title: 'Changes through SQL to subscribers, who see their tenant’s rows',
  tools: [],
  roundsMax: 1,
  checks: [
    { kind: 'limit', unit: 'ms p99', lane: LANE, atMost: 250 },
    { kind: 'limit', unit: 'KB a socket', lane: LANE, atMost: 30 },
    { kind: 'limit', unit: 'cores of the gateway', lane: LANE, atMost: 1 },
    { kind: 'limit', unit: 'cores of PostgreSQL', lane: LANE, atMost: 1 },
    { kind: 'limit', unit: 'ms p50', lane: FROM_LOG, atMost: 10 },
    { kind: 'limit', unit: 'ms p99', lane: FROM_LOG, atMost: 50 },
    { kind: 'limit', unit: 'cores of the gateway', lane: FROM_LOG, atMost: 1 },
    { kind: 'limit', unit: 'cores of PostgreSQL', lane: FROM_LOG, atMost: 1 },
    { kind: 'limit', unit: 'KB a socket', lane: QUIET, atMost: 30 },
  ],
  async prepare(world) {
    const prices = await openPrices(await world.database(), TENANTS)
    const logged = await openPrices(await world.database(), TENANTS, { capture: 'wal' })
    const gatewayOf = () => world.startGateway({ databaseUrl: prices.url })
    const unlimited = () => world.startGateway({ databaseUrl: prices.url, settings: ALL_CONNECTED })
    const reader = () => world.startGateway({ databaseUrl: logged.url })
    const subscribers = { sockets: SUBSCRIBERS, tenants: TENANTS, how: 'subscribe' } as const
    const lanes: readonly Lane[] = [
      {
        name: LANE,
        measure: () => withCrowd(gatewayOf, subscribers, crowd => changing(crowd, prices, world.seconds)),
      },
      {
        name: FROM_LOG,
        measure: () =>
          withReader(logged, reader, gateway =>
            withCrowd(
              async () => gateway,
              subscribers,
              crowd => changing(crowd, logged, world.seconds),
            ),
          ),
      },
      {
        name: QUIET,
        measure: () =>
          withCrowd(unlimited, { sockets: IDLE, tenants: TENANTS, how: 'idle' }, async ({ perSocket }) => ({
            'KB a socket': perSocket / 1024,
          })),
      },
    ]
    return lanes
  },
}

/** The sockets of a lane, and the gateway that they are connected to. */
export interface Crowd {
  readonly gateway: Service
  /** Resident bytes of the gateway. */
  readonly perSocket: number
  heard(): Promise<Heard>
}

/** Opens sockets to a new gateway, measures, and closes both. */
export async function withCrowd(
  start: () => Promise<Service>,
  { sockets, tenants, how }: { readonly sockets: number; readonly tenants: number; readonly how: 'subscribe' | 'idle' },
  measure: (crowd: Crowd) => Promise<Figures>,
): Promise<Figures> {
  const gateway = await start()
  const before = residentBytes(gateway.pid)
  const clients = startClients(CLIENTS, [gateway.url, SECRET, String(sockets), String(tenants), how])
  try {
    await once(clients, 'message')
    const perSocket = (residentBytes(gateway.pid) - before) / sockets
    return await measure({ gateway, perSocket, heard: () => heardBy(clients) })
  } finally {
    clients.kill('SIGKILL')
    await gateway.stop()
  }
}

async function heardBy(clients: ChildProcess): Promise<Heard> {
  clients.send('heard?')
  const [heard] = await once(clients, 'message')
  return heard as Heard
}

async function changing({ gateway, perSocket, heard }: Crowd, prices: Prices, seconds: number): Promise<Figures> {
  // Code becomes fast while it runs.
  await changeFor(prices, seconds)
  await delay(1_000)
  await heard()
  const before = { gateway: await cpuSeconds(gateway.pid), database: await prices.cpuSeconds() }
  const changes = await changeFor(prices, seconds)
  const spent = { gateway: await cpuSeconds(gateway.pid), database: await prices.cpuSeconds() }
  const expected = changes * (SUBSCRIBERS / TENANTS)
  const { delays, others } = await heardAll(heard, expected)
  if (delays.length < expected || others > 0) {
    throw new Error(`${delays.length} notifications and ${others} other messages; expected ${expected} and none`)
  }
  const sorted = delays.toSorted((one, other) => one - other)
  const share = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0
  return {
    'ms p50': share(0.5),
    'ms p99': share(0.99),
    'notifications/s': delays.length / seconds,
    'KB a socket': perSocket / 1024,
    'cores of the gateway': (spent.gateway - before.gateway) / seconds,
    'cores of PostgreSQL': (spent.database - before.database) / seconds,
  }
}

/** Slow subscribers get time, because no event may be lost. */
export async function heardAll(heard: Crowd['heard'], expected: number): Promise<Heard> {
  let all: Heard = { delays: [], others: 0 }
  for (let waited = 0; waited < BEHIND_MS_MAX && all.delays.length < expected; waited += ASK_MS) {
    await delay(ASK_MS)
    const { delays, others } = await heard()
    all = { delays: [...all.delays, ...delays], others: all.others + others }
  }
  return all
}

/** Changes rows at a constant rate, and returns the number of changes. Each is a separate transaction. */
export async function changeFor(prices: Prices, seconds: number, rate: number = CHANGES_PER_SECOND): Promise<number> {
  const ends = Date.now() + seconds * 1_000
  let changes = 0
  let due = Date.now()
  const running: Promise<unknown>[] = []
  while (Date.now() < ends) {
    for (let n = 0; n < (rate * TICK_MS) / 1_000; n++) running.push(prices.change(changes++))
    due += TICK_MS
    await delay(Math.max(0, due - Date.now()))
  }
  await Promise.all(running)
  return changes
}
