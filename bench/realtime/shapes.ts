/** Shapes: the initial sync of a large table, and many shapes that wait and follow changes. */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Benchmark, Figures } from '../harness/benchmark.ts'
import { cpuSeconds } from '../harness/cpu-time.ts'
import { residentBytes, watchMemory } from '../harness/memory.ts'
import { startClients } from '../harness/processes.ts'
import { COST_GUARD_OFF, SECRET, type World } from '../harness/world.ts'
import { changeFor } from './feed.ts'
import { installedDatabase } from './installed.ts'
import { openPrices, type Prices } from './prices.ts'
import type { Polled, Replicas } from './shape-clients.ts'

const CLIENTS = fileURLToPath(new URL('shape-clients.ts', import.meta.url))
const ROWS = 200_000
const SHAPE = `shape of ${ROWS} rows`
const NDJSON = 'NDJSON of the same rows'
const BEHIND_MS_MAX = 120_000
const ASK_MS = 500
const SERVED = '[shapes]\nenabled = true'

/** Each waiting shape has a connection, and all come from one address. */
const ALL_CONNECTED: readonly string[] = ['max_client_connections = 0', 'address_max_client_connections = 0']

/** The initial sync, compared with a stream of the same rows. */
export const shapeSync: Benchmark = {
  name: 'shape-sync',
  title: `Initial sync of ${ROWS} rows`,
  tools: [],
  checks: [
    { kind: 'ratio', unit: 'rows/s', lane: SHAPE, references: [NDJSON], better: 'higher', target: null },
    { kind: 'limit', unit: 'MB grown', lane: SHAPE, atMost: 64 },
  ],
  async prepare(world) {
    const { url } = await installedDatabase(await world.database(), {
      name: 'bench_shapes',
      captured: ['readings'],
      statements: [
        'create table readings (id int primary key, sensor text not null, at timestamptz not null, value float8)',
        `insert into readings select n, 'sensor-' || n % 100, now(), n / 7.0 from generate_series(1, ${ROWS}) n`,
        'grant usage on schema public to $role',
        'grant select on readings to $role',
        'analyze readings',
      ],
    })
    const download = (path: string) => () => downloaded(world, url, path)
    return [
      { name: SHAPE, measure: download('/v1/shape?table=readings&offset=-1') },
      { name: NDJSON, measure: download('/api/readings?stream=true') },
    ]
  },
}

/** A new process for each measurement, because one that has streamed before already has its memory. */
async function downloaded(world: World, databaseUrl: string, path: string): Promise<Figures> {
  const gateway = await world.startGateway({
    databaseUrl,
    settings: ['max_result_rows = 0', ...COST_GUARD_OFF, SERVED],
  })
  const memory = watchMemory(gateway.pid)
  try {
    const begins = performance.now()
    const response = await fetch(gateway.url + path, { headers: await world.headers() })
    if (!response.ok || response.body === null) throw new Error(`${path} was answered ${response.status}`)
    let lines = 0
    for await (const chunk of response.body) for (const byte of chunk) if (byte === NEWLINE) lines += 1
    const seconds = (performance.now() - begins) / 1_000
    // A shape has its rows in an array, and a last message after them.
    if (lines !== ROWS) throw new Error(`${path} had ${lines} rows; expected ${ROWS}`)
    return { 'rows/s': ROWS / seconds, 'MB grown': memory.stop() / 1e6 }
  } finally {
    memory.stop()
    await gateway.stop()
  }
}

const NEWLINE = 10

/** The shapes that the rows of a tenant are divided into (`shape-clients.ts`). */
const PARTS = 10

interface Crowd {
  readonly shapes: number
  readonly tenants: number
  /** Changes per second. */
  readonly rate: number
}

/** Shapes that wait, and then follow changes. Each tenant is a context, whose rows ten shapes divide. */
function following(name: string, crowd: Crowd): Benchmark {
  const { shapes, tenants, rate } = crowd
  const idle = `${shapes} shapes of ${tenants} contexts, idle`
  const busy = `${shapes} shapes of ${tenants} contexts, ${rate} changes a second`
  return {
    name,
    title: `${shapes} shapes that wait for changes with long polls`,
    tools: [],
    roundsMax: 1,
    checks: [
      { kind: 'limit', unit: 'KB a shape', lane: idle, atMost: 200 },
      { kind: 'limit', unit: 'ms p99', lane: busy, atMost: 1_000 },
    ],
    async prepare(world) {
      const prices = await openPrices(await world.database(), tenants)
      const measure = (busyFor: number) => () => followed(world, prices, { ...crowd, busyFor })
      return [
        { name: idle, measure: measure(0) },
        { name: busy, measure: measure(world.seconds) },
      ]
    },
  }
}

const PUBLIC = 'clients of 10 shapes without a token'

