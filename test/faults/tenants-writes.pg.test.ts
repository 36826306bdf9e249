/**
 * Every write runs under its own caller's session settings. Two tenants write at random through one
 * connection: by id, in bulk, in batches and upserts, also with each other's keys. Some writes fail, time out
 * or are abandoned, and the backend is killed now and then. A trigger records for every changed row which
 * request changed it.
 */
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'

const TENANTS = ['t1', 't2'] as const
const KEYS = 40
const REQUESTS = 1_500
const WORKERS = 24
const SEED = 20_261_121

let tokens: ReadonlyMap<string, string>
const database = databaseFixture(`
  create table notes (id int primary key, tenant_id text not null default
    current_setting('app.current_tenant_id', true), body text not null, n int);
  alter table notes enable row level security;
  alter table notes force row level security;
  create policy own on notes using (tenant_id = (select current_setting('app.current_tenant_id', true)));
  create table changes (op text, by_tenant text, old_tenant text, new_tenant text, body text);
  create function keep() returns trigger language plpgsql security definer as $$ begin
    insert into changes values (tg_op, current_setting('app.current_tenant_id', true),
      case when tg_op <> 'INSERT' then old.tenant_id end, case when tg_op <> 'DELETE' then new.tenant_id end,
        case when tg_op <> 'DELETE' then new.body end);
    return null;
  end $$;
  create trigger keep after insert or update or delete on notes for each row execute function keep();
  create function slow() returns trigger language plpgsql as $$ begin if new.body like '%slow' then
    perform pg_sleep(0.3); end if; return new; end $$;
  create trigger slow before insert or update on notes for each row execute function slow();
  grant select, insert, update, delete on notes to app
`)
const gateway = gatewayFixture(database, {
  toml: 'max_connections = 1\nstatement_timeout_ms = 150\nacquire_timeout_ms = 20000',
})

beforeAll(async () => {
  tokens = new Map(
    await Promise.all(TENANTS.map(async tenantId => [tenantId, await gateway.token({ tenantId })] as const)),
  )
})

/** Pseudo-random numbers, the same in every run (mulberry32). */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly abandon?: boolean
}

/** Keys are shared: about half of them belong to the other tenant at any moment. */
function anything(tenant: string, random: (below: number) => number): Asked {
  const id = 1 + random(KEYS)
  const body = `by ${tenant}`
  const upsert = { 'x-upsert': random(2) === 0 ? 'true' : 'ignore' }
  // Each of these delays every other request.
  if (random(60) === 0)
    return { method: 'POST', path: '/api/notes', body: { id, body: `${body} slow` }, abandon: random(3) === 0 }
  switch (random(15)) {
    case 0:
    case 1:
      return { method: 'POST', path: '/api/notes', body: { id, body } }
    case 2:
      return { method: 'POST', path: '/api/notes', body: { id, body, tenant_id: TENANTS[random(2)] } }
    case 3:
      return {
        method: 'POST',
        path: '/api/notes',
        body: [
          { id, body },
          { id: 1 + random(KEYS), body, n: 1 },
        ],
      }
    case 4:
    case 5:
      return { method: 'POST', path: '/api/notes', body: { id, body, n: 2 }, headers: upsert }
    case 6:
      return {
        method: 'POST',
        path: '/api/notes',
        body: [
          { id, body },
          { id: id + 1, body, n: 3 },
          { id: id + 2, body },
        ],
        headers: upsert,
      }
    case 7:
      return { method: 'PATCH', path: `/api/notes/${id}`, body: { body } }
    case 8:
      return { method: 'PATCH', path: `/api/notes/${id}`, body: { tenant_id: TENANTS[random(2)], body } }
    case 9:
      return { method: 'PATCH', path: '/api/notes?id.gt=0', body: { body } }
    case 10:
      return {
        method: 'PATCH',
        path: '/api/notes?tenant_id.in=t1,t2',
        body: { n: random(9) },
        headers: { prefer: 'return=minimal' },
      }
    case 11:
      return { method: 'DELETE', path: `/api/notes/${id}?returning=*` }
    case 12:
      return { method: 'DELETE', path: `/api/notes?id.lt=${random(KEYS)}&returning=*` }
    case 13:
      return { method: 'PATCH', path: `/api/notes/${id}`, body: { n: 'no number' } }
    default:
      return { method: 'PATCH', path: '/api/notes?id.gt=0', body: { body }, abandon: true }
  }
}

test('each tenant changes only its own rows', { timeout: 90_000 }, async () => {
  const killer = new pg.Client({ connectionString: database.adminUrl })
  await killer.connect()
  const statuses = new Map<string, number>()
  const random = numbers(SEED)
  let next = 0
  async function ask(n: number): Promise<void> {
    const tenant = TENANTS[n % 2] as string
    const { method, path, body, headers, abandon } = anything(tenant, random)
    const abort = new AbortController()
    if (abandon === true) setTimeout(() => abort.abort(), 3)
    let outcome = 'abandoned'
    try {
      const response = await fetch(gateway.url + path, {
        method,
        headers: { authorization: `Bearer ${tokens.get(tenant)}`, 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: abort.signal,
      })
      const text = await response.text()
      outcome = String(response.status)
      if (response.status < 300) {
        for (const [, seen] of text.matchAll(/"tenant_id":"(t\d)"/g)) {
          if (seen !== tenant) throw new Error(`${tenant} asked ${method} ${path} and saw a row of ${seen}: ${text}`)
        }
      }
      if (!/^(2\d\d|400|403|404|408|503)$/.test(outcome)) throw new Error(`${method} ${path}: ${outcome} ${text}`)
    } catch (error) {
      if (!abort.signal.aborted) throw error
    }
    statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1)
  }
  const worker = async () => {
    while (next < REQUESTS) {
      const n = next++
      if (n % 400 === 399) {
        await killer.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'
            and datname = current_database()`,
        )
      }
      await ask(n)
    }
  }
  try {
    await Promise.all(Array.from({ length: WORKERS }, worker))
  } finally {
    await killer.end()
  }

  const strange = await execute(
    database.adminUrl,
    `select * from changes where by_tenant is null or by_tenant not in ('t1', 't2') or coalesce(old_tenant,
      by_tenant) <> by_tenant
       or coalesce(new_tenant, by_tenant) <> by_tenant
       or coalesce(body, 'by ' || by_tenant) not like 'by ' || by_tenant || '%'`,
  )
  expect(strange).toEqual([])
  // Enough writes of every kind happened, by both tenants.
  const made = await execute(
    database.adminUrl,
    'select by_tenant, op, count(*)::int as n from changes group by 1, 2 order by 1, 2',
  )
  expect(made.map(({ by_tenant, op }) => `${by_tenant} ${op}`)).toEqual(
    TENANTS.flatMap(tenant => ['DELETE', 'INSERT', 'UPDATE'].map(op => `${tenant} ${op}`)),
  )
  for (const { n } of made) expect(n).toBeGreaterThan(20)
  for (const status of ['200', '201', '400', '403', '404', 'abandoned'])
    expect(statuses.get(status), status).toBeGreaterThan(5)
  expect(statuses.get('408'), 'timeouts').toBeGreaterThan(0)
  expect(statuses.get('503') ?? 0).toBeLessThan(REQUESTS / 10)
})
