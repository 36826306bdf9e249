/** docs/reference/reading.md#aggregates: `GET /api/{table}/aggregate` and its alias `_aggregate`. */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { shopDatabase } from './shop.ts'

const database = databaseFixture(
  shopDatabase,
  `create table numbers (small int2, int4 int4, big int8, num numeric, real float4, double float8, span interval,
    cash money, at timestamptz,
     day date, flag boolean, word text, ip inet, uuid uuid, ids int[], doc json, "a.b" int, "sum" int, "group" text);
   insert into numbers values
     (32767, 2147483647, 9223372036854775807, 0.1, 1.5, 0.1, '1 day', 1.5, '2026-01-01Z', '2026-01-01', true, 'b',
       '10.0.0.1', '00000000-0000-0000-0000-000000000001', '{1}', '{}', 1, 5, 'x'),
     (32767, 2147483647, 9223372036854775807, 1e30, 2.5, 0.2, '2 hours', 2.5, '2026-01-03Z', '2025-12-31', false, 'a',
       '9.0.0.1', '00000000-0000-0000-0000-000000000002', '{2}', '{}', 2, 6, 'x'),
     (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);
   alter table numbers add span_of int4range;
   create table floats (f float8, n numeric);
   insert into floats values ('NaN', 'NaN'), (1, 1);
   create table nothing (n int);
   grant select on numbers, floats, nothing to app`,
)

const gateway = gatewayFixture(database, { toml: 'max_result_rows = 3\nmax_filters = 4' })

describe('one value', () => {
  test.each([
    ['orders?fn=count', '{"count":5}'],
    ['orders?fn=count&column=note', '{"count":3}'],
    ['orders?fn=count&column=approved_by&status=paid', '{"count":1}'],
    ['orders?fn=sum&column=total', '{"sum":12345678901234567890123619.28}'],
    ['orders?fn=avg&column=total&id=in.(1,3)', '{"avg":53.7500000000000000}'],
    ['orders?fn=min&column=total', '{"min":0.00}'],
    ['orders?fn=max&column=id', '{"max":9007199254740993}'],
    ['orders?fn=sum&column=id', '{"sum":9007199254741003}'],
    ['orders?fn=min&column=placed_at', '{"min":"2026-01-01T00:00:00+00:00"}'],
    ['orders?fn=max&column=status', '{"max":"shipped"}'],
    ['orders?fn=min&column=note', '{"min":"100%"}'],
    ['numbers?fn=sum&column=small', '{"sum":65534}'],
    ['numbers?fn=sum&column=int4', '{"sum":4294967294}'],
    ['numbers?fn=sum&column=big', '{"sum":18446744073709551614}'],
    ['numbers?fn=sum&column=num', '{"sum":1000000000000000000000000000000.1}'],
    ['numbers?fn=sum&column=double', '{"sum":0.30000000000000004}'],
    ['numbers?fn=sum&column=real', '{"sum":4}'],
    ['numbers?fn=sum&column=span', '{"sum":"1 day 02:00:00"}'],
    ['numbers?fn=avg&column=span', '{"avg":"13:00:00"}'],
    ['numbers?fn=sum&column=cash', '{"sum":"$4.00"}'],
    ['numbers?fn=max&column=day', '{"max":"2026-01-01"}'],
    ['numbers?fn=min&column=word', '{"min":"a"}'],
    ['numbers?fn=min&column=ip', '{"min":"9.0.0.1"}'],
    ['numbers?fn=max&column=ids', '{"max":[2]}'],
    ['numbers?fn=count&column=doc', '{"count":2}'],
    ['numbers?fn=sum&column=a.b', '{"sum":3}'],
    ['numbers?fn=sum&column=sum', '{"sum":11}'],
    ['numbers?fn=count', '{"count":3}'],
    ['floats?fn=sum&column=f', '{"sum":"NaN"}'],
    ['floats?fn=max&column=n', '{"max":"NaN"}'],
  ])('a single value: %s', async (query, data) => {
    for (const path of ['aggregate', '_aggregate']) {
      const reply = await gateway.get(`/api/${query.replace('?', `/${path}?`)}`)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.text).toBe(`{"data":${data}}`)
      expect(reply.headers.get('x-cache')).toBe('MISS')
    }
  })
  test.each([
    ['count', '', '0'],
    ['count', '&column=n', '0'],
    ['sum', '&column=n', 'null'],
    ['avg', '&column=n', 'null'],
    ['min', '&column=n', 'null'],
    ['max', '&column=n', 'null'],
  ])('%s%s of no rows', async (fn, column, value) => {
    expect((await gateway.get(`/api/nothing/aggregate?fn=${fn}${column}`)).text).toBe(`{"data":{"${fn}":${value}}}`)
  })
  test('a HEAD request has no body', async () => {
    const reply = await gateway.get('/api/orders/aggregate?fn=count', { method: 'HEAD' })
    expect([reply.status, reply.text]).toEqual([200, ''])
  })
})

