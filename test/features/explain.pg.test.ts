/** docs/reference/reading.md#explain: `GET /api/{table}/_explain`. */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { execute } from '../support/postgres.ts'
import { shopDatabase } from './shop.ts'

const ADMIN = 'the-admin-token-of-the-tests'

const database = databaseFixture(
  shopDatabase,
  `create table marks (id serial primary key);
   create function mark() returns int language plpgsql security definer as $$ begin insert into marks default
     values; return 1; end $$;
   create view marking with (security_invoker = true) as select id, mark() as marked from users;
   grant select on marking to app`,
)

const gateway = gatewayFixture(database)

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows'?: number
  readonly Plans?: readonly Plan[]
}

/** A plan node and all nodes below it. */
const nodes = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)]

/** The scope that reveals the figures. */
const SEEING = { as: { tenantId: 't1', scopes: ['svc:explain'] } }

describe('the response', () => {
  test('is {query, parameters, plan} with the plan as PostgreSQL prints it after execution', async () => {
    const reply = await gateway.get('/api/orders/_explain?status=paid&total.gt=50&limit=7', SEEING)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(Object.keys(reply.json)).toEqual(['query', 'parameters', 'plan'])
    const { query, parameters, plan } = reply.json
    expect(query).toMatch(/^SELECT .* FROM public\.orders AS t WHERE .*\$1.* LIMIT 8\)/)
    expect(query).toContain('$2')
    expect(parameters).toEqual(['paid', '50'])
    expect(plan).toEqual([
      expect.objectContaining({
        Plan: expect.objectContaining({ 'Actual Rows': 2 }),
        'Execution Time': expect.any(Number),
      }),
    ])
    expect(nodes(plan[0].Plan).map(node => node['Relation Name'])).toContain('orders')
  })
  test('has a query that can be executed with its parameters', async () => {
    const { query, parameters } = (await gateway.get('/api/users/_explain?id.lte=2&sort=-id')).json
    const literal = parameters.reduce(
      (text: string, value: string, index: number) => text.replace(`$${index + 1}`, `'${value}'`),
      query,
    )
    expect(await execute(database.adminUrl, `explain ${literal}`)).not.toHaveLength(0)
  })
  test.each([
    ['orders/_explain?expand=customer', ['orders', 'customers']],
    ['orders/_explain?expand=nested:order_items.product', ['orders', 'order_items', 'products']],
    ['orders/_explain?select=id&sort=-total&offset=1', ['orders']],
    ['products/_explain?search=bicycle', ['products']],
    ['orders/_explain?distinct=status', ['orders']],
  ])('%s', async (path, tables) => {
    const reply = await gateway.get(`/api/${path}`)
    expect(reply.status, reply.text).toBe(200)
    const found = nodes(reply.json.plan[0].Plan).flatMap(node => node['Relation Name'] ?? [])
    expect([...new Set(found)].sort()).toEqual([...tables].sort())
  })
  test('has parameter values as text, whatever they contain', async () => {
    const value = `"\\\u0007é😀`
    const reply = await gateway.get(`/api/orders/_explain?note.eq=${encodeURIComponent(value)}&id.in=1,2`)
    expect(reply.json.parameters).toEqual([value, '{"1","2"}'])
  })
  test('uses only the caller’s own rows', async () => {
    const { query, plan } = (
      await gateway.get('/api/users/_explain', { as: { tenantId: 't2', scopes: ['svc:explain'] } })
    ).json
    expect(plan[0].Plan['Actual Rows']).toBe(1)
    expect(query).not.toContain('t2')
  })
})

describe('without the scope svc:explain', () => {
  /** Every number in the response, at any depth. */
  const numbers = (value: unknown): readonly number[] =>
    typeof value === 'number'
      ? [value]
      : typeof value === 'object' && value !== null
        ? Object.values(value).flatMap(numbers)
        : []
  test('has a plan with nodes and conditions, and without figures', async () => {
    const { plan } = (await gateway.get('/api/orders/_explain?status=paid&sort=-total&expand=customer')).json
    const found = nodes(plan[0].Plan)
    expect(found.flatMap(node => node['Relation Name'] ?? []).sort()).toEqual(['customers', 'orders'])
    expect(JSON.stringify(plan)).toContain('Sort Key')
    expect(numbers(plan)).toEqual([])
    expect(JSON.stringify(plan)).not.toMatch(/Actual|Removed|Cost|Time|Buffers|Memory|Rows|Loops|Heap|Width|Space/)
  })
  test('is the same for a query text of any kind', async () => {
    const explain = (text: string, scopes: readonly string[]) =>
      gateway.get('/api/_query', {
        method: 'POST',
        headers: { 'Content-Type': 'text/plain' },
        body: text,
        as: { tenantId: 't1', scopes: [...scopes] },
      })
    for (const text of ['explain get orders where total > 5', "explain set orders values note = 'x' where id = 1"]) {
      const { data } = (await explain(text, [])).json
      expect([text, numbers(data)]).toEqual([text, []])
      expect(data[0][0].Plan['Node Type']).toEqual(expect.any(String))
      expect(numbers((await explain(text, ['svc:explain'])).json.data).length).toBeGreaterThan(0)
    }
  })
  test('has the same plan for a value that only another tenant has', async () => {
    const planOf = async (note: string) => (await gateway.get(`/api/orders/_explain?note.eq=${note}`)).json.plan
    expect(JSON.stringify(await planOf('secret')).replaceAll('secret', 'X')).toBe(
      JSON.stringify(await planOf('nobody')).replaceAll('nobody', 'X'),
    )
  })
})

