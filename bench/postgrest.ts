/** The same requests in PostgREST's dialect and below `/api`, to one gateway. */

import type { Benchmark, Lane } from './harness/benchmark.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { type Sending, sending } from './harness/sending.ts'
import { fetchOk, type World } from './harness/world.ts'
import { ADD, assertReadings, emptyReadings, READINGS } from './harness/write-tables.ts'

/** The kinds of requests. */
const KINDS = ['get', 'list', 'embed', 'insert', 'call'] as const

type Kind = (typeof KINDS)[number]

/** One request in both dialects. */
interface Pair {
  readonly own: string
  readonly dialect: string
  /** Headers of the request in the dialect. */
  readonly headers?: Readonly<Record<string, string>>
  readonly sending?: Sending
  /** True if a random id follows the path. */
  readonly byId?: boolean
  /** A text that both responses must contain. */
  readonly contains: string
}

const ONE = { Accept: 'application/vnd.pgrst.object+json' }

const PAIRS: Readonly<Record<Kind, Pair>> = {
  get: { own: '/api/orders/', dialect: '/rest/v1/orders?id=eq.', headers: ONE, byId: true, contains: '"placed_at":' },
  list: {
    own: '/api/orders?status=paid&sort=-placed_at&limit=25',
    dialect: '/rest/v1/orders?status=eq.paid&order=placed_at.desc&limit=25',
    contains: '"status":"paid"',
  },
  embed: {
    own: '/api/orders?sort=-placed_at&limit=25&expand=customer',
    dialect: '/rest/v1/orders?select=*,customer:customers(*)&order=placed_at.desc&limit=25',
    contains: '"customer":{',
  },
  insert: {
    own: `/api/${READINGS}`,
    dialect: `/rest/v1/${READINGS}`,
    headers: { ...ONE, Prefer: 'return=representation' },
    sending: sending('POST', { sensor: 'sensor-17', value: 1013.25, unit: 'hPa', note: 'after the calibration' }),
    contains: 'after the calibration',
  },
  call: {
    own: `/api/rpc/${ADD}`,
    dialect: `/rest/v1/rpc/${ADD}`,
    sending: sending('POST', { a: 19, b: 23 }),
    contains: '42',
  },
}

const ownName = (kind: Kind) => `${kind} below /api`
const dialectName = (kind: Kind) => `${kind} below /rest/v1`

export const postgrest: Benchmark = {
  name: 'postgrest',
  title: "Requests in PostgREST's dialect",
  tools: ['wrk'],
  checks: KINDS.map(kind => throughput(dialectName(kind), [ownName(kind)], 0.95)),
  async prepare(world) {
    const { url: databaseUrl } = await world.database()
    const role = decodeURIComponent(new URL(databaseUrl).username)
    const dialect = ['[postgrest]', 'enabled = true', `jwt_role_claim = { value = ${JSON.stringify(role)} }`]
    const gateway = await world.startGateway({ settings: dialect })
    const lanes: Lane[] = []
    for (const kind of KINDS) lanes.push(...(await pairLanes(world, gateway.url, kind)))
    return lanes
  },
}

async function pairLanes(world: World, url: string, kind: Kind): Promise<readonly Lane[]> {
  const { own, dialect, headers = {}, sending: sent, byId = false, contains } = PAIRS[kind]
  const database = await world.database()
  const ids = byId ? await orderIds(world) : undefined
  const around =
    kind === 'insert'
      ? {
          before: () => emptyReadings(database),
          after: (requests: number) => assertReadings(database, requests),
        }
      : {}
  const lane = async (name: string, path: string, more: Readonly<Record<string, string>>) => {
    const all = { ...(await world.headers()), ...more }
    const body = await fetchOk(`${url}${path}${ids?.first ?? ''}`, all, sent)
    if (!body.includes(contains)) throw new Error(`${path} does not answer with ${contains}: ${body.slice(0, 500)}`)
    return httpLane(world, name, url + path, { headers: all, ids, sending: sent, ...around })
  }
  return [await lane(ownName(kind), own, {}), await lane(dialectName(kind), dialect, headers)]
}
