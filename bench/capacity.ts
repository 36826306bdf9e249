/**
 * CPU time of the gateway and of PostgreSQL for each kind of request, change and notification: the figures of
 * `src/capacity/costs.ts`. CPU time hardly depends on what else the machine does, unlike requests per second.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type CpuCost, REQUEST_COSTS, type RequestKind } from '../src/capacity/costs.ts'
import { requestCpu } from '../src/capacity/plan.ts'
import { IDLE_READ_INTERVAL_MS } from '../src/realtime/log.ts'
import type { Benchmark, Figures, Lane } from './harness/benchmark.ts'
import { cpuSeconds, openServerCpu, type ServerCpu } from './harness/cpu-time.ts'
import { residentBytes } from './harness/memory.ts'
import { orderIds } from './harness/orders.ts'
import type { Service } from './harness/processes.ts'
import { sending } from './harness/sending.ts'
import type { World } from './harness/world.ts'
import { ADD, emptyReadings, ITEMS, ITEMS_COUNT, READINGS, tidyItems } from './harness/write-tables.ts'
import { type Load, wrk } from './harness/wrk.ts'
import { type Crowd, changeFor, heardAll, withCrowd } from './realtime/feed.ts'
import { openPrices, type Prices } from './realtime/prices.ts'

/** Enough that the gateway pipelines, and that its event loop finds several requests in one turn. */
const CONNECTIONS = 16
/** Code becomes fast while it runs. */
const WARM_UP_SECONDS = 2
const CACHED_ROWS = 500
const CACHE_ON: readonly string[] = ['cache.enabled = true', 'cache.ttl_secs = 86400']

/** Not the number of another benchmark: the name of the database contains it. */
const TENANTS = 50
const SOCKETS_PER_TENANT = 40
const CHANGES_PER_SECOND = 200
const IDLE_SOCKETS = 2_000

/** Kinds of the mix; each has its own connections, so the shares are those that the server serves. */
const MIX: readonly RequestKind[] = ['get', 'list', 'insert']
const MIX_CONNECTIONS = 5

const READING = {
  sensor: 'sensor-17',
  value: 1013.25,
  taken_at: '2026-01-01T12:00:00Z',
  unit: 'hPa',
  note: 'after the calibration',
}

export const capacity: Benchmark = {
  name: 'capacity',
  title: 'CPU time and memory for the capacity model',
  tools: ['wrk'],
  roundsMax: 3,
  checks: [],
  async prepare(world) {
    const database = await world.database()
    const server = await openServerCpu(database.adminUrl)
    const gateway = await world.startGateway()
    const caching = await world.startGateway({ settings: CACHE_ON })
    const loads = await loadsOf(world, gateway, caching)
    const prices = await openPrices(database, TENANTS)
    const kinds = Object.keys(REQUEST_COSTS) as RequestKind[]
    const measured: Measured = { ...REQUEST_COSTS }
    return [
      ...kinds.map(kind => requestLane(world, server, kind === 'cached' ? caching : gateway, loads, kind, measured)),
      mixLane(world, server, gateway, loads, measured),
      ...realtimeLanes(world, prices),
    ]
  },
}

/** The costs of the last round. */
type Measured = Record<RequestKind, CpuCost>

type Loads = Readonly<Record<RequestKind, Load>>

async function loadsOf(world: World, gateway: Service, caching: Service): Promise<Loads> {
  const orders = await orderIds(world)
  const { url } = gateway
  const base = { headers: await world.headers(), connections: CONNECTIONS, seconds: world.seconds }
  const rows = Array.from({ length: 1_000 }, (_, n) => ({ ...READING, note: `reading ${n}` }))
  return {
    get: { ...base, url: `${url}/api/orders/`, ids: orders },
    cached: {
      ...{ ...base, url: `${caching.url}/api/orders/` },
      ids: { first: orders.first, last: orders.first + CACHED_ROWS - 1 },
    },
    list: { ...base, url: `${url}/api/orders?status=paid&sort=-placed_at&limit=25` },
    expand: { ...base, url: `${url}/api/orders?sort=-placed_at&limit=25&expand=customer` },
    nested: { ...base, url: `${url}/api/orders?sort=-placed_at&limit=25&expand=nested:order_items` },
    aggregate: { ...base, url: `${url}/api/orders/aggregate?fn=count&status=pending` },
    insert: { ...base, url: `${url}/api/${READINGS}`, sending: sending('POST', READING) },
    update: {
      ...{ ...base, url: `${url}/api/${ITEMS}/`, ids: { first: 1, last: ITEMS_COUNT } },
      sending: sending('PATCH', { quantity: 250, price: 19.95 }),
    },
    batch: { ...base, connections: 4, url: `${url}/api/${READINGS}`, sending: sending('POST', rows) },
    call: { ...base, url: `${url}/api/rpc/${ADD}`, sending: sending('POST', { a: 19, b: 23 }) },
  }
}

function requestLane(
  world: World,
  server: ServerCpu,
  gateway: Service,
  loads: Loads,
  kind: RequestKind,
  measured: Measured,
): Lane {
  let isWarm = false
  return {
    name: REQUEST_COSTS[kind].title,
    async measure() {
      await tidy(world)
      if (!isWarm) await wrk({ ...loads[kind], seconds: WARM_UP_SECONDS })
      isWarm = true
      const { result, spent } = await spending(server, gateway, () => wrk(loads[kind]))
      const figures = perOperation(spent, result.requests)
      measured[kind] = { gateway: figures['gateway µs'] ?? 0, database: figures['PostgreSQL µs'] ?? 0 }
      return kind === 'get' ? { ...figures, 'KB resident': residentBytes(gateway.pid) / 1024 } : figures
    },
  }
}

