/**
 * Invariant 1 from outside: thousands of requests of different tenants over one connection, some failing, some timing out, some
 * abandoned by their client, the backend killed now and then – and nobody ever sees a row of another.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { execute, type TestDatabase, testDatabase } from '../support/postgres.ts'

const TENANTS = ['t1', 't2', 't3', 't4', 't5']
const ROWS_EACH = 20

let database: TestDatabase
let gateway: TestGateway
let tokens: ReadonlyMap<string, string>

beforeAll(async () => {
  database = await testDatabase()
  await execute(
    database.adminUrl,
    `create table notes (id int primary key, tenant_id text not null, body text not null);
     insert into notes select n, 't' || n % ${TENANTS.length} + 1, 'note ' || n from generate_series(1, ${TENANTS.length * ROWS_EACH}) n;
     alter table notes enable row level security;
     alter table notes force row level security;
     create policy own on notes using (tenant_id = (select current_setting('app.current_tenant_id', true)));
     create view slow with (security_invoker = true) as select id, tenant_id, pg_sleep(0.2)::text as slept from notes;
     grant select on notes, slow to app`,
  )
  gateway = await testGateway(database.url, {
    toml: 'max_connections = 1\nstatement_timeout_ms = 100\nacquire_timeout_ms = 20000',
  })
  tokens = new Map(
    await Promise.all(TENANTS.map(async tenantId => [tenantId, await gateway.token({ tenantId })] as const)),
  )
})
afterAll(async () => {
  await gateway.close()
  await database.drop()
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

/** Deterministic, so that a failure can be repeated. */
function kindOf(i: number): Kind {
  if (i % 401 === 400) return 'timeout'
  if (i % 97 === 96) return 'abandoned'
  if (i % 53 === 52) return 'stream'
  if (i % 7 === 6) return 'bad value'
  if (i % 3 === 2) return 'list'
  return i % 2 === 0 ? 'one' : 'foreign'
}

async function ask(i: number): Promise<void> {
  const tenant = TENANTS[i % TENANTS.length] ?? ''
  const kind = kindOf(i)
  // Note n belongs to tenant n mod 5 + 1.
  const own = (i % TENANTS.length) + TENANTS.length * (i % ROWS_EACH || 1)
  const path = PATHS[kind](kind === 'foreign' ? own + 1 : own)
  const abort = new AbortController()
  if (kind === 'abandoned') setTimeout(() => abort.abort(), 5)
  let response: Response
  let text: string
  try {
    response = await fetch(gateway.url + path, {
      headers: { Authorization: `Bearer ${tokens.get(tenant)}` },
      signal: abort.signal,
    })
    text = await response.text()
  } catch (error) {
    if (kind === 'abandoned' || kind === 'stream') return
    throw error
  }
  for (const [, seen] of text.matchAll(/"tenant_id":"(t\d)"/g)) {
    if (seen !== tenant) throw new Error(`${tenant} asked ${path} and saw a row of ${seen}: ${text}`)
  }
  // A backend that was killed costs its requests an answer, never another one.
  if (response.status === 503) return
  const expected: Record<Kind, number> = {
    list: 200,
    one: 200,
    foreign: 404,
    'bad value': 400,
    timeout: 408,
    abandoned: 408,
    stream: 200,
  }
  if (response.status !== expected[kind]) throw new Error(`${kind}: ${response.status} ${text}`)
  if (kind === 'list') expect(JSON.parse(text).count).toBe(ROWS_EACH)
}

test('one connection, five tenants, every kind of trouble', { timeout: 60_000 }, async () => {
  const killer = new pg.Client({ connectionString: database.adminUrl })
  await killer.connect()
  let next = 0
  const total = 4_000
  const worker = async () => {
    while (next < total) {
      const i = next++
      if (i % 1_000 === 999) {
        await killer.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1 and datname = current_database()',
          ['app'],
        )
      }
      await ask(i)
    }
  }
  await Promise.all(Array.from({ length: 64 }, worker))
  await killer.end()
  // And the connection is as good as new.
  expect((await gateway.get('/api/notes?limit=50', { as: { tenantId: 't2' } })).json.count).toBe(ROWS_EACH)
})
