/** docs/reference/reading.md#filters: every operator, on real columns of real types. */
import { describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { shopDatabase } from './shop.ts'

const database = databaseFixture(shopDatabase)
const gateway = gatewayFixture(database)

async function ids(path: string): Promise<unknown> {
  const reply = await gateway.get(path)
  return reply.status === 200 ? reply.json.data.map((row: { id: number }) => row.id) : reply.json.error
}

const BIG = 9007199254740992 // what JSON.parse makes of 9007199254740993

describe('orders', () => {
  test.each<[query: string, expected: number[]]>([
    ['status=paid', [1, 2]],
    ['status=eq.paid', [1, 2]],
    ['status.eq=paid', [1, 2]],
    ['status=ne.paid', [3, 4, BIG]],
    ['status=neq.paid', [3, 4, BIG]],
    ['status=gt.draft', [1, 2, 3]],
    ['total=gt.7.5', [1, 2, BIG]],
    ['total=gte.7.5', [1, 2, 3, BIG]],
    ['total.lt=7.5', [4]],
    ['total=lte.7.50', [3, 4]],
    ['total=gte.7.5&total=lte.100', [1, 3, BIG]],
    ['total=12345678901234567890123456.78', [2]],
    ['id=9007199254740993', [BIG]],
    ['id=9007199254740992', []],
    ['id=in.(1,3,99)', [1, 3]],
    ['id.in=1,3', [1, 3]],
    ['id=in.()', []],
    ['id=not_in.(1,2)', [3, 4, BIG]],
    ['status=in.(paid,"shipped")', [1, 2, 3]],
    ['note=like.*x', [3]],
    ['note=like.F*', []],
    [String.raw`note=like.*\%25`, [4]],
    [String.raw`note=like.100\*`, []],
    [String.raw`note=like.in\.*`, [3]],
    ['note=ilike.F*', [1]],
    ['note=not_like.f*', [3, 4]],
    ['note=not_ilike.F*', [3, 4]],
    ['note.eq=in.x', [3]],
    ['note=100%25', [4]],
    ['note=is_null', [2, BIG]],
    ['note.is_null=true', [2, BIG]],
    ['note.is_null=false', [1, 3, 4]],
    ['note=is_null.false', [1, 3, 4]],
    ['note=is_not_null', [1, 3, 4]],
    ['note=is_distinct.first', [2, 3, 4, BIG]],
    ['approved_by=not.eq.2', [3, BIG]],
    ['approved_by=not.is_null', [1, 3, BIG]],
    ['note=match.^f.*t$', [1]],
    ['note=imatch.^F', [1]],
    ['id=like.9*', [BIG]],
    ['open=contains.3', [1]],
    ['open=contains.[6,8]', [2]],
    ['open=overlaps.[4,6)', [1, 2]],
    ['open=contained.[0,6)', [1, 4]],
    ['placed_at=gte.2026-01-04', [4, BIG]],
    ['placed_at=2026-01-02T01:00:00%2B01:00', [2, 3]],
    ['or=(status.eq.shipped,and(total.gt.10,total.lt.60))', [3, BIG]],
    ['and=(status.eq.paid,total.eq.100)', [1]],
    ['not.or=(status.eq.paid,status.eq.draft)', [3]],
    ['not.and=(status.eq.paid,id.eq.1)', [2, 3, 4, BIG]],
    ['or=(note.eq."in.x",note.is_null)&id=lt.4', [2, 3]],
    ['or=(id.in.(1,2),id.not.in.(1,2,3))', [1, 2, 4, BIG]],
  ])('orders are filtered by %s', async (query, expected) => {
    expect(await ids(`/api/orders?${query}`)).toEqual(expected)
  })
})

describe('customers', () => {
  test.each<[query: string, expected: number[]]>([
    ['zip=01234', [1]],
    ['zip=1234', [2]],
    ['tags=contains.old', [1, 2]],
    ['tags=contains.(old,big)', [1]],
    ['tags.contains={old}', [1, 2]],
    ['tags=contained.(old,new)', [2, 3]],
    ['tags=overlaps.(big,new)', [1]],
    ['tags={}', [3]],
    ['meta=contains.{"theme":"dark"}', [1]],
    ['meta->>theme=dark', [1]],
    ['meta->>theme=in.(dark,light)', [1, 2]],
    ['meta->>theme=is_null', [3]],
    ['meta->a->0=10', [1]],
    ['meta->a->1->>b=x', [1]],
    ['meta->n=gt.4', [1]],
    ['born=1999-12-31', [1]],
    ['born=gt.2000-01-01', [3]],
    ['vip=true', [1]],
    ['vip=not.eq.true', [2]],
    ['vip=is_distinct.true', [2, 3]],
    ['mail=a@acme.io', [1]],
    ['mail=not-an-address', []],
    ['name=fts.acme', [1]],
  ])('customers are filtered by %s', async (query, expected) => {
    expect(await ids(`/api/customers?${query}`)).toEqual(expected)
  })
  test('a tsvector column is searched directly', async () => {
    expect(await ids('/api/products?words=fts.bicycles')).toEqual([1])
  })
})

describe('a value that does not fit the type is answered with 400 PARSE_ERROR and names column, type and value', () => {
  test.each([
    ['orders?id=abc', ['"id"', 'bigint', '"abc"']],
    ['orders?id=99999999999999999999', ['"id"', 'bigint', '"99999999999999999999"']],
    ['orders?id=in.(1,x)', ['column "id" is bigint and cannot hold "x"']],
    ['orders?id=in.(1,99999999999999999999)', ['column "id" is bigint and cannot hold "99999999999999999999"']],
    ['orders?placed_at=not_in.(2026-01-01,"a\\\\b \\"c\\"")', ['time zone and cannot hold "a\\b "c""']],
    ['orders?status=in.(paid,payed)', ['"status" is status and cannot hold "payed"', 'draft, paid, shipped']],
    ['orders?total=1,5', ['"total"', 'numeric', '"1,5"']],
    ['orders?placed_at=yesterdayish', ['"placed_at"', 'timestamp with time zone', '"yesterdayish"']],
    ['orders?status=payed', ['"status"', 'status', '"payed"', 'draft, paid, shipped']],
    ['customers?born=2026-02-30', ['"born"', 'date', '"2026-02-30"']],
    ['customers?vip=maybe', ['"vip"', 'boolean', '"maybe"']],
    ['customers?meta=contains.{x', ['"meta"', 'jsonb', '"{x"']],
    ['orders?total=gt.5&id=abc', ['"id"', 'bigint', '"abc"']],
  ])('%s', async (path, parts) => {
    const reply = await gateway.get(`/api/${path}`)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.json.error.code).toBe('PARSE_ERROR')
    for (const part of parts) expect(reply.json.error.message).toContain(part)
  })
})

test.each([
  ['customers?name->x=1', 'name'],
  ['customers?nmae=1', 'did you mean "name"?'],
  ['customers?or=(nmae.eq.1)', 'did you mean "name"?'],
  ['customers?__proto__=1', '"__proto__"'],
  ['customers?constructor.eq=1', '"constructor"'],
])('%s → 400 that names %s', async (path, part) => {
  const reply = await gateway.get(`/api/${path}`)
  expect(reply.status).toBe(400)
  expect(reply.json.error).toMatchObject({ code: 'PARSE_ERROR', message: expect.stringContaining(part) })
})