test('cannot be used to write', async () => {
  const reply = await gateway.get('/api/marking/_explain')
  expect(reply.status).toBe(400)
  expect(reply.json.error).toMatchObject({ code: 'QUERY_ERROR', details: { sqlstate: '25006' } })
  expect(await execute(database.adminUrl, 'select from marks')).toHaveLength(0)
})

test.each([
  ['/api/orders/_explain?nope=1', 400, 'has no column "nope"'],
  ['/api/orders/_explain?id=x', 400, 'cannot hold "x"'],
  ['/api/orders/_explain?limit=x', 400, 'limit "x"'],
  ['/api/orders/_explain?expand=nope', 400, 'nope'],
  ['/api/orders/_explain?cursor=x', 400, 'cursor'],
  ['/api/nope/_explain', 404, 'there is no table "nope"'],
])('%s → %i', async (path, status, message) => {
  const reply = await gateway.get(path)
  expect(reply.status).toBe(status)
  expect(reply.json.error.message).toContain(message)
})

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s → 405', async method => {
  const reply = await gateway.get('/api/orders/_explain', { method })
  expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

describe('explain_endpoint', () => {
  async function withGateway(toml: string, run: (other: TestGateway) => Promise<void>): Promise<void> {
    const other = await testGateway(database.url, { toml, environment: { SVC_ADMIN_TOKEN: ADMIN } })
    try {
      await run(other)
    } finally {
      await other.close()
    }
  }
  const bearer = (token: string) => ({ as: null, headers: { Authorization: `Bearer ${token}` } })

  test('on: every caller who can read the table', async () => {
    await withGateway('explain_endpoint = "on"', async other => {
      expect((await other.get('/api/users/_explain')).status).toBe(200)
      expect((await other.get('/api/users/_explain', { as: null })).status).toBe(401)
    })
  })
  test('off: 404 for every caller and method', async () => {
    await withGateway('explain_endpoint = "off"', async other => {
      for (const method of ['GET', 'POST']) {
        const reply = await other.get('/api/users/_explain', { method })
        expect([reply.status, reply.json.error.code]).toEqual([404, 'NOT_FOUND'])
      }
      // Where the admin token is not accepted, it is an ordinary invalid token.
      expect((await other.get('/api/users/_explain', bearer(ADMIN))).status).toBe(401)
      expect((await other.get('/api/users/1')).status).toBe(200)
    })
  })
  test('admin: only the admin token', async () => {
    await withGateway('explain_endpoint = "admin"', async other => {
      const reply = await other.get('/api/users/_explain?id=1', bearer(ADMIN))
      expect(reply.status, reply.text).toBe(200)
      expect(reply.json.parameters).toEqual(['1'])
      // The plan is made without a caller: no tenant, no rows.
      expect(reply.json.plan[0].Plan['Actual Rows']).toBe(0)
      for (const options of [{}, { as: null }, bearer(`${ADMIN}x`), bearer('')]) {
        const refused = await other.get('/api/users/_explain', options)
        expect(refused.status).toBe(401)
        expect(refused.json.error.code).toBe('UNAUTHORIZED')
        expect(refused.headers.get('www-authenticate')).toContain('Bearer')
      }
    })
  })
  test('admin: the token gives no access to anything else', async () => {
    await withGateway('explain_endpoint = "admin"', async other => {
      for (const [path, status, code] of [
        ['/api/users', 401, 'UNAUTHORIZED'],
        ['/api/users/1', 401, 'UNAUTHORIZED'],
        ['/api/users/1/_explain', 404, 'NOT_FOUND'],
        ['/api/_schema', 401, 'UNAUTHORIZED'],
        ['/api/a/b/c/_explain', 404, 'NOT_FOUND'],
      ] as const) {
        const { status: found, json } = await other.get(path, bearer(ADMIN))
        expect([path, found, json.error.code]).toEqual([path, status, code])
      }
      expect((await other.get('/api/users/_explain', { ...bearer(ADMIN), method: 'DELETE' })).status).toBe(405)
    })
  })
})