describe('of rows after filters and search', () => {
  test.each([
    ['orders?fn=count&status=paid&total.gt=100', 1],
    ['orders?fn=count&or=(status.eq.draft,note.eq.first)', 3],
    ['orders?fn=count&note=is_null', 2],
    ['orders?fn=count&id=in.()', 0],
    ['customers?fn=count&meta->>theme=dark', 1],
    ['customers?fn=count&tags=contains.old', 2],
    ['products?fn=count&search=bicycle', 2],
    ['products?fn=count&search=bicycle&search_columns=name', 1],
    ['products?fn=count&search=bicycle&id=2', 1],
    ['users?fn=count&id=9', 0],
  ])('%s', async (query, count) => {
    expect((await gateway.get(`/api/${query.replace('?', '/aggregate?')}`)).json).toEqual({ data: { count } })
  })
  test('only the tenant’s own rows are aggregated', async () => {
    const path = '/api/orders/aggregate?fn=count'
    expect((await gateway.get(path, { as: { tenantId: 't2' } })).json.data).toEqual({ count: 1 })
    expect((await gateway.get(path, { as: { tenantId: 'nobody' } })).json.data).toEqual({ count: 0 })
    expect((await gateway.get(path, { as: null })).status).toBe(401)
  })
})

describe('group_by', () => {
  test.each([
    [
      'fn=count&group_by=status',
      '[{"status":"draft","count":2},{"status":"paid","count":2},{"status":"shipped","count":1}]',
    ],
    [
      'fn=sum&column=total&group_by=status&sort=-sum',
      '[{"status":"paid","sum":12345678901234567890123556.78},{"status":"draft","sum":55.00},' +
        '{"status":"shipped","sum":7.50}]',
    ],
    ['fn=count&group_by=status&sort=-status&limit=1', '[{"status":"shipped","count":1}]'],
    ['fn=count&group_by=status&sort=-count&limit=2', '[{"status":"draft","count":2},{"status":"paid","count":2}]'],
    ['fn=count&group_by=status&limit=1&offset=1', '[{"status":"paid","count":2}]'],
    ['fn=count&group_by=status&offset=2', '[{"status":"shipped","count":1}]'],
    ['fn=count&group_by=status&limit=0', '[]'],
    ['fn=count&group_by=status&id=99', '[]'],
    [
      'fn=count&column=note&group_by=customer_id,status&status.ne=draft',
      '[{"customer_id":1,"status":"paid","count":1},{"customer_id":2,"status":"shipped","count":1}]',
    ],
    [
      'fn=max&column=id&group_by=status,customer_id&sort=max:desc&limit=1',
      '[{"status":"draft","customer_id":1,"max":9007199254740993}]',
    ],
    [
      'fn=count&group_by=approved_by&sort=approved_by:desc.nullslast&limit=2',
      '[{"approved_by":3,"count":1},{"approved_by":2,"count":1}]',
    ],
    ['fn=count&group_by=approved_by&sort=approved_by:asc.nullsfirst&limit=1', '[{"approved_by":null,"count":2}]'],
    [
      'fn=min&column=note&group_by=status&sort=min',
      '[{"status":"draft","min":"100%"},{"status":"paid","min":"first"},{"status":"shipped","min":"in.x"}]',
    ],
  ])('groups are formed by %s', async (query, data) => {
    const reply = await gateway.get(`/api/orders/aggregate?${query}`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.text).toBe(`{"data":${data}}`)
    expect((await gateway.get(`/api/orders/_aggregate?${query}`)).text).toBe(reply.text)
  })
  test('has at most max_result_rows groups', async () => {
    expect((await gateway.get('/api/orders/aggregate?fn=count&group_by=id')).json.data).toHaveLength(3)
    expect((await gateway.get('/api/orders/aggregate?fn=count&group_by=id&limit=100')).json.data).toHaveLength(3)
    expect((await gateway.get('/api/orders/aggregate?fn=count&group_by=id&limit=101')).json.data).toHaveLength(3)
  })
  test('columns with unusual names can be grouped', async () => {
    expect((await gateway.get('/api/numbers/aggregate?fn=count&group_by=group,a.b&sort=a.b')).json.data).toEqual([
      { group: 'x', 'a.b': 1, count: 1 },
      { group: 'x', 'a.b': 2, count: 1 },
      { group: null, 'a.b': null, count: 1 },
    ])
    expect((await gateway.get('/api/numbers/aggregate?fn=count&group_by="sum"')).json.data).toHaveLength(3)
  })
})

