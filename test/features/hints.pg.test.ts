/** At common mistakes, the error has a hint with the correct form; status and code are unchanged. */
import { afterAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { killSvc, startSvc } from '../support/process.ts'

const database = databaseFixture(`create table customers (id int primary key, name text);
     create table orders (id int primary key, customer_id int references customers, total int);
     create table ranks (id int primary key, "order" int, "sum(total)" int);
     create function touch() returns int volatile language sql as 'select 1';
     insert into customers values (1, 'Ann');
     insert into orders values (1, 1, 10);
     insert into ranks values (1, 2, 3);
     grant all on all tables in schema public to app`)

const gateway = gatewayFixture(database)
afterAll(async () => {
  killSvc()
})

test.each([
  ['/api/orders?order=total.desc', 'did you mean "sort"?', 'sort=-name'],
  ['/api/orders?order_by=total', 'did you mean "sort"?', 'sort=-name'],
  ['/api/orders?fields=id', 'did you mean "select"?', 'select=id'],
  ['/api/orders?include=customer', 'did you mean "expand"?', 'expand=customer'],
  ['/api/orders?select=id,customers(*)', 'select has "customers(…)"', 'expand=customers'],
  [
    '/api/orders?select=*,buyer:customers!its_key(id,name)',
    'select has "buyer:customers!its_key(…)"',
    'expand=customers',
  ],
  ['/api/orders/1?select=id,customers(name)', 'select has "customers(…)"', 'expand=customers'],
])('%s is 400 with a hint', async (path, message, hint) => {
  const { status, json } = await gateway.get(path)
  expect([status, json.error.code]).toEqual([400, 'PARSE_ERROR'])
  expect(json.error.message).toContain(message)
  expect(json.error.hint).toContain(hint)
})

test('columns with such names are columns', async () => {
  expect((await gateway.get('/api/ranks?order=2')).json.data).toHaveLength(1)
  expect((await gateway.get('/api/ranks?select=sum(total)')).json.data).toEqual([{ 'sum(total)': 3 }])
})

test.each([
  ['/api/orders', 'GET, HEAD, POST, PATCH, DELETE'],
  ['/api/orders/1', 'GET, HEAD, PATCH, DELETE'],
])('PUT %s is 405 and names PATCH and the upsert', async (path, allow) => {
  const { status, headers, json } = await gateway.get(path, { method: 'PUT', body: '{}' })
  expect([status, json.error.code, headers.get('allow')]).toEqual([405, 'METHOD_NOT_ALLOWED', allow])
  expect(json.error.hint).toMatch(/PATCH.*X-Upsert: true/)
})

test('GET of a volatile function is answered with 405 and says why', async () => {
  const { status, headers, json } = await gateway.get('/api/rpc/touch')
  expect([status, headers.get('allow')]).toEqual([405, 'POST'])
  expect(json.error.hint).toContain('function "touch" is VOLATILE')
})

test('a browser without a token is answered with 401, in the envelope, with a hint on how to send one', async () => {
  const { status, headers, json } = await gateway.get('/api/_schema', {
    as: null,
    headers: { Accept: 'text/html,*/*' },
  })
  expect([status, json.error.code, headers.get('www-authenticate')]).toEqual([401, 'UNAUTHORIZED', 'Bearer'])
  expect(headers.get('content-type')).toContain('application/json')
  expect(json.error.hint).toContain('Authorization: Bearer $TOKEN')
})

test('a start in development mode without a database logs what was tried, once', async () => {
  const svc = startSvc(['serve'], {
    DATABASE_URL: 'postgres://app:hidden@127.0.0.1:1/shop',
    JWT_SECRET: 'a secret of 32 bytes, or of more',
    SVC_DEV_MODE: 'true',
    SVC_BIND: '127.0.0.1:0',
  })
  await svc.says(/cannot reach (PostgreSQL) at 127\.0\.0\.1:1/)
  // The next log line is about the time and appears only after many attempts.
  await svc.says(/still (waiting) for PostgreSQL at 127\.0\.0\.1:1 after \d+ s/)
  expect(svc.said.out.match(/cannot reach/g)).toHaveLength(1)
  expect(svc.said.out).toContain('as user \\"app\\" with database \\"shop\\"')
  expect(svc.said.out).not.toContain('hidden')
  svc.child.kill('SIGTERM')
  await svc.exited
})
