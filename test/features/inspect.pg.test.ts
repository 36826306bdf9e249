/** docs/reference/inspect.md: `POST /api/_inspect`. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { TokenRequest } from '../../src/identity/mint.ts'
import { INSPECTED_CHARACTERS_MAX } from '../../src/rest/inspect/request.ts'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { type Reply, type TestGateway, testGateway } from '../support/gateway.ts'
import { openSocket } from '../support/socket.ts'
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
   create table drafts (id int primary key, tenant_id text not null default 't1', title text not null,
     reply_to int references drafts deferrable initially deferred);
   alter table drafts enable row level security;
   create policy of_tenant on drafts using (tenant_id = current_setting('app.current_tenant_id', true));
   create policy titled on drafts as restrictive for insert with check (title <> '');
   create function shout() returns trigger language plpgsql as
     'begin new.title := upper(new.title); return new; end';
   create trigger shout before insert or update on drafts for each row execute function shout();
   create table outside (id int primary key);
   create function trigger_in_c() returns trigger language c as '$libdir/plpgsql', 'plpgsql_validator';
   create trigger leaves before insert on outside for each row execute function trigger_in_c();
   grant select, insert, update, delete on drafts, outside to app;
   insert into drafts values (1, 't1', 'ONE'), (2, 't2', 'TWO');
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
        access: { refused: null, columns: null, rows: null, rows_withheld: false, soft_delete: null, writes: [] },
        row_security: {
          ...{ active: true, enabled: true, forced: true, complete: true },
          policies: [
            {
              ...{ name: 'own', permissive: true, command: 'all' },
              condition: expect.stringContaining("current_setting('app.current_tenant_id'"),
              ...{ check: null, withheld: false },
            },
          ],
        },
        triggers: [],
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

  test('shows whether the result is cached', async () => {
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

  test('a text that explains is not inspected', async () => {
    const { json } = await inspect(gateway, { query: 'explain get orders' })
    expect([json.failure.code, json.failure.message, json.statements]).toEqual([
      'PARSE_ERROR',
      expect.stringContaining('leave out explain'),
      [],
    ])
  })
})

describe('a write', () => {
  const drafts = async () =>
    (await gateway.get('/api/drafts?sort=id', { as: EXPLAINER })).json.data.map(({ title }: { title: string }) => title)
  const policies = (json: { tables: readonly { row_security: { policies: readonly object[] } }[] }) =>
    json.tables[0]?.row_security.policies

  test('is planned and not executed', async () => {
    const before = await drafts()
    const { json } = await inspect(gateway, {
      request: 'POST /api/drafts',
      body: { id: 10, tenant_id: 't1', title: 'new' },
    })
    expect([json.failure, json.changes, json.rows]).toEqual([null, 'planned', null])
    expect(json.request).toEqual({ method: 'POST', path: '/api/drafts' })
    expect(json.statements[0].sql).toMatch(/INSERT INTO public\.drafts/)
    expect(JSON.stringify(json.statements[0].plan)).toContain('"Operation":"Insert"')
    expect(json.statements[0]).toMatchObject({ measured: false, cost_guard: null })
    expect(json.tables[0].access.writes).toEqual([
      { operation: 'insert', refused: null, columns: null, rows: null, rows_withheld: false },
    ])
    expect(await drafts()).toEqual(before)
  })

  test('has the policies and triggers of its operation', async () => {
    const insert = (await inspect(gateway, { request: 'POST /api/drafts', body: { id: 10, title: 'x' } })).json
    expect(policies(insert)).toEqual([
      {
        ...{ name: 'of_tenant', permissive: true, command: 'all', withheld: false },
        condition: expect.stringContaining('tenant_id'),
        check: expect.stringContaining('tenant_id'),
      },
      {
        name: 'titled',
        permissive: false,
        command: 'insert',
        condition: null,
        check: "(title <> ''::text)",
        withheld: false,
      },
    ])
    expect(insert.tables[0].triggers).toEqual([
      { name: 'shout', timing: 'before', level: 'row', operations: ['insert', 'update'], function: 'public.shout' },
    ])
    const removal = (await inspect(gateway, { request: 'DELETE /api/drafts/1' })).json
    expect(removal.changes).toBe('planned')
    expect(policies(removal)?.map(policy => ({ ...policy }))).toEqual([
      expect.objectContaining({ name: 'of_tenant', check: null }),
    ])
    expect(removal.tables[0].triggers).toEqual([])
  })

  test('with run: is executed and rolled back, with the error or the rows that it would have', async () => {
    const before = await drafts()
    const change = await inspect(gateway, { request: 'PATCH /api/drafts/1', body: { title: 'other' }, run: true })
    expect(change.json).toMatchObject({ failure: null, changes: 'rolled back', rows: 1 })
    const text = await inspect(gateway, { query: "set drafts values title = 'all' where id > 0", run: true })
    expect(text.json).toMatchObject({ failure: null, changes: 'rolled back' })
    expect(await drafts()).toEqual(before)
    for (const [method, path, body] of [
      ['POST', '/api/drafts', { id: 1, tenant_id: 't1', title: 'again' }],
      ['POST', '/api/drafts', { id: 11, tenant_id: 't2', title: 'foreign' }],
      ['POST', '/api/drafts', { id: 11, tenant_id: 't1', title: '' }],
      ['PATCH', '/api/drafts/77', { title: 'none' }],
      ['POST', '/api/drafts', { id: 11, tenant_id: 't1', title: 'x', nope: 1 }],
      // Checked at the commit.
      ['POST', '/api/drafts', { id: 11, tenant_id: 't1', title: 'x', reply_to: 99 }],
    ] as const) {
      const headers = { 'Content-Type': 'application/json' }
      const sent = await gateway.get(path, { as: EXPLAINER, method, headers, body: JSON.stringify(body) })
      const { code, message, status } = (await inspect(gateway, { request: `${method} ${path}`, body, run: true })).json
        .failure
      expect([body, code, message, status]).toEqual([
        body,
        sent.json.error.code,
        sent.json.error.message,
        sent.json.error.status ?? sent.status,
      ])
    }
    expect(await drafts()).toEqual(before)
  })

  test('with If-Match: the condition is evaluated', async () => {
    const reply = await gateway.get('/api/_inspect', {
      ...{ as: EXPLAINER, method: 'POST', headers: { 'Content-Type': 'application/json', 'If-Match': '"1"' } },
      body: JSON.stringify({ request: 'PATCH /api/drafts/1', body: { title: 'y' }, run: true }),
    })
    expect(reply.json.failure.code).toBe('PRECONDITION_FAILED')
  })

  test('a patch is inspected by its media type', async () => {
    const patch = (value: string, content_type: string) => {
      const body = [
        { op: 'test', path: '/title', value },
        { op: 'replace', path: '/title', value: 'other' },
      ]
      return inspect(gateway, { request: 'PATCH /api/drafts/1', body, content_type, run: true })
    }
    const before = await drafts()
    const { json } = await patch('ONE', 'application/json-patch+json')
    expect(json).toMatchObject({ failure: null, changes: 'rolled back', rows: 1 })
    expect(await drafts()).toEqual(before)
    expect((await patch('TWO', 'application/json-patch+json')).json.failure).toMatchObject({ code: 'TEST_FAILED' })
    expect((await patch('ONE', 'text/csv')).json.failure).toMatchObject({ status: 415 })
  })

  test('with run: related rows are followed to the end', async () => {
    const child = { id: 981, tenant_id: 't1', title: 'child' }
    const body = { id: 980, tenant_id: 't1', title: 'parent', drafts: [child] }
    const planned = (await inspect(gateway, { request: 'POST /api/drafts', body })).json
    const ran = (await inspect(gateway, { request: 'POST /api/drafts', body, run: true })).json
    expect([planned.changes, planned.statements.length]).toEqual(['planned', 1])
    expect([ran.failure, ran.changes]).toEqual([null, 'rolled back'])
    expect(ran.statements.length).toBeGreaterThan(1)
  })

  test('with run: a request has at most max_inspect_steps', async () => {
    const few = await testGateway(database.url, { toml: 'max_inspect_steps = 1' })
    const body = { id: 980, tenant_id: 't1', title: 'parent', drafts: [{ id: 981, tenant_id: 't1', title: 'child' }] }
    const { failure, statements } = (await inspect(few, { request: 'POST /api/drafts', body, run: true })).json
    expect(failure).toMatchObject({ code: 'PARSE_ERROR', status: 400 })
    expect(failure.message).toContain('max_inspect_steps is 1')
    expect(statements.length).toBeLessThanOrEqual(1)
    const single = (await inspect(few, { request: 'PATCH /api/drafts/1', body: { title: 'new' }, run: true })).json
    expect([single.failure, single.changes]).toEqual([null, 'rolled back'])
    await few.close()
  })

  test('with run: one that may have effects outside of its transaction is refused', async () => {
    const { json } = await inspect(gateway, { request: 'POST /api/outside', body: { id: 1 }, run: true })
    expect([json.failure.code, json.changes]).toEqual(['FORBIDDEN', null])
    expect(json.failure.message).toContain('a trigger of outside calls a function in the language c')
    expect((await inspect(gateway, { request: 'POST /api/outside', body: { id: 1 } })).json.failure).toBeNull()
  })

  test('with run: subscribers and webhooks receive nothing', async () => {
    const socket = await openSocket(gateway.url, { token: await gateway.token(EXPLAINER) })
    socket.say({ type: 'subscribe', channel: 'svc_table_labels' })
    await socket.nextOf('subscribed')
    const body = (id: number) => ({ id, tenant_id: 't1', name: 'new' })
    const { json } = await inspect(gateway, { request: 'POST /api/labels', body: body(901), run: true })
    expect([json.failure, json.changes]).toEqual([null, 'rolled back'])
    const headers = { 'Content-Type': 'application/json' }
    const sent = { as: EXPLAINER, method: 'POST', headers, body: JSON.stringify(body(902)) }
    expect((await gateway.get('/api/labels', sent)).status).toBe(201)
    // Changes arrive in order, so the first is of the write that was sent.
    expect(JSON.stringify(await socket.next())).toMatch(/902/)
    await socket.close()
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

  test('the filter of the route policy is shown as a query if the caller knows its columns', async () => {
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

describe('a body that does not describe a request that can be inspected', () => {
  test.each([
    [{}, 'has no request'],
    [{ request: '/api/orders', query: 'get orders' }, 'more than a request'],
    [{ request: 5 }, '"request" must be a string'],
    [{ request: '/api/orders', other: 1 }, 'has "other"'],
    [{ request: 'PUT /api/orders' }, 'cannot be inspected'],
    [{ request: 'POST /api/orders/aggregate' }, 'cannot be inspected'],
    [{ request: 'GET /api/orders', run: 1 }, '"run" must be true or false'],
    [{ query: 'get orders', body: {} }, 'has no request'],
    [{ query: 'get orders', content_type: 'text/plain' }, 'has no request'],
    [{ request: '/api/orders', content_type: 1 }, '"content_type" must be a string'],
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
