/**
 * docs/guides/caching.md#cache-key: random requests, few enough to repeat, sent to a gateway with a result
 * cache and to one without.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { TokenRequest } from '../../src/identity/mint.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { TestGateway } from '../support/gateway.ts'

const REQUESTS = 800

const database = databaseFixture(`
  create table owners (id int primary key, name text not null);
  create table notes (id int primary key, tenant_id text not null, owner_id int not null references owners,
    body text, n numeric);
  insert into owners values (1, 'Ann'), (2, 'Bob');
  insert into notes select i, 't' || i % 2 + 1, i % 2 + 1, case when i % 3 > 0 then 'note ' || i end, i / 2.0
    from generate_series(1, 12) i;
  alter table notes enable row level security;
  create policy own on notes using (tenant_id = (select current_setting('app.current_tenant_id', true)));
  -- Returns all session settings of a caller.
  create view told with (security_invoker) as
    select id, current_setting('app.current_tenant_id', true) as tenant, current_setting('app.current_user_id',
      true) as "user",
      current_setting('app.current_agent_id', true) as agent, current_setting('app.current_role', true) as role,
      current_setting('app.current_scopes', true) as scopes, current_setting('request.jwt.claims', true) as claims
    from owners;
  grant select on all tables in schema public to app
`)
const keeping = gatewayFixture(database, { toml: 'cache.enabled = true\ncache.ttl_secs = 86400' })
const plain = gatewayFixture(database)

/** One token per caller, because a new one contains another time. */
const tokens = new Map<string, Promise<string>>()
function tokenOf(claims: Partial<TokenRequest>): Promise<string> {
  const name = JSON.stringify(claims)
  const known = tokens.get(name) ?? plain.token(claims)
  tokens.set(name, known)
  return known
}

const one = <T>(...choices: readonly T[]) => fc.constantFrom(...choices)

const caller: fc.Arbitrary<Partial<TokenRequest>> = one<Partial<TokenRequest>>(
  { tenantId: 't1' },
  { tenantId: 't2' },
  { tenantId: 't1', userId: 'u' },
  { tenantId: 't1', role: 'u' },
  { tenantId: 't1', agentId: 'u' },
  { agentId: 'u' },
  { tenantId: 't1', scopes: ['a', 'b'] },
  { tenantId: 't1', scopes: ['a'] },
)

const parameters = fc
  .tuple(
    one('', 'limit=2', 'limit=3', 'limit=20', 'limit=0'),
    one('', 'offset=0', 'offset=1', 'offset=2'),
    one('', 'sort=id', 'sort=-id', 'sort=n:desc', 'sort=body.nullsfirst'),
    one('', 'select=id', 'select=id,body', 'select=body,id', 'select=other:body,id'),
    one('', 'id=1', 'id=eq.1', 'id.eq=2', 'id=in.(1,2)', 'id=in.(2,1)', 'id=gt.3', 'id=lte.3', 'id=ne.1'),
    one('', 'body=is_null', 'body=is_null=false', 'body=like.*1*', 'body=like.%1%', 'body=', 'body=null'),
    one('', '', 'expand=owner', 'distinct=body', 'search=note', 'search=note&search_columns=body'),
  )
  .map(parts => parts.filter(part => part !== '').join('&'))

const asked = fc.record({
  as: caller,
  path: fc.oneof(
    { weight: 4, arbitrary: parameters.map(query => `/api/notes?${query}`) },
    one(
      '/api/notes/1',
      '/api/notes/2',
      '/api/notes/01',
      '/api/notes/x',
      '/api/notes/1?select=id',
      '/api/notes/1?expand=owner',
    ),
    one('/api/told', '/api/told?select=claims', '/api/told/aggregate?fn=count', '/api/told?id=2'),
    one('/api/owners/1/notes', '/api/owners/2/notes', '/api/owners/1/notes?limit=1', '/api/owners/3/notes'),
    one(
      '/api/notes/aggregate?fn=count',
      '/api/notes/aggregate?fn=sum&column=n',
      '/api/notes/aggregate?fn=sum&column=id',
    ),
    one('/api/notes/aggregate?fn=count&id=gt.3', '/api/notes/aggregate?fn=count&group_by=body'),
    one('/api/notes?stream=true', '/api/nothing', '/api/notes?nothing=1'),
  ),
  headers: one<Record<string, string>>(
    {},
    {},
    { Prefer: 'count=exact' },
    { Prefer: 'count=none' },
    { Accept: 'text/plain' },
  ),
  method: one('GET', 'GET', 'GET', 'HEAD'),
})

const queried = fc.record({
  as: caller,
  text: one(
    'get notes where id > $1 order by id',
    'get notes where id >= $1 order by id',
    'get notes where id > $1 and n > $2 order by id',
  ),
  values: one<readonly unknown[]>([1], ['1'], [2], [1, 2], [1, '2'], [1, 2.5], [null, 1], [1, null]),
})

interface Said {
  readonly status: number
  readonly text: string
  readonly cache: string | null
}

async function say(gateway: TestGateway, token: string, path: string, init: RequestInit): Promise<Said> {
  const headers = {
    ...(init.headers as Record<string, string>),
    Authorization: `Bearer ${token}`,
    'X-Request-Id': 'same',
  }
  const response = await fetch(gateway.url + path, { ...init, headers })
  return { status: response.status, text: await response.text(), cache: response.headers.get('x-cache') }
}

let hits = 0

async function expectSame(as: Partial<TokenRequest>, path: string, init: RequestInit): Promise<void> {
  const token = await tokenOf(as)
  const kept = await say(keeping, token, path, init)
  const executed = await say(plain, token, path, init)
  if (kept.cache === 'HIT') hits++
  expect(executed.cache).not.toBe('HIT')
  // Cursors are signed with the secret of the tokens, which both gateways have.
  expect({ status: kept.status, text: kept.text }).toEqual({ status: executed.status, text: executed.text })
}

test('a gateway with a cache gives the same responses as one without', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(asked, ({ as, path, headers, method }) => expectSame(as, path, { method, headers })),
    { numRuns: REQUESTS },
  )
  await fc.assert(
    fc.asyncProperty(queried, ({ as, text, values }) => {
      const body = JSON.stringify({ query: text, parameters: values })
      return expectSame(as, '/api/_query', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } })
    }),
    { numRuns: REQUESTS / 4 },
  )
  expect(hits).toBeGreaterThan(REQUESTS / 20)
})
