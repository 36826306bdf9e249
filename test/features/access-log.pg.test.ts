/**
 * docs/guides/monitoring.md#the-access-log: one JSON line per request, without secrets, tokens or row values.
 * It contains what an operator needs: the table or function, the path with masked values, the caller, row
 * count, database time and cache use. At level debug it also contains the statement texts.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLog, type Log } from '../../src/ops/log.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'

const SECRET = 'value-that-must-not-appear'

const database = databaseFixture()
let log: Log
let folder: string
let file: number

beforeAll(async () => {
  await execute(
    database.adminUrl,
    `create table orders (id int primary key, note text, unique (note));
      create table items (id int primary key, order_id int references orders, what text);
     insert into orders select n, 'note ' || n from generate_series(1, 5) n;
       insert into items values (1, 1, 'a'), (2, 1, 'b');
     create function add_up(a int, b int) returns int immutable language sql as 'select a + b';
     create function fails() returns int volatile language plpgsql as $$ begin raise exception 'no'; end $$;
     grant select, insert, update, delete on orders, items to app`,
  )
  folder = mkdtempSync(join(tmpdir(), 'svc-log-'))
  file = openSync(join(folder, 'log'), 'a')
  log = createLog('debug', { descriptor: file })
})
const gateway = gatewayFixture(database, () => ({
  environment: { SVC_LOG_LEVEL: 'debug' },
  toml: 'cache = { enabled = true }\nexplain_max_cost = 0\nexplain_max_rows = 0',
  emit: log.emit,
}))
afterAll(async () => {
  await log?.flush()
  closeSync(file)
  rmSync(folder, { recursive: true })
})

type Line = Readonly<Record<string, unknown>>

/** The log lines of one request. */
async function linesOf(
  requestId: string | null,
): Promise<{ readonly request: Line; readonly statements: readonly Line[] }> {
  await log.flush()
  const lines: Line[] = readFileSync(join(folder, 'log'), 'utf8')
    .split('\n')
    .filter(line => line.includes(`"request_id":"${requestId}"`))
    .map(line => JSON.parse(line))
  const request = lines.find(({ msg }) => msg === 'request')
  if (request === undefined) throw new Error(`no line about ${requestId}`)
  return { request, statements: lines.filter(({ msg }) => msg === 'statement') }
}

async function logged(
  path: string,
  {
    method = 'GET',
    body,
    headers = {},
  }: { method?: string; body?: unknown; headers?: Readonly<Record<string, string>> } = {},
) {
  const reply = await gateway.get(path, {
    ...{ method, as: { tenantId: 'acme', role: 'clerk' }, headers: { 'Content-Type': 'application/json', ...headers } },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return linesOf(reply.headers.get('x-request-id'))
}

test('a line has these fields, always and in this order', async () => {
  const { request } = await logged('/api/orders/1')
  const fields =
    'level time method route path table function status code duration_ms database_ms rows cache role tenant ' +
    'request_id msg'
  expect(Object.keys(request)).toEqual(fields.split(' '))
  expect(request).toMatchObject({
    ...{ method: 'GET', route: '/api/{table}/{id}', path: '/api/orders/{id}', table: 'orders', function: null },
    ...{
      status: 200,
      code: null,
      rows: 1,
      cache: 'MISS',
      role: 'clerk',
      tenant: expect.stringMatching(/^[0-9a-f]{8}$/),
    },
  })
  expect(request.database_ms).toBeGreaterThan(0)
  expect(request.duration_ms).toBeGreaterThanOrEqual(request.database_ms as number)
})

test('a response from the cache has no database time', async () => {
  await logged('/api/orders/2')
  expect((await logged('/api/orders/2')).request).toMatchObject({ cache: 'HIT', database_ms: null, rows: 1 })
})

test.each<[string, Parameters<typeof logged>[1], Line]>([
  ['/api/orders?id=gt.3', {}, { path: '/api/orders?id.gt', rows: 2 }],
  ['/api/orders/1/items?sort=-id', {}, { table: 'items', path: '/api/orders/{id}/items?sort=-id', rows: 2 }],
  ['/api/orders/aggregate?fn=count', {}, { route: '/api/{table}/aggregate', path: '/api/orders/aggregate?fn=count' }],
  ['/api/orders?stream=true&limit=3', {}, { path: '/api/orders', rows: 3, cache: 'MISS' }],
  ['/api/rpc/add_up?a=4711&b=1', {}, { function: 'add_up', table: null, path: '/api/rpc/add_up?a&b', rows: 1 }],
  ['/api/rpc/fails', { method: 'POST' }, { function: 'fails', status: 400, code: 'QUERY_ERROR', rows: null }],
  [
    '/api/orders',
    {
      method: 'POST',
      body: [
        { id: 21, note: 'x' },
        { id: 22, note: 'y' },
      ],
    },
    { status: 201, rows: 2, cache: null },
  ],
  ['/api/orders/21', { method: 'PATCH', body: { note: 'z' } }, { rows: 1 }],
  ['/api/orders?id=in.(21,22)', { method: 'DELETE' }, { status: 204, path: '/api/orders?id.in', rows: 2 }],
  [
    '/api/_query',
    { method: 'POST', body: { query: 'get items where id > 0' } },
    { table: 'items', path: '/api/_query', rows: 2 },
  ],
  ['/api/nowhere', {}, { table: 'nowhere', status: 404, code: 'NOT_FOUND', database_ms: null }],
  ['/nowhere', {}, { route: 'none', path: null, table: null, role: null, tenant: null }],
])('a request is logged as one line: %s', async (path, options, line) => {
  expect((await logged(path, options)).request).toMatchObject(line)
})

test.each<[string, string, Parameters<typeof logged>[1]]>([
  ['an id', `/api/orders/${SECRET}`, {}],
  ['the id of a parent', `/api/orders/${SECRET}/items`, {}],
  ['a filter value', `/api/orders?note=${SECRET}`, {}],
  ['a value behind an operator', `/api/orders?note=in.(${SECRET},b)&note.like=*${SECRET}*`, {}],
  ['a value in a logic tree', `/api/orders?or=(note.eq.${SECRET},and(id.gt.1,note.like.${SECRET}*))`, {}],
  ['a search term', `/api/orders?search=${SECRET}`, {}],
  ['a cursor', `/api/orders?cursor=${SECRET}`, {}],
  ['an argument of a function', `/api/rpc/add_up?a=${SECRET}&b=1`, {}],
  ['a value of a malformed query string', `/api/orders?limit=x&note=${SECRET}&or=(${SECRET}`, {}],
  ['a body', '/api/orders', { method: 'POST', body: { id: 31, note: SECRET } }],
  [
    'a literal of a query text',
    '/api/_query',
    { method: 'POST', body: { query: `get orders where note = '${SECRET}'` } },
  ],
  [
    'a parameter of a query text',
    '/api/_query',
    { method: 'POST', body: { query: 'get orders where note = :n', parameters: { n: SECRET } } },
  ],
  ['a tenant', '/api/orders', { headers: { 'x-tenant-id': SECRET } }],
])('%s is not logged at any level', async (_, path, options) => {
  const { request, statements } = await logged(path, options)
  expect(JSON.stringify([request, statements])).not.toContain(SECRET)
})

test('at level debug, statement texts are logged without their values', async () => {
  const { statements } = await logged('/api/orders?id=4', { headers: { Prefer: 'count=exact' } })
  expect(statements).toMatchObject([
    {
      msg: 'statement',
      sql: [expect.stringContaining('FROM public.orders'), expect.stringContaining('count(*)')],
      duration_ms: expect.any(Number),
    },
  ])
})
