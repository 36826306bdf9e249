/**
 * docs/reference/reading.md#names and docs/reference/reading.md#related-rows: `GET /api/{table}/{id}` and
 * `GET /api/{table}/{id}/{child}`.
 */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { shopDatabase } from './shop.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)
const wide = databaseFixture(`
  create table parts (id int primary key, name text);
  create table boxes (id int primary key, name text);
  create table packed (part_id int references parts, box_id int references boxes, primary key (part_id, box_id));
  insert into parts select i, 'part' from generate_series(1, 2000) as i;
  insert into boxes select i, 'box' from generate_series(1, 2000) as i;
  insert into packed select i, 1 + i * 7 % 2000 from generate_series(1, 2000) as i;
  grant select on parts, boxes, packed to app;
  analyze parts, boxes, packed`)
const sparing = gatewayFixture(wide, { toml: 'explain_max_cost = 30' })

describe('one row', () => {
  test('is returned as {data: row}', async () => {
    const reply = await gateway.get('/api/users/2')
    expect(reply.status).toBe(200)
    expect(reply.text).toBe('{"data":{"id":2,"tenant_id":"t1","name":"Bob","boss_id":1}}')
  })
  test('supports select and expand', async () => {
    expect(
      (await gateway.get('/api/orders/1?select=id,sum:total&expand=customer,nested:order_items.product')).json.data,
    ).toEqual({
      id: 1,
      sum: 100,
      customer: expect.objectContaining({ name: 'Acme' }),
      order_items: [
        expect.objectContaining({ product: expect.objectContaining({ id: 1 }) }),
        expect.objectContaining({ product: expect.objectContaining({ id: 2 }) }),
      ],
    })
  })
  test.each([
    ['/api/codes/a%252Cb,c', 'comma'],
    ['/api/codes/x,y%2Fz', 'slash'],
    ['/api/codes/50%25,q', 'percent'],
    ['/api/order_items/1,2', undefined],
  ])('can have a composite key: %s', async (path, title) => {
    const reply = await gateway.get(path)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.json.data.title).toBe(title)
  })
  test('can have a key of more than 53 bits', async () => {
    expect((await gateway.get('/api/orders/9007199254740993')).text).toContain('{"data":{"id":9007199254740993,')
  })
  test.each([
    ['/api/users/7', 404, 'NOT_FOUND'],
    ['/api/users/9', 404, 'NOT_FOUND'],
    ['/api/codes/x,y', 404, 'NOT_FOUND'],
    ['/api/users/abc', 400, 'PARSE_ERROR'],
    ['/api/users/99999999999', 400, 'PARSE_ERROR'],
    ['/api/codes/x', 400, 'PARSE_ERROR'],
    ['/api/codes/x,y,z', 400, 'PARSE_ERROR'],
    ['/api/users/1?nope=1', 400, 'PARSE_ERROR'],
    ['/api/users/1?limit=1', 400, 'PARSE_ERROR'],
    ['/api/users/%zz', 400, 'PARSE_ERROR'],
    ['/api/users/%00', 400, 'PARSE_ERROR'],
    ['/api/nope/1', 404, 'NOT_FOUND'],
    ['/api/users/1/2/3', 404, 'NOT_FOUND'],
  ])('%s → %i %s', async (path, status, code) => {
    const reply = await gateway.get(path)
    expect(reply.status, reply.text).toBe(status)
    expect(reply.json.error).toMatchObject({ code, status })
  })
  test('that does not exist was still read from the database', async () => {
    for (const path of ['/api/users/7', '/api/orders/99/order_items', '/api/orders/99/order_items?stream=true']) {
      expect((await gateway.get(path)).headers.get('x-cache'), path).toBe('MISS')
    }
    for (const path of ['/api/users/abc', '/api/nope/1', '/api/journal/1']) {
      expect((await gateway.get(path)).headers.get('x-cache'), path).toBeNull()
    }
  })
  test('of a table without a primary key has no route, and the error says why', async () => {
    const reply = await gateway.get('/api/journal/1')
    expect(reply.status).toBe(404)
    expect(reply.json.error.message).toContain('has no primary key')
  })
})

describe('the children of a row', () => {
  test('have the list envelope and the list’s parameters', async () => {
    expect((await gateway.get('/api/orders/1/order_items?select=line,quantity&sort=-line&limit=1')).json).toEqual({
      data: [{ line: 2, quantity: 1 }],
      count: 1,
      limit: 1,
      offset: 0,
      next_cursor: expect.any(String),
    })
    expect(
      (await gateway.get('/api/customers/1/orders?status=paid&select=id', { headers: { Prefer: 'count=exact' } })).json,
    ).toMatchObject({
      data: [{ id: 1 }, { id: 2 }],
      total: 2,
    })
  })
  test('can be an empty list', async () => {
    expect((await gateway.get('/api/orders/4/order_items')).json.data).toEqual([])
  })
  test('can be found through a junction', async () => {
    expect((await gateway.get('/api/products/2/labels?select=name&sort=name')).json.data).toEqual([
      { name: 'home' },
      { name: 'sport' },
    ])
  })
  test('are found through a junction by its rows, not among all rows', async () => {
    const { status, json } = await sparing.get('/api/parts/5/boxes')
    expect([status, json.data]).toEqual([200, [{ id: 36, name: 'box' }]])
    // The limit is below the cost of reading all rows.
    expect((await sparing.get('/api/boxes?name=eq.x')).json.error.code).toBe('QUERY_TOO_EXPENSIVE')
  })
  test('are those of one of two keys, chosen by its hint', async () => {
    expect((await gateway.get('/api/users/1/orders!approved_by?select=id')).json.data).toEqual([{ id: 3 }])
    const reply = await gateway.get('/api/users/1/orders')
    expect(reply.status).toBe(400)
    expect(reply.json.error.message).toContain('write one of: orders!approved_by, orders!created_by')
  })
  test('can be streamed as NDJSON', async () => {
    expect((await gateway.get('/api/orders/1/order_items?select=line&stream=true')).text).toBe(
      '{"line":1}\n{"line":2}\n',
    )
    expect((await gateway.get('/api/orders/99/order_items?stream=true')).status).toBe(404)
  })
  test.each([
    ['/api/orders/99/order_items', 404],
    ['/api/orders/12345/order_items', 404],
    ['/api/orders/x/order_items', 400],
    ['/api/orders/1/customers', 404],
    ['/api/orders/1/nope', 404],
    ['/api/orders/1/__proto__', 404],
    ['/api/journal/1/orders', 404],
  ])('%s → %i', async (path, status) => {
    expect((await gateway.get(path)).status).toBe(status)
  })
})
