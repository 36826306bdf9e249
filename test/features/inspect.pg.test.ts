/** docs/reference/inspect.md: `POST /api/_inspect`. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { TokenRequest } from '../../src/identity/mint.ts'
import { INSPECTED_CHARACTERS_MAX } from '../../src/rest/inspect/request.ts'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { shopDatabase } from './shop.ts'

const database = databaseFixture(
  shopDatabase,
  `create table members (who text primary key, level int not null);
   create table files (id int primary key, tenant_id text not null, owner text, secret_level int not null,
     deleted_at timestamptz);
   insert into files values (1, 't1', 'ann', 0, null), (2, 't1', 'bob', 5, null), (3, 't2', 'zoe', 0, null),
     (4, 't1', 'ann', 0, now());
   alter table files enable row level security;
   alter table files force row level security;
   create policy of_tenant on files using (tenant_id = current_setting('app.current_tenant_id', true));
   create policy of_staff on files for select using (current_setting('app.current_role', true) = 'staff');
   create policy not_secret on files as restrictive using (secret_level < 3);
   create policy writes on files for insert with check (true);
   create view staff_files as select 1 as id;
   grant select on files, staff_files, members to app`,
)
const folder = folderFixture()
const gateway = gatewayFixture(database)

const EXPLAINER = { tenantId: 't1', userId: 'ann', role: 'clerk', scopes: ['svc:explain'] }

async function inspect(from: TestGateway, body: unknown, as: Partial<TokenRequest> = EXPLAINER): Promise<Reply> {
  return from.get('/api/_inspect', {
    ...{ as, method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) },
  })
}

describe('the answer', () => {
  test('follows a list from the caller to the plan', async () => {
    const reply = await inspect(gateway, { request: 'GET /api/orders?status=paid&sort=-total&limit=7' })
    expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'no-store'])
    const { request, failure, caller, tables, tree, statements, timings, rows, row } = reply.json
    expect(request).toEqual({ method: 'GET', path: '/api/orders?status=paid&sort=-total&limit=7' })
    expect([failure, rows, row]).toEqual([null, 2, null])
    expect(caller.claims).toMatchObject({ tenant_id: 't1', user_id: 'ann' })
    expect(caller.settings).toMatchObject({ 'app.current_tenant_id': 't1', 'app.current_role': 'clerk' })
    expect(tables).toEqual([
      {
        table: 'orders',
        access: { refused: null, columns: null, rows: null, rows_withheld: false, soft_delete: null },
        row_security: {
          ...{ active: true, enabled: true, forced: true, complete: true },
          policies: [
            {
              ...{ name: 'own', permissive: true, command: 'all' },
              condition: expect.stringContaining("current_setting('app.current_tenant_id'"),
            },
          ],
        },
      },
    ])
    expect(tree).toBe('get public.orders as t\nwhere status = $1\norder by t.total desc, t.id\nlimit 8')
    expect(statements).toHaveLength(1)
    expect(statements[0].sql).toMatch(/^SELECT .*FROM public\.orders AS t WHERE/)
    expect(statements[0].parameters).toEqual(['paid'])
    expect(statements[0].cost_guard).toMatchObject({ passes: true, estimated_cost: expect.any(Number) })
    expect(statements[0].measured).toBe(true)
    expect(JSON.stringify(statements[0].plan)).toContain('"Actual Rows":2')
    expect(timings.map(({ name }: { name: string }) => name)).toEqual(['parse', 'check', 'run', 'database'])
  })

  test('has every statement of a list of children with its total', async () => {
    const reply = await inspect(gateway, { request: '/api/customers/1/orders?limit=1' })
    expect(reply.json.statements).toHaveLength(2)
    expect(reply.json.tables.map(({ table }: { table: string }) => table)).toEqual(['customers', 'orders'])
  })

  test('explains a text of the query language', async () => {
    const { json } = await inspect(gateway, { query: 'get orders where total>:least', parameters: { least: 50 } })
    expect([json.failure, json.rows, json.tree]).toEqual([null, 3, 'get orders\nwhere total > :least'])
    expect(json.statements[0].parameters).toEqual(['50'])
  })

  test('has the error that the request itself would have', async () => {
    for (const request of ['/api/orders?nope=1', '/api/nope', '/api/orders?total.gt=x', '/api/orders/77']) {
      const sent = (await gateway.get(request, { as: EXPLAINER })).json.error
      const { code, message, status } = (await inspect(gateway, { request })).json.failure
      expect([request, code, message, status]).toEqual([request, sent.code, sent.message, sent.status])
    }
  })

  test('tells whether the result is cached', async () => {
    const caching = await testGateway(database.url, { toml: '[gateway.cache]\nenabled = true' })
    const first = await inspect(caching, { request: '/api/labels?sort=id' })
    const second = await inspect(caching, { request: '/api/labels?sort=id' })
    await caching.close()
    expect([first.json.cache, second.json.cache]).toEqual(['MISS', 'HIT'])
    expect((await inspect(gateway, { request: '/api/labels' })).json.cache).toBeNull()
  })

  test('has a plan that is not executed for a read above the cost guard', async () => {
    const guarded = await testGateway(database.url, { toml: 'explain_max_cost = 1' })
    const { json } = await inspect(guarded, { request: '/api/orders?sort=note' })
    await guarded.close()
    expect(json.failure.code).toBe('QUERY_TOO_EXPENSIVE')
    expect(json.statements[0]).toMatchObject({ measured: false, cost_guard: { passes: false, cost_limit: 1 } })
    expect(JSON.stringify(json.statements[0].plan)).not.toContain('Actual')
  })

  test('leaves nothing behind: the request is read-only', async () => {
    for (const query of [
      "set orders values note = 'x'",
      'explain get orders',
      "add labels values id = 5, name = 'x'",
    ]) {
      const { json } = await inspect(gateway, { query })
      expect([query, json.failure.code, json.statements]).toEqual([query, 'PARSE_ERROR', []])
    }
  })
})

describe('why a row is visible or not', () => {
  const why = async (id: number, as: Partial<TokenRequest> = EXPLAINER) => {
    const { json } = await inspect(gateway, { request: `/api/files/${id}` }, as)
    const results = json.row.policies.map((each: { policy: string; result: boolean | null }) => [
      each.policy,
      each.result,
    ])
    return [json.row.reason, Object.fromEntries(results)]
  }

  test('each policy is evaluated for a visible row', async () => {
    expect(await why(1)).toEqual(['visible', { of_tenant: true, of_staff: false, not_secret: true }])
  })

  test('a row that policies hide is distinguished from one that does not exist', async () => {
    // A restrictive policy or the missing permission: the row cannot be read to find out which.
    expect(await why(3)).toEqual(['hidden', { of_tenant: null, of_staff: false, not_secret: null }])
    expect(await why(2)).toEqual(['hidden', { of_tenant: null, of_staff: false, not_secret: null }])
    // For staff the permissive policy is true, so it must be the restrictive one.
    expect(await why(2, { ...EXPLAINER, role: 'staff' })).toEqual([
      'hidden',
      { of_tenant: null, of_staff: true, not_secret: false },
    ])
    expect((await why(77))[0]).toBe('missing')
  })

  test('without a restrictive policy no permissive one is true', async () => {
    const { json } = await inspect(gateway, { request: '/api/orders/99' })
    expect(json.row).toEqual({ reason: 'hidden', policies: [{ policy: 'own', permissive: true, result: false }] })
    expect(json.failure.status).toBe(404)
    const composite = await inspect(gateway, { request: '/api/order_items/99,1' })
    expect(composite.json.row.reason).toBe('hidden')
    const text = await inspect(gateway, { request: '/api/codes/x,y' })
    expect(text.json.row.reason).toBe('hidden')
    expect((await inspect(gateway, { request: '/api/codes/x,z' })).json.row.reason).toBe('missing')
  })

  test('a deleted row is reported as deleted', async () => {
    const soft = await testGateway(database.url, { toml: '[gateway.tables.files]\nsoft_delete = "deleted_at"' })
    const { json } = await inspect(soft, { request: '/api/files/4' })
    await soft.close()
    expect([json.row.reason, json.tables[0].access.soft_delete]).toEqual(['deleted', 'deleted_at'])
  })
})

describe('a caller who may not know everything', () => {
  let limited: TestGateway
  beforeAll(async () => {
    const policies = [
      ...['policies:', '  - { name: own files, table: files, role: clerk, operations: [read],'],
      `      filter: "owner = $user_id", allowed_columns: [id, owner, tenant_id] }`,
      '  - { name: staff, table: files, role: staff, operations: [read], allowed_columns: [id, tenant_id] }',
      '  - { name: orders, table: orders, role: "*", operations: [read] }',
    ]
    await writeFile(join(folder, 'policy.yaml'), policies.join('\n'))
    limited = await testGateway(database.url, { toml: `policy = ${JSON.stringify(join(folder, 'policy.yaml'))}` })
    return () => limited.close()
  })

  test('without the scope: 403, in development mode the same answer as with it', async () => {
    const refused = await inspect(gateway, { request: '/api/orders' }, { tenantId: 't1' })
    expect([refused.status, refused.json.error.message]).toEqual([403, expect.stringContaining('svc:explain')])
    const development = await testGateway(database.url, { environment: { SVC_DEV_MODE: 'true' } })
    const open = await inspect(development, { request: '/api/orders' }, { tenantId: 't1' })
    await development.close()
    expect([open.status, open.json.rows]).toEqual([200, 5])
  })

  test.each(['admin', 'off'])('with explain_endpoint = "%s": 404', async mode => {
    const other = await testGateway(database.url, {
      toml: `explain_endpoint = "${mode}"`,
      environment: { SVC_ADMIN_TOKEN: 'the-admin-token-of-the-tests' },
    })
    const reply = await inspect(other, { request: '/api/orders' })
    await other.close()
    expect(reply.status).toBe(404)
  })

  test('a hidden row and a missing row are the same to a caller whose rows are limited', async () => {
    const [hidden, missing] = await Promise.all(
      [2, 77].map(async id => (await inspect(limited, { request: `/api/files/${id}` })).json),
    )
    for (const { row, statements } of [hidden, missing]) {
      expect(row.reason).toBe('unknown')
      expect(row.policies.every(({ result }: { result: unknown }) => result === null)).toBe(true)
      expect(statements[0].measured).toBe(false)
      expect(JSON.stringify(statements[0].plan)).not.toMatch(/Actual|Removed/)
    }
    const text = (json: unknown) =>
      JSON.stringify(json)
        .replaceAll(/77|\b2\b/g, 'N')
        .replaceAll(/"timings":\[.*?\]/g, '')
    expect(text(hidden)).toBe(text(missing))
  })

  test('a policy that mentions a hidden column is neither shown nor evaluated', async () => {
    const { json } = await inspect(limited, { request: '/api/files/1' }, { ...EXPLAINER, role: 'staff' })
    const [table] = json.tables
    expect(table.access).toMatchObject({ columns: ['id', 'tenant_id'], rows: null })
    const byName = Object.fromEntries(
      table.row_security.policies.map(({ name, condition }: Record<string, string>) => [name, condition]),
    )
    expect(byName).toMatchObject({ not_secret: null, of_tenant: expect.any(String) })
    expect(json.row.policies.find(({ policy }: { policy: string }) => policy === 'not_secret').result).toBeNull()
    expect(JSON.stringify(json)).not.toMatch(/secret_level|deleted_at/)
  })

  test('the rows that the route policy leaves are a query, if it names only known columns', async () => {
    const { json } = await inspect(limited, { request: '/api/files?sort=id' })
    expect(json.tables[0].access).toMatchObject({
      rows: 'get public.files\nwhere owner = :user_id',
      rows_withheld: false,
    })
    expect(json.rows).toBe(2)
  })

  test('a table that the caller cannot see is not in the answer', async () => {
    const { json } = await inspect(limited, { request: '/api/customers' })
    expect([json.failure.status, json.tables, json.statements]).toEqual([403, [], []])
    const sent = await limited.get('/api/customers', { as: EXPLAINER })
    expect(sent.json.error.message).toBe(json.failure.message)
  })

  test('an inspected request needs its line on the allow-list', async () => {
    const list = join(folder, 'allowed.txt')
    await writeFile(list, 'GET /api/orders?status.eq\nget labels where id = ?\n')
    const strict = await testGateway(database.url, { toml: `allow_list_path = ${JSON.stringify(list)}` })
    expect((await inspect(strict, { request: '/api/orders?status=paid' })).json.failure).toBeNull()
    expect((await inspect(strict, { query: 'get labels where id = 1' })).json.failure).toBeNull()
    for (const body of [{ request: '/api/orders' }, { request: '/api/nothing' }, { query: 'get labels' }]) {
      const { failure: error, tables } = (await inspect(strict, body)).json
      expect([error.code, error.message]).toEqual(['FORBIDDEN', expect.stringContaining('allow-list')])
      expect(tables).toEqual(body.request === '/api/orders' ? [expect.anything()] : [])
    }
    await strict.close()
  })
})

describe('a body that does not describe a read that can be inspected', () => {
  test.each([
    [{}, 'has no request'],
    [{ request: '/api/orders', query: 'get orders' }, 'more than a request'],
    [{ request: 5 }, '"request" must be a string'],
    [{ request: '/api/orders', other: 1 }, 'has "other"'],
    [{ request: 'POST /api/orders' }, 'cannot be inspected'],
    [{ request: '/api/_schema' }, 'cannot be inspected'],
    [{ request: '/api/_inspect' }, 'cannot be inspected'],
    [{ request: '/api/rpc/f' }, 'cannot be inspected'],
    [{ request: '/api/orders/_explain' }, 'cannot be inspected'],
    [{ request: 'https://example.com/api/orders' }, 'cannot be inspected'],
    [{ request: '/api/orders?note=ü' }, 'percent-encoded'],
    [[], 'must be an object'],
  ])('%j', async (body, message) => {
    const reply = await inspect(gateway, body)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'PARSE_ERROR'])
    expect(reply.json.error.message).toContain(message)
  })

  test('a request line has a limit', async () => {
    const { json } = await inspect(gateway, { request: `/api/orders?note=${'x'.repeat(INSPECTED_CHARACTERS_MAX)}` })
    expect(json.error.message).toContain(`at most ${INSPECTED_CHARACTERS_MAX}`)
  })

  test('a batch cannot contain an inspection, and the URL of an inspection has no parameters', async () => {
    const batch = await gateway.get('/api/_batch', {
      ...{ as: EXPLAINER, method: 'POST', headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({
        operations: [{ method: 'POST', path: '/api/_inspect', body: { request: '/api/orders' } }],
      }),
    })
    expect(batch.status).toBe(400)
    const inUrl = await gateway.get('/api/_inspect?x=1', { as: EXPLAINER, method: 'POST', body: '{}' })
    expect(inUrl.status).toBe(400)
  })
})