/** Several kinds at once: what the model predicts for as many requests of each, and what they took. */
function mixLane(world: World, server: ServerCpu, gateway: Service, loads: Loads, measured: Measured): Lane {
  let isWarm = false
  const loadOf = (kind: RequestKind): Load => ({ ...loads[kind], connections: MIX_CONNECTIONS })
  return {
    name: `${MIX.join(', ')} at once`,
    async measure() {
      await tidy(world)
      if (!isWarm) await Promise.all(MIX.map(kind => wrk({ ...loadOf(kind), seconds: WARM_UP_SECONDS })))
      isWarm = true
      const { result, spent } = await spending(server, gateway, () => Promise.all(MIX.map(kind => wrk(loadOf(kind)))))
      const counts = Object.fromEntries(MIX.map((kind, index) => [kind, result[index]?.requests ?? 0]))
      const all = result.reduce((sum, { requests }) => sum + requests, 0)
      const predicted = requestCpu(counts, measured)
      return {
        ...perOperation(spent, all),
        'gateway µs predicted': predicted.gateway / all,
        'PostgreSQL µs predicted': predicted.database / all,
      }
    },
  }
}

function realtimeLanes(world: World, prices: Prices): readonly Lane[] {
  const start = () => world.startGateway({ databaseUrl: prices.url })
  const few = `${CHANGES_PER_SECOND} changes a second, 1 subscriber for each`
  const many = `${CHANGES_PER_SECOND} changes a second, ${SOCKETS_PER_TENANT} subscribers for each`
  return [
    {
      name: 'nothing to do, for as long as a read of a quiet change log',
      measure: () => withCrowd(start, { sockets: 1, tenants: TENANTS, how: 'idle' }, quiet),
    },
    {
      name: 'reads of a quiet change log',
      measure: () => withCrowd(start, { sockets: TENANTS, tenants: TENANTS, how: 'subscribe' }, quiet),
    },
    {
      name: 'changes without subscribers',
      measure: () => withCrowd(start, { sockets: 1, tenants: TENANTS, how: 'idle' }, crowd => changed(crowd, 0)),
    },
    {
      name: few,
      measure: () =>
        withCrowd(start, { sockets: TENANTS, tenants: TENANTS, how: 'subscribe' }, crowd => changed(crowd, 1)),
    },
    {
      name: many,
      measure: () =>
        withCrowd(start, { sockets: TENANTS * SOCKETS_PER_TENANT, tenants: TENANTS, how: 'subscribe' }, crowd =>
          changed(crowd, SOCKETS_PER_TENANT),
        ),
    },
    {
      name: 'idle sockets',
      measure: () =>
        withCrowd(start, { sockets: IDLE_SOCKETS, tenants: TENANTS, how: 'idle' }, async ({ perSocket }) => ({
          'KB a socket': perSocket / 1024,
        })),
    },
  ]

  async function quiet({ gateway }: Crowd): Promise<Figures> {
    // Reads are frequent for a while after the start.
    await delay(3_000)
    const began = performance.now()
    const server = { seconds: prices.cpuSeconds }
    const { spent } = await spending(server, gateway, () => delay(world.seconds * 1_000))
    return perOperation(spent, (performance.now() - began) / IDLE_READ_INTERVAL_MS)
  }

  async function changed({ gateway, perSocket, heard }: Crowd, subscribers: number): Promise<Figures> {
    await changeFor(prices, world.seconds)
    await delay(1_000)
    await heard()
    const server = { seconds: prices.cpuSeconds }
    const { result: changes, spent } = await spending(server, gateway, async () => {
      const changes = await changeFor(prices, world.seconds)
      // The last changes are delivered within the time that is measured.
      if (subscribers > 0) await delay(200)
      return changes
    })
    const { delays, others } = await heardAll(heard, changes * subscribers)
    if (delays.length < changes * subscribers)
      throw new Error(
        `${delays.length} notifications and ${others} other messages; expected ${changes * subscribers} and none`,
      )
    const figures = perOperation(spent, changes)
    return subscribers > 1 ? { ...figures, 'KB a socket': perSocket / 1024 } : figures
  }
}

async function tidy(world: World): Promise<void> {
  const database = await world.database()
  await emptyReadings(database)
  await tidyItems(database)
}

interface Spent {
  readonly gateway: number
  readonly database: number
}

/** CPU seconds of both programs during a piece of work. */
async function spending<T>(
  server: ServerCpu,
  gateway: Service,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly spent: Spent }> {
  const before = { gateway: await cpuSeconds(gateway.pid), database: await server.seconds() }
  const result = await work()
  const after = { gateway: await cpuSeconds(gateway.pid), database: await server.seconds() }
  return {
    result,
    spent: { gateway: after.gateway - before.gateway, database: after.database - before.database },
  }
}

function perOperation({ gateway, database }: Spent, operations: number): Figures {
  return { 'gateway µs': (gateway * 1e6) / operations, 'PostgreSQL µs': (database * 1e6) / operations }
}
