/**
 * Every request runs under its own caller's session settings: thousands of requests of different tenants over
 * one connection. Some fail, time out or are abandoned by their client, and the backend is killed now and
 * then. No caller ever sees a row of another tenant.
 */
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'

const TENANTS = ['t1', 't2', 't3', 't4', 't5']
const ROWS_EACH = 20
const WORKERS = 64

/**
 * A backend that is asked to terminate does so at its next check. Requests sent to it until then are lost as
 * well.
 */
const DYING_MS = 1_000

let tokens: ReadonlyMap<string, string>
const database = databaseFixture(`
  create table notes (id int primary key, tenant_id text not null, body text not null);
  insert into notes select n, 't' || n % ${TENANTS.length} + 1, 'note ' || n from generate_series(1,
    ${TENANTS.length * ROWS_EACH}) n;
  alter table notes enable row level security;
  alter table notes force row level security;
  create policy own on notes using (tenant_id = (select current_setting('app.current_tenant_id', true)));
  create view slow with (security_invoker = true) as select id, tenant_id, pg_sleep(0.6)::text as slept from notes;
  grant select on notes, slow to app
`)
const gateway = gatewayFixture(database, {
  toml: 'max_connections = 1\nstatement_timeout_ms = 500\nacquire_timeout_ms = 20000',
})

beforeAll(async () => {
  tokens = new Map(
    await Promise.all(TENANTS.map(async tenantId => [tenantId, await gateway.token({ tenantId })] as const)),
  )
})

type Kind = 'list' | 'one' | 'foreign' | 'bad value' | 'timeout' | 'abandoned' | 'stream'

const PATHS: Record<Kind, (n: number) => string> = {
  list: () => '/api/notes?limit=50&sort=-id',
  one: n => `/api/notes/${n}`,
  foreign: n => `/api/notes/${n}`,
  'bad value': () => '/api/notes?id=x',
  timeout: () => '/api/slow?limit=5',
  abandoned: () => '/api/slow?limit=1',
  stream: () => '/api/notes?stream=true',
}

/** Deterministic, so that a failure can be reproduced. */
function kindOf(i: number): Kind {
  if (i % 401 === 400) return 'timeout'
  if (i % 97 === 96) return 'abandoned'
  if (i % 53 === 52) return 'stream'
  if (i % 7 === 6) return 'bad value'
  if (i % 3 === 2) return 'list'
  return i % 2 === 0 ? 'one' : 'foreign'
}

const EXPECTED: Record<Kind, number> = {
  list: 200,
  one: 200,
  foreign: 404,
  'bad value': 400,
  timeout: 408,
  abandoned: 408,
  stream: 200,
}

/** How the requests of each kind ended. Any other outcome fails the test. */
interface Outcomes {
  expected: number
  /** Abandoned by their client. */
  abandoned: number
  /** Answered 503, or a stream without its end, because the backend was killed. */
  lost: number
}

async function ask(i: number, wasKilledSince: (ms: number) => boolean): Promise<keyof Outcomes> {
  const tenant = TENANTS[i % TENANTS.length] ?? ''
  const kind = kindOf(i)
  // Note n belongs to tenant n mod 5 + 1.
  const own = (i % TENANTS.length) + TENANTS.length * (i % ROWS_EACH || 1)
  const path = PATHS[kind](kind === 'foreign' ? own + 1 : own)
  const abort = new AbortController()
  if (kind === 'abandoned') setTimeout(() => abort.abort(), 5)
  const began = performance.now()
  // A killed backend loses responses but never mixes them up, and nothing else loses one.
  const lost = (what: string): 'lost' => {
    if (wasKilledSince(began - DYING_MS)) return 'lost'
    throw new Error(`${kind}, and no backend was killed: ${what}`)
  }
  let status: number
  let text = ''
  let isWhole = true
  try {
    const response = await fetch(gateway.url + path, {
      headers: { Authorization: `Bearer ${tokens.get(tenant)}` },
      signal: abort.signal,
    })
    status = response.status
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true })
    } catch (error) {
      if (kind !== 'stream') throw error
      isWhole = false
    }
  } catch (error) {
    if (abort.signal.aborted) return 'abandoned'
    throw error
  }
  for (const [, seen] of text.matchAll(/"tenant_id":"(t\d)"/g)) {
    if (seen !== tenant) throw new Error(`${tenant} asked ${path} and saw a row of ${seen}: ${text}`)
  }
  if (status === 503 || !isWhole) return lost(`${status} ${text}`)
  if (status !== EXPECTED[kind]) throw new Error(`${kind}: ${status} ${text}`)
  if (kind === 'list') expect(JSON.parse(text).count).toBe(ROWS_EACH)
  if (kind === 'stream') expect(text.trimEnd().split('\n')).toHaveLength(ROWS_EACH)
  return 'expected'
}

test("five tenants on one connection never see each other's rows, despite errors, timeouts and kills", {
  timeout: 60_000,
}, async () => {
  const killer = new pg.Client({ connectionString: database.adminUrl })
  await killer.connect()
  const outcomes = Object.fromEntries(
    Object.keys(PATHS).map(kind => [kind, { expected: 0, abandoned: 0, lost: 0 }]),
  ) as Record<Kind, Outcomes>
  let next = 0
  let kills = 0
  let killedAt = Number.NEGATIVE_INFINITY
  const total = 4_000
  const worker = async () => {
    while (next < total) {
      const i = next++
      if (i % 1_000 === 999) {
        kills++
        // The request it affects may already have been answered.
        killedAt = Number.POSITIVE_INFINITY
        await killer.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1 and datname = current_database()',
          ['app'],
        )
        killedAt = performance.now()
      }
      outcomes[kindOf(i)][await ask(i, ms => killedAt >= ms)]++
    }
  }
  try {
    await Promise.all(Array.from({ length: WORKERS }, worker))
  } finally {
    await killer.end()
  }

  const sum = (outcome: keyof Outcomes) => Object.values(outcomes).reduce((all, of) => all + of[outcome], 0)
  expect(sum('expected') + sum('abandoned') + sum('lost')).toBe(total)
  expect(sum('lost')).toBeLessThanOrEqual(kills * WORKERS)
  for (const kind of ['list', 'one', 'foreign', 'bad value'] as const) {
    const { expected, lost } = outcomes[kind]
    expect(expected / (expected + lost), kind).toBeGreaterThanOrEqual(0.9)
  }
  expect(outcomes.timeout.expected).toBeGreaterThan(0)
  expect(outcomes.abandoned.abandoned).toBeGreaterThan(0)
  expect(outcomes.stream.expected).toBeGreaterThan(outcomes.stream.lost)
  // Afterwards the connection works as before.
  expect((await gateway.get('/api/notes?limit=50', { as: { tenantId: 't2' } })).json.count).toBe(ROWS_EACH)
})
