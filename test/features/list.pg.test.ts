/**
 * docs/reference/reading.md: `GET /api/{table}`, its envelope, sort, pages, cursor, select, distinct, search.
 */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import type { Reply } from '../support/gateway.ts'
import { shopDatabase } from './shop.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database, { toml: 'default_limit = 3\nmax_result_rows = 4' })

const ids = (reply: Reply) => reply.json.data.map((row: { id: number }) => row.id)

test('the envelope has data, count, limit, offset and next_cursor, in this order', async () => {
  const reply = await gateway.get('/api/users')
  expect(reply.status).toBe(200)
  expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(reply.text).toBe(
    '{"data":[{"id":1,"tenant_id":"t1","name":"Ann","boss_id":null},' +
      '{"id":2,"tenant_id":"t1","name":"Bob","boss_id":1},' +
      '{"id":3,"tenant_id":"t1","name":"Cyd","boss_id":1}],' +
      '"count":3,"limit":3,"offset":0,"next_cursor":null}',
  )
})

test('numbers keep every digit', async () => {
  expect((await gateway.get('/api/orders?id=2')).text).toContain('"total":12345678901234567890123456.78')
  expect((await gateway.get('/api/orders?id=9007199254740993')).text).toContain('"id":9007199254740993,')
})

test('a caller reads only the rows of its tenant', async () => {
  expect(ids(await gateway.get('/api/users', { as: { tenantId: 't2' } }))).toEqual([9])
  expect(ids(await gateway.get('/api/users?id=9'))).toEqual([])
  expect(ids(await gateway.get('/api/users', { as: { userId: 'u' } }))).toEqual([])
})

describe('a page by limit and offset', () => {
  test.each([
    ['', { count: 3, limit: 3, offset: 0 }],
    ['?limit=2', { count: 2, limit: 2, offset: 0 }],
    ['?limit=2&offset=3', { count: 2, limit: 2, offset: 3 }],
    ['?limit=2&offset=100', { count: 0, limit: 2, offset: 100 }],
    ['?limit=0', { count: 0, limit: 0, offset: 0, data: [], next_cursor: null }],
    ['?limit=1000', { count: 4, limit: 4, offset: 0 }],
    ['?limit=101', { count: 4, limit: 4, offset: 0 }],
  ])('%s', async (query, envelope) => {
    expect((await gateway.get(`/api/orders${query}`)).json).toMatchObject(envelope)
  })
  test.each(['limit=-1', 'limit=x', 'limit=1.5', 'offset=-1', 'limit=', 'offset=99999999999999999999'])(
    '%s → 400',
    async query => {
      const reply = await gateway.get(`/api/orders?${query}`)
      expect(reply.status).toBe(400)
      expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', status: 400 })
    },
  )
  test('only the last page has no next_cursor', async () => {
    expect((await gateway.get('/api/orders?limit=4')).json.next_cursor).toEqual(expect.any(String))
    expect((await gateway.get('/api/orders?limit=4&offset=1')).json.next_cursor).toBeNull()
  })
  test('Prefer: count=exact adds the total over all pages', async () => {
    const headers = { Prefer: 'return=minimal, count=exact' }
    const counted = await gateway.get('/api/orders?limit=2', { headers })
    expect([counted.json.total, counted.headers.get('preference-applied')]).toEqual([5, 'count=exact'])
    expect((await gateway.get('/api/orders?limit=2')).headers.get('preference-applied')).toBeNull()
    expect((await gateway.get('/api/orders?limit=2&status=paid&offset=1', { headers })).json.total).toBe(2)
    expect((await gateway.get('/api/orders?limit=2')).json).not.toHaveProperty('total')
  })
})

describe('the parameter sort', () => {
  test.each([
    ['sort=total', [4, 3, 9007199254740992, 1]],
    ['sort=-total', [2, 1, 9007199254740992, 3]],
    ['sort=placed_at,-id', [1, 3, 2, 4]],
    ['sort=placed_at:desc,id:desc', [9007199254740992, 4, 3, 2]],
    ['sort=note', [4, 1, 3, 2]],
    ['sort=-note', [2, 9007199254740992, 3, 1]],
    ['sort=note:asc.nullsfirst', [2, 9007199254740992, 4, 1]],
    ['sort=note:desc.nullslast', [3, 1, 4, 2]],
    ['sort=status', [4, 9007199254740992, 1, 2]],
  ])('rows come in the order of %s', async (query, expected) => {
    expect(ids(await gateway.get(`/api/orders?limit=4&${query}`))).toEqual(expected)
  })
  test('rows can be sorted by a path into JSON', async () => {
    expect(ids(await gateway.get('/api/customers?sort=-meta->>theme:nullslast'))).toEqual([2, 1, 3])
  })
})