/** Shapes that everyone sees: equal requests of many clients, which a shared cache could answer. */
export const publicShapes: Benchmark = {
  name: 'public-shapes',
  title: 'Shapes that everyone sees, with long polls',
  tools: [],
  roundsMax: 1,
  checks: [{ kind: 'limit', unit: 'ms p99', lane: PUBLIC, atMost: 1_000 }],
  async prepare(world) {
    const prices = await openPrices(await world.database(), 1_000, { shownTo: 'everyone' })
    const crowd = { shapes: 200, tenants: 0, rate: 50, busyFor: world.seconds }
    return [{ name: PUBLIC, measure: () => followed(world, prices, crowd) }]
  },
}

export const shapes: Benchmark = following('shapes', { shapes: 1_000, tenants: 100, rate: 100 })
export const manyShapes: Benchmark = following('many-shapes', { shapes: 10_000, tenants: 1_000, rate: 500 })

interface Following extends Crowd {
  /** Seconds of changes; 0 for none. */
  readonly busyFor: number
}

async function followed(world: World, prices: Prices, { shapes, tenants, rate, busyFor }: Following): Promise<Figures> {
  const gateway = await world.startGateway({
    databaseUrl: prices.url,
    settings: [...ALL_CONNECTED, ...(tenants === 0 ? ['require_auth = false'] : []), SERVED],
  })
  const before = residentBytes(gateway.pid)
  /** The clients of each row. */
  const copies = tenants === 0 ? shapes / PARTS : 1
  const clients = startClients(CLIENTS, [gateway.url, SECRET, String(shapes), String(tenants)])
  const failed = once(clients, 'exit').then(([code]) => {
    throw new Error(`the clients of the shapes ended with ${code}`)
  })
  failed.catch(() => {})
  const message = () => Promise.race([once(clients, 'message'), failed])
  const ask = async <T>(question: 'polled?' | 'replicas?'): Promise<T> => {
    clients.send(question)
    const [answer] = await message()
    return answer as T
  }
  const polled = () => ask<Polled>('polled?')
  try {
    await message()
    const perShape = (residentBytes(gateway.pid) - before) / shapes
    const seconds = busyFor === 0 ? world.seconds : busyFor
    // Code becomes fast while it runs.
    const warmedBy = busyFor === 0 ? 0 : await changeFor(prices, busyFor, rate)
    await polledAll(polled, warmedBy * copies)
    const cpuBefore = await cpuSeconds(gateway.pid)
    const changes = busyFor === 0 ? 0 : await changeFor(changedAfter(prices, warmedBy), busyFor, rate)
    if (busyFor === 0) await delay(world.seconds * 1_000)
    const cores = ((await cpuSeconds(gateway.pid)) - cpuBefore) / seconds
    if (busyFor === 0) return { 'KB a shape': perShape / 1024, 'cores of the gateway': cores }
    const all = await polledAll(polled, changes * copies)
    const expected = changes * copies
    const late = all.delays.length < expected ? `; ${expected - all.delays.length} of ${expected} are late` : ''
    const differing = differences(await ask<Replicas>('replicas?'), await prices.changedAt())
    if (differing > 0 || (copies > 1 && late !== ''))
      throw new Error(`${differing} rows of the replicas differ from the table${late}`)
    const sorted = all.delays.toSorted((one, other) => one - other)
    const share = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0
    return {
      'ms p50': share(0.5),
      'ms p99': share(0.99),
      'requests/s': all.requests / seconds,
      'refused/s': all.refused / seconds,
      'sent again/s': all.sentAgain / seconds,
      '% for a shared cache': (100 * all.shareable) / all.requests,
      'cores of the gateway': cores,
    }
  } finally {
    clients.kill('SIGKILL')
    await gateway.stop()
  }
}

/** Changes other rows than the first `count` changes, because two changes of a row can arrive as one. */
function changedAfter(prices: Prices, count: number): Prices {
  return { ...prices, change: n => prices.change(n + count) }
}

/** The number of rows that the replicas have with another value than the table, or not at all. */
function differences(replicas: Replicas, rows: ReadonlyMap<number, number | null>): number {
  const replica = new Map(replicas)
  return [...rows].filter(([id, at]) => replica.get(id) !== at).length
}

/** Slow clients get time, because no change may be lost. */
async function polledAll(polled: () => Promise<Polled>, expected: number): Promise<Polled> {
  let all: Polled = { delays: [], requests: 0, refused: 0, sentAgain: 0, shareable: 0 }
  for (let waited = 0; waited < BEHIND_MS_MAX && all.delays.length < expected; waited += ASK_MS) {
    await delay(ASK_MS)
    const { delays, requests, refused, sentAgain, shareable } = await polled()
    all = {
      delays: [...all.delays, ...delays],
      requests: all.requests + requests,
      refused: all.refused + refused,
      sentAgain: all.sentAgain + sentAgain,
      shareable: all.shareable + shareable,
    }
  }
  return all
}
