/** One tenant next to another that floods the gateway: the increase of its slowest response times. */
import { setMaxListeners } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { SAMPLE_TENANTS } from '../src/demo/sample.ts'
import { mintToken } from '../src/identity/mint.ts'
import type { Benchmark, Figures } from './harness/benchmark.ts'
import { STREAM_TABLE, TENANT } from './harness/database.ts'
import { COST_GUARD_OFF, SECRET } from './harness/world.ts'

const ALONE = 'a tenant alone'
const BESIDE_WAITING = 'beside 40 calls that wait and 3 streams that are not read'
const BESIDE_WORKING = 'beside 40 calls that use all of a core each'

/** Concurrent requests of the flooding tenant, and the duration of each call. */
const CALLS = 40
const CALL_SECONDS = 2
const STREAMS = 3

/** Clients of the measured tenant, each of which sends the next request after a response. */
const CONNECTIONS = 4
const WARM_UP_SECONDS = 2

export const neighbours: Benchmark = {
  name: 'neighbours',
  title: 'Reads of one tenant beside a flood of another',
  tools: [],
  checks: [
    { kind: 'ratio', unit: 'p99 ms', lane: BESIDE_WAITING, references: [ALONE], better: 'lower', target: 2 },
    { kind: 'ratio', unit: 'p99 ms', lane: BESIDE_WORKING, references: [ALONE], better: 'lower', target: null },
  ],
  async prepare(world) {
    const database = await world.database()
    const role = new URL(database.url).username
    await database.admin(`
      create or replace function bench_wait(seconds float8) returns int volatile language sql
        as 'select 1 from (select pg_sleep(seconds) offset 0) s';
      create or replace function bench_work(seconds float8) returns int volatile language plpgsql
        as $$ begin while clock_timestamp() < now() + seconds * interval '1 second' loop end loop; return 1; end $$;
      grant execute on function bench_wait, bench_work to ${role}`)
    const quiet = SAMPLE_TENANTS.find(({ id }) => id !== TENANT.id)
    if (quiet === undefined) throw new Error('the sample has a single tenant')
    const ids = await database.admin(`select id from orders where tenant_id = '${quiet.id}' order by id limit 500`)
    const paths = ids.flatMap(({ id }) => [`/api/orders/${id}`, '/api/orders?status=paid&sort=-placed_at&limit=25'])
    // Default limits, except that a stream may wait longer for its reader.
    const settings = [...COST_GUARD_OFF, 'tenant_max_concurrent = 32', 'max_result_rows = 0']
    const { url } = await world.startGateway({ settings })
    const [asQuiet, asNoisy] = [await headersOf(quiet), await headersOf(TENANT)]
    const read = (seconds: number) => readAsFastAsPossible(url, paths, asQuiet, seconds)
    const beside = async (name: string, streams: number): Promise<Figures> => {
      const flood = startFlood(url, asNoisy, name, streams)
      try {
        await flood.begun
        return await read(world.seconds)
      } finally {
        await flood.stop()
      }
    }
    await read(WARM_UP_SECONDS)
    return [
      { name: ALONE, measure: () => read(world.seconds) },
      { name: BESIDE_WAITING, measure: () => beside('bench_wait', STREAMS) },
      { name: BESIDE_WORKING, measure: () => beside('bench_work', 0) },
    ]
  },
}

type Headers = Readonly<Record<string, string>>

async function headersOf({ id, userId }: (typeof SAMPLE_TENANTS)[number]): Promise<Headers> {
  const claims = { tenantId: id, userId, agentId: 'agent-1', role: 'clerk', scopes: ['orders:read'] }
  return { Authorization: `Bearer ${await mintToken(SECRET, { ...claims, expiresInSeconds: 86_400 }, Date.now())}` }
}

interface Asking {
  readonly agent: Agent
  readonly headers: Headers
  readonly body?: string
  readonly signal?: AbortSignal
}

function ask(url: string, { body, ...options }: Asking): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { ...options, method: body === undefined ? 'GET' : 'POST' }, resolve)
    asking.once('error', reject)
    asking.end(body)
  })
}

async function statusOf(url: string, asking: Asking): Promise<number> {
  const response = await ask(url, asking)
  // The measurement ends when the response has been read.
  for await (const _ of response);
  return response.statusCode ?? 0
}

/** A failed request fails the measurement. */
async function readAsFastAsPossible(
  url: string,
  paths: readonly string[],
  headers: Headers,
  seconds: number,
): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const took: number[] = []
  const began = performance.now()
  const until = began + seconds * 1_000
  const client = async (first: number): Promise<void> => {
    for (let n = first; performance.now() < until; n += 1) {
      const path = paths[n % paths.length] ?? ''
      const asked = performance.now()
      const status = await statusOf(url + path, { agent, headers })
      if (status !== 200) throw new Error(`${path} was answered ${status}`)
      took.push(performance.now() - asked)
    }
  }
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, (_, n) => client(n * 251)))
  } finally {
    agent.destroy()
  }
  const elapsedMs = performance.now() - began
  took.sort((a, b) => a - b)
  const p99 = took[Math.floor(took.length * 0.99)] ?? Number.NaN
  const mean = took.reduce((sum, ms) => sum + ms, 0) / took.length
  return { '/s': took.length / (elapsedMs / 1_000), ms: mean, 'p99 ms': p99 }
}

interface Flood {
  /** All its requests have been sent, and its streams have begun. */
  readonly begun: Promise<unknown>
  stop(): Promise<void>
}

/** A rejected client sends the request again after a second, as `Retry-After` says. */
function startFlood(url: string, headers: Headers, name: string, streams: number): Flood {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLS + streams })
  const ending = new AbortController()
  const { signal } = ending
  setMaxListeners(0, signal)
  const asking = { agent, signal, headers: { ...headers, 'Content-Type': 'application/json' } }
  const body = JSON.stringify({ seconds: CALL_SECONDS })
  const call = async (): Promise<void> => {
    while (!signal.aborted) {
      const status = await statusOf(`${url}/api/rpc/${name}`, { ...asking, body }).catch(() => 0)
      if (status !== 200 && status !== 429 && status !== 503 && status !== 0)
        throw new Error(`${name} was answered ${status}`)
      if (status !== 200) await sleep(1_000, undefined, { signal }).catch(() => {})
    }
  }
  const opened = Array.from({ length: streams }, async () => {
    const response = await ask(`${url}/api/${STREAM_TABLE}?stream=true`, { agent, signal, headers })
    // From here on, no client reads the stream.
    response.on('error', () => {})
    if (response.statusCode !== 200) throw new Error(`a stream was answered ${response.statusCode}`)
  })
  const calls = Promise.all(Array.from({ length: CALLS }, call))
  calls.catch(() => {})
  return {
    begun: Promise.all([...opened, sleep(CALL_SECONDS * 250)]),
    async stop() {
      ending.abort()
      agent.destroy()
      await calls
      // Statements in progress are cancelled.
      await sleep(CALL_SECONDS * 250)
    },
  }
}