describe('following the cursors', () => {
  async function walk(query: string, path = '/api/orders'): Promise<unknown[]> {
    const seen: unknown[] = []
    for (let cursor = ''; ; ) {
      const reply = await gateway.get(`${path}?${query}${cursor}`)
      expect(reply.status, reply.text).toBe(200)
      seen.push(...reply.json.data)
      if (reply.json.next_cursor === null) return seen
      cursor = `&cursor=${reply.json.next_cursor}`
    }
  }
  test.each([
    'limit=1',
    'limit=2&sort=placed_at',
    'limit=1&sort=-placed_at',
    'limit=1&sort=note',
    'limit=1&sort=-note',
    'limit=1&sort=note:asc.nullsfirst',
    'limit=1&sort=note:desc.nullslast',
    'limit=1&sort=approved_by,-status,total',
    'limit=1&sort=-approved_by,note:asc.nullsfirst',
    'limit=1&sort=-id',
    'limit=1&sort=open',
    'limit=2&sort=-placed_at,-id&select=note',
  ])('of %s returns every row once, in order', async query => {
    const whole = await gateway.get(`/api/orders?${query}&limit=4`.replace(/limit=\d&/, ''))
    const walked = await walk(query)
    expect(walked).toHaveLength(5)
    expect(walked.slice(0, 4)).toEqual(whole.json.data)
    expect(new Set(walked.map(row => JSON.stringify(row))).size).toBe(query.includes('select') ? 4 : 5)
  })
  test('works on a table without a primary key', async () => {
    expect(await walk('limit=1&sort=at', '/api/journal')).toHaveLength(3)
  })
  test('works with distinct values', async () => {
    expect(await walk('limit=1&distinct=note')).toEqual([
      { note: '100%' },
      { note: 'first' },
      { note: 'in.x' },
      { note: null },
    ])
  })
  test('with a cursor of another sort or table, a modified one, or an invalid one is rejected', async () => {
    const cursor: string = (await gateway.get('/api/orders?limit=1&sort=total')).json.next_cursor
    const [digest, ...values] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const forged = Buffer.from(JSON.stringify([digest, '5', ...values.slice(1)])).toString('base64url')
    for (const query of [
      `orders?limit=1&sort=-total&cursor=${cursor}`,
      `orders?limit=1&cursor=${cursor}`,
      `customers?limit=1&cursor=${cursor}`,
      `orders?limit=1&sort=total&cursor=${forged}`,
      'orders?cursor=',
      'orders?cursor=AAAA',
      'orders?cursor=%F0%9F%92%A9',
      `orders?cursor=${'A'.repeat(9000)}`,
      `orders?sort=total&offset=1&cursor=${cursor}`,
    ]) {
      const reply = await gateway.get(`/api/${query}`)
      expect(reply.status, query).toBe(400)
      expect(reply.json.error.code).toBe('PARSE_ERROR')
    }
  })
  test('can be combined with a filter', async () => {
    expect(await walk('limit=1&status=paid&select=id')).toEqual([{ id: 1 }, { id: 2 }])
  })
})

describe('select', () => {
  test.each([
    ['select=name,id', '{"name":"Acme","id":1}'],
    ['select=key:id,who:name', '{"key":1,"who":"Acme"}'],
    ['select=id,meta->>theme', '{"id":1,"theme":"dark"}'],
    ['select=first:meta->a->0,meta->a->1->>b', '{"first":10,"b":"x"}'],
    ['select=id,*', '{"id":1,"tenant_id":"t1","name":"Acme","mail":"a@acme.io","zip":"01234","tags":["big","old"],'],
    ['select="name"', '{"name":"Acme"}'],
  ])('rows have the columns of %s', async (query, row) => {
    expect((await gateway.get(`/api/customers?id=1&${query}`)).text).toContain(`{"data":[${row}`)
  })
  test('an error about an unknown column suggests the nearest name', async () => {
    const reply = await gateway.get('/api/customers?select=id,nmae')
    expect(reply.status).toBe(400)
    expect(reply.json.error.message).toBe('table "customers" has no column "nmae"; did you mean "name"?')
  })
})

describe('distinct', () => {
  test('returns the values of the column, sorted', async () => {
    expect((await gateway.get('/api/orders?distinct=status')).json).toMatchObject({
      data: [{ status: 'draft' }, { status: 'paid' }, { status: 'shipped' }],
      count: 3,
      next_cursor: null,
    })
    expect((await gateway.get('/api/orders?distinct=status&sort=-status&limit=1')).json.data).toEqual([
      { status: 'shipped' },
    ])
  })
  test('counts NULL as a value', async () => {
    const headers = { Prefer: 'count=exact' }
    expect((await gateway.get('/api/orders?distinct=note&limit=1', { headers })).json.total).toBe(4)
    expect((await gateway.get('/api/orders?distinct=status&limit=1', { headers })).json.total).toBe(3)
  })
  test.each([
    'distinct=status&select=id',
    'distinct=status&sort=id',
    'distinct=nope',
    'distinct=status&expand=customers',
  ])('%s → 400', async query => {
    expect((await gateway.get(`/api/orders?${query}`)).status).toBe(400)
  })
})

describe('search', () => {
  test.each([
    ['search=bicycle', [1, 2]],
    ['search=bicycle&search_columns=name', [1]],
    ['search=red ride', [1]],
    ['search="fast ride"', [1]],
    ['search=bicycle -blue', [1]],
    ['search=lamp or cup', [2, 3]],
    ['search=', []],
    ['search=%27); drop table users --', []],
  ])('rows are found by %s', async (query, expected) => {
    expect(ids(await gateway.get(`/api/products?${query}`))).toEqual(expected)
  })
  test.each([
    'search=x&search_columns=id',
    'search=x&search_columns=nope',
    'search_columns=name',
    'search=x&search_columns=',
  ])('%s → 400', async query => {
    expect((await gateway.get(`/api/products?${query}`)).status).toBe(400)
  })
})

test.each([
  ['/api/nope', 404, 'NOT_FOUND', 'there is no table "nope"'],
  ['/api/ordres', 404, 'NOT_FOUND', 'did you mean "orders"?'],
  ['/api/orders?nope=1', 400, 'PARSE_ERROR', 'table "orders" has no column "nope"'],
  ['/api/orders?select=id&select=total', 400, 'PARSE_ERROR', 'parameter "select" is given twice'],
  ['/api/orders?stream=maybe', 400, 'PARSE_ERROR', 'neither true nor false'],
])('%s → %i %s', async (path, status, code, message) => {
  const reply = await gateway.get(path)
  expect(reply.status).toBe(status)
  expect(reply.json.error).toMatchObject({ code, status, message: expect.stringContaining(message) })
})