describe('errors', () => {
  test.each([
    ['', 'fn is missing'],
    ['column=total', 'fn is missing'],
    ['fn=', 'fn ""'],
    ['fn=median&column=total', 'fn "median" is not an aggregate function; use fn=count, fn=sum'],
    ['fn=COUNT', 'fn "COUNT"'],
    ['fn=sum', 'fn=sum needs a column'],
    ['fn=sum&column=nope', 'has no column "nope"'],
    ['fn=sum&column=totl', 'did you mean "total"?'],
    ['fn=sum&column=', 'has no column ""'],
    ['fn=sum&column=id,total', 'has no column "id,total"'],
    ['fn=count&column=*', 'has no column "*"'],
    ['fn=count&fn=sum&column=id', 'given twice'],
    ['fn=sum&column=id&column=total', 'given twice'],
    ['fn=count&group_by=nope', 'has no column "nope"'],
    ['fn=count&group_by=', 'group_by'],
    ['fn=count&group_by=status,status', 'twice'],
    ['fn=count&group_by=status&sort=total', 'sorted only by a column of group_by or by count'],
    ['fn=count&group_by=status&sort=nope', 'sorted only by a column of group_by'],
    ['fn=count&sort=status', 'without group_by'],
    ['fn=count&limit=1', 'without group_by'],
    ['fn=count&offset=1', 'without group_by'],
    ['fn=count&group_by=status&limit=x', 'limit "x"'],
    ['fn=count&group_by=status&limit=-1', 'limit "-1"'],
    ['fn=count&select=id', 'select'],
    ['fn=count&expand=customer', 'expand'],
    ['fn=count&stream=true', 'stream'],
    ['fn=count&cursor=x', 'cursor'],
    ['fn=count&nope=1', 'has no column "nope"'],
    ['fn=count&id=x', 'column "id" is bigint and cannot hold "x"'],
    ['fn=count&id.eq=1&id.eq=2&id.eq=3&id.eq=4&id.eq=5', '4'],
    ['fn=count&search=x&search_columns=id', 'id'],
  ])('%s → 400', async (query, message) => {
    const reply = await gateway.get(`/api/orders/aggregate?${query}`)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })
  })
  test.each([
    ['fn=sum&column=word', 'column "word" is text; fn=sum needs a number'],
    ['fn=avg&column=flag', 'column "flag" is boolean; fn=avg needs a number'],
    ['fn=max&column=flag', 'column "flag" is boolean; fn=max needs a column of an ordered type'],
    ['fn=min&column=doc', 'column "doc" is json; fn=min needs a column'],
    ['fn=sum&column=ids', 'column "ids" is integer[]; fn=sum needs a number'],
    ['fn=avg&column=cash', 'column "cash" is money; fn=avg needs a number'],
    ['fn=max&column=span_of', 'column "span_of" is int4range; fn=max needs a column'],
  ])('a type that cannot be aggregated is rejected: %s → 400', async (query, what) => {
    const reply = await gateway.get(`/api/numbers/aggregate?${query}`)
    expect(reply.status).toBe(400)
    expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(what) })
  })
  test('a type without an order cannot be grouped by → 400', async () => {
    expect((await gateway.get('/api/numbers/aggregate?fn=count&group_by=doc')).status).toBe(400)
  })
  test('a group with the same name as the value → 400', async () => {
    expect((await gateway.get('/api/numbers/aggregate?fn=sum&column=int4&group_by=sum')).status).toBe(400)
  })
  test('a missing table → 404', async () => {
    expect((await gateway.get('/api/nope/aggregate?fn=count')).status).toBe(404)
  })
  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s → 405', async method => {
    const reply = await gateway.get('/api/orders/aggregate?fn=count', { method })
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})
