/** docs/guides/allow-list.md#requests: the shape of a request, and the allow-list lines that match it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPatternSet, type QueryShape } from '../../access/list/pattern.ts'
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { OPERAND_OF, type Operator } from '../parameters/operators.ts'
import { parsePath } from '../path.ts'
import { type DataRoute, readRequest } from '../request.ts'
import { printLine } from './line.ts'
import { parseRequestPattern } from './request-pattern.ts'

/** The shape of a request such as `GET /api/orders?status=paid`; header names are in lower case. */
function shape(request: string, headers: Incoming['headers'] = {}): QueryShape {
  const [method = '', target = ''] = request.split(' ')
  const [path = '', query = ''] = target.split(/\?(.*)/s)
  return printLine(readRequest({ method, query, headers }, parsePath(path) as DataRoute, { maxQueryParameters: 0 }))
}

const line = (request: string, headers?: Incoming['headers']) => shape(request, headers).line()

function isApproved(by: string, request: string, headers?: Incoming['headers']): boolean {
  const set = createPatternSet()
  set.add(parseRequestPattern(by))
  return set.has(shape(request, headers))
}

test('a column without an operator is compared with eq', () => {
  expect(isApproved('GET /api/orders?status', 'GET /api/orders?status=paid')).toBe(true)
  expect(isApproved('GET /api/orders?status', 'GET /api/orders?status=ne.paid')).toBe(false)
  expect(() => parseRequestPattern('GET /api/orders?status.ek')).toThrow('not part of a request shape')
})

describe('the shape of a request', () => {
  test('is its method, route and sorted parameters without values', () => {
    expect(line('GET /api/orders')).toBe('GET /api/orders')
    expect(line('GET /api/orders?status=paid&sort=-created_at&select=id,total')).toBe(
      'GET /api/orders?select=id,total&sort=-created_at&status.eq',
    )
    expect(line('HEAD /api/orders?total.lt=9&total.gte=5&name=ilike.*x*')).toBe(
      'GET /api/orders?name.ilike&total.gte&total.lt',
    )
  })
  test('has {id} for the row and keeps the names of tables and functions', () => {
    expect(line('GET /api/orders/7?expand=customer')).toBe('GET /api/orders/{id}?expand=customer')
    expect(line('GET /api/customers/a%2Cb/orders?status=paid')).toBe('GET /api/customers/{id}/orders?status.eq')
    expect(line('PATCH /api/orders/7')).toBe('PATCH /api/orders/{id}')
    expect(line('GET /api/orders/_aggregate?fn=sum&column=total&status=paid')).toBe(
      'GET /api/orders/aggregate?column=total&fn=sum&status.eq',
    )
    expect(line('GET /api/orders/_explain?status=paid')).toBe('GET /api/orders/_explain?status.eq')
    expect(line('POST /api/rpc/sales.report?select=a&price=lt.5')).toBe('POST /api/rpc/sales.report?price.lt&select=a')
  })
  test('omits paging and streaming parameters', () => {
    expect(line('GET /api/orders?limit=5&offset=10&cursor=abc&stream=true', { prefer: 'count=exact' })).toBe(
      'GET /api/orders',
    )
  })
  test('omits the words of a search but keeps its columns', () => {
    expect(line('GET /api/products?search=red&search_columns=name')).toBe(
      'GET /api/products?search&search_columns=name',
    )
  })
  test.each([
    ['status=paid', 'status.eq'],
    ['status=eq.paid', 'status.eq'],
    ['status.eq=paid', 'status.eq'],
    ['status=not.eq.paid', 'status.not.eq'],
    ['status.not.eq=paid', 'status.not.eq'],
    ['status=neq.paid', 'status.ne'],
    ['total=in.(1,2,3)', 'total.in'],
    ['total.in=1,2', 'total.in'],
    ['note=is_null', 'note.is_null'],
    ['note.is_null=true', 'note.is_null'],
    ['note=is_null.false', 'note.is_not_null'],
    ['note.is_not_null=false', 'note.is_null'],
    ['meta->>theme=dark', 'meta->>theme.eq'],
    ['meta->a->0=ne.1', 'meta->a->0.ne'],
    ['meta->"0"=1', 'meta->"0".eq'],
    ['or=(total.lt.5,status.eq.paid)', 'or=(status.eq,total.lt)'],
    ['not.and=(a.eq.1,or(c.lt.2,b.not.in.(1,2)))', 'not.and=(a.eq,or(b.not.in,c.lt))'],
  ])('has the filter %s as %s', (filter, expected) => {
    expect(line(`GET /api/orders?${filter}`)).toBe(`GET /api/orders?${expected}`)
  })
  test('is the same for both notations of sort', () => {
    expect(line('GET /api/t?sort=a:desc,b:asc,c,d:desc.nullslast')).toBe('GET /api/t?sort=-a,b,c,d:desc.nullslast')
    // Sorts in ascending order by a column named "-b".
    expect(line('GET /api/t?sort=a,%20-b')).not.toBe(line('GET /api/t?sort=a,-b'))
  })
  test('distinguishes names that look like operators', () => {
    // A column named "x.not", and the negated filter x.not.eq.
    expect(line('GET /api/t?x.not=eq.1')).toBe('GET /api/t?"x.not".eq')
    expect(line('GET /api/t?x.not.eq=1')).toBe('GET /api/t?x.not.eq')
    expect(line('GET /api/a%20b%23c?%22Order%20Details%22=1')).toBe('GET /api/a%20b%23c?"Order%20Details".eq')
  })
  test('distinguishes upserts from inserts, and deletes that return rows from those that do not', () => {
    expect(line('POST /api/tags?returning=name', { prefer: 'return=minimal', 'x-upsert': 'false' })).toBe(
      'POST /api/tags?returning=name',
    )
    expect(line('POST /api/tags', { 'x-upsert': ' TRUE', 'x-on-conflict': 'tenant_id,name' })).toBe(
      'POST /api/tags?X-On-Conflict=tenant_id,name&X-Upsert=true',
    )
    expect(line('DELETE /api/tags?name=x', { prefer: 'return=representation' })).toBe(
      'DELETE /api/tags?name.eq&returning=*',
    )
    expect(line('DELETE /api/tags?name=x')).toBe('DELETE /api/tags?name.eq')
    expect(line('PATCH /api/tags?limit=5')).toBe('PATCH /api/tags?limit.eq')
  })
  test('has the names of function arguments, and filters where filter notation is used', () => {
    expect(line('GET /api/rpc/f?customer=934&customer=5&price=lt.100&price.eq=5&limit=3')).toBe(
      'GET /api/rpc/f?customer&price.eq&price.lt',
    )
    expect(line('GET /api/rpc/f?or=x&q=gt.&c=eq.5')).toBe('GET /api/rpc/f?c.eq&or&q.gt')
  })
})

describe('a line', () => {
  const EXAMPLE = 'GET /api/orders?select&status.eq&sort=-created_at'
  test('with open and fixed parts matches its requests', () => {
    expect(isApproved(EXAMPLE, 'GET /api/orders?select=id,total&status=eq.paid&sort=-created_at')).toBe(true)
    expect(isApproved(EXAMPLE, 'GET /api/orders?sort=created_at:desc&status=shipped&select=id&limit=5')).toBe(true)
    expect(isApproved(EXAMPLE, 'HEAD /api/orders?sort=-created_at&status=shipped&select=*')).toBe(true)
  })
  test.each([
    'GET /api/orders?select=id&status=paid',
    'GET /api/orders?status=paid&sort=-created_at',
    'GET /api/orders?select=id&status=paid&sort=created_at',
    'GET /api/orders?select=id&status=paid&sort=-created_at,id',
    'GET /api/orders?select=id&status=gt.paid&sort=-created_at',
    'GET /api/orders?select=id&status=paid&status=shipped&sort=-created_at',
    'GET /api/orders?select=id&status=paid&sort=-created_at&expand=customer',
    'GET /api/orders?select=id&status=paid&sort=-created_at&search=x',
    'GET /api/orders2?select=id&status=paid&sort=-created_at',
    'DELETE /api/orders?select=id&status=paid&sort=-created_at',
    'GET /api/orders/1?select=id',
  ])('with open and fixed parts does not match %s', request => {
    expect(isApproved(EXAMPLE, request)).toBe(false)
  })
  test('requires the values it gives and accepts any value it omits', () => {
    expect(isApproved('GET /api/orders?select=id,total', 'GET /api/orders?select=id,total')).toBe(true)
    expect(isApproved('GET /api/orders?select=id,total', 'GET /api/orders?select=id,total,note')).toBe(false)
    expect(isApproved('GET /api/orders?expand', 'GET /api/orders?expand=nested:items')).toBe(true)
    expect(isApproved('GET /api/orders?expand=customer', 'GET /api/orders?expand=nested:items')).toBe(false)
    expect(
      isApproved('GET /api/orders/aggregate?fn&column=total', 'GET /api/orders/aggregate?fn=avg&column=total'),
    ).toBe(true)
    expect(
      isApproved('GET /api/orders/aggregate?fn&column=total', 'GET /api/orders/aggregate?fn=avg&column=cost'),
    ).toBe(false)
    expect(isApproved('GET /api/orders', 'GET /api/orders?select=id')).toBe(false)
  })
  test('describes the rows of expanded relations', () => {
    const fixed = 'GET /api/orders?expand=nested:items(line)&items.amount.gte&items.sort=-line'
    const asked = 'GET /api/orders?expand=nested:items(line)&items.amount=gte.10&items.limit=5'
    expect(isApproved(fixed, `${asked}&items.sort=line:desc`)).toBe(true)
    expect(isApproved(fixed, `${asked}&items.sort=line`)).toBe(false)
    expect(isApproved(fixed, asked)).toBe(false)
    expect(isApproved(fixed, 'GET /api/orders?expand=nested:items(line)&items.sort=-line')).toBe(false)
    expect(isApproved(fixed, `${asked.replace('(line)', '(line,note)')}&items.sort=-line`)).toBe(false)
    const open = 'GET /api/orders?expand&items.amount.gte&items.or=(a.eq,b.lt)&items.sort'
    expect(isApproved(open, `${asked}&items.sort=line&items.or=(b.lt.5,a.eq.1)`)).toBe(true)
    expect(line(`${asked}&items.sort=line:desc`)).toBe(
      'GET /api/orders?expand=nested:items(line)&items.amount.gte&items.sort=-line',
    )
  })
  test('can have any parameter order, any case of method and headers, and percent-encoding', () => {
    expect(isApproved('get   /api/orders?b.eq&a.eq&', 'GET /api/orders?a=1&b=2')).toBe(true)
    expect(
      isApproved('POST /api/t?x-upsert&X-ON-CONFLICT', 'POST /api/t', { 'x-upsert': 'true', 'x-on-conflict': 'a' }),
    ).toBe(true)
    expect(isApproved('POST /api/t?X-Upsert=True', 'POST /api/t', { 'x-upsert': 'TRUE' })).toBe(true)
    expect(isApproved('POST /api/t?X-Upsert=True', 'POST /api/t', { 'x-upsert': 'ignore' })).toBe(false)
    expect(isApproved('GET /api/%6Frders?%61.eq', 'GET /api/orders?a=1')).toBe(true)
    expect(isApproved('GET /api/orders?or=(total.lt,status.neq)', 'GET /api/orders?or=(status.ne.x,total.lt.5)')).toBe(
      true,
    )
    expect(isApproved('GET /api/orders?limit&cursor', 'GET /api/orders')).toBe(true)
  })
  test.each([
    ['GET /api/orders?status=paid', 'column and operator'],
    ['GET /api/orders?status.eq=paid', '"status.eq=paid" is not part of a request shape'],
    ['GET /api/orders?or', 'is not part of a request shape'],
    ['GET /api/orders?or=(status.eq.paid)', '"status.eq.paid" in "or=(status.eq.paid)"'],
    ['GET /api/orders?or=()', 'empty group'],
    ['GET /api/orders?limit=5', 'limit is not part of a request shape'],
    ['POST /api/orders?X-Upsert=yes', 'X-Upsert=yes is not valid; use true or ignore'],
    ['POST /api/orders?X-Upsert=', 'X-Upsert= is not valid; use true or ignore'],
    ['GET /api/orders?search=red', 'write search'],
    ['GET /api/orders?expand=nested:items&items.limit=5', 'limit is not part of a request shape'],
    ['GET /api/orders?expand&items.sort&items.sort', '"items.sort" appears twice'],
    ['GET /api/orders?select&select=id', '"select" appears twice'],
    ['GET /api/orders/7', 'write {id}'],
    ['GET /api/orders/7/items', 'write {id}'],
    ['GET /api/{table}', 'write the names of tables and functions'],
    ['POST /api/rpc/{function}', 'write the names of tables and functions'],
    ['GET /api/{table}/{id}', 'write the names of tables and functions'],
    ['GET /api/_schema', 'leave it out'],
    ['GET /api/_rpc/contracts', 'leave it out'],
    ['POST /api/_query', 'write the query'],
    ['GET /orders', 'not a path of the API'],
    ['GET /health', 'not a path of the API'],
    ['PUT /api/orders', '/api/orders does not accept PUT; it accepts GET, POST, PATCH, DELETE'],
    ['PATCH /api/rpc/f', 'it accepts GET, POST'],
    ['GET /api/orders ?a.eq', '"?a.eq" follows the request'],
    ['GET /api/orders?%zz', 'percent-encoded'],
  ])('%s is rejected: %s', (text, message) => {
    expect(() => parseRequestPattern(text)).toThrow(GatewayError)
    expect(() => parseRequestPattern(text)).toThrow(message)
  })
})

// ---- properties -------------------------------------------------------------------------------------------

const name = fc.oneof(
  fc.constantFrom(
    'a',
    'status',
    'Order Details',
    'x.not',
    'or',
    'not.and',
    'select',
    'a"b',
    'größe',
    '#',
    'a&b',
    '__proto__',
    '{id}',
    'is_null',
  ),
  fc.string({ minLength: 1, unit: 'grapheme' }).filter(text => !/[\0\ud800-\udfff]/.test(text)),
)
const value = fc.string({ unit: 'grapheme' }).filter(text => !/[\0\ud800-\udfff]/.test(text))
const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
const encode = encodeURIComponent

/** An operand that is valid for this operator. */
function operand(operator: Operator, text: string): string {
  if (OPERAND_OF[operator] === 'flag') return 'true'
  return OPERAND_OF[operator] === 'list' ? '(1,2)' : text === '' ? 'x' : text
}
const operator = fc.constantFrom(...(Object.keys(OPERAND_OF) as Operator[]))

test('both styles of a filter have the same shape', () => {
  fc.assert(
    fc.property(name, operator, fc.boolean(), value, (column, operator, negated, text) => {
      const given = operand(operator, text)
      const not = negated ? 'not.' : ''
      const key = line(`GET /api/t?${encode(`${quoted(column)}.${not}${operator}`)}=${encode(given)}`)
      // A name that ends with an operator would be parsed as one, so such columns are quoted.
      const valueStyle = line(`GET /api/t?${encode(quoted(column))}=${encode(`${not}${operator}.${given}`)}`)
      expect(valueStyle).toBe(key)
    }),
  )
})

test('a recorded line matches its request and contains neither line breaks nor values', () => {
  const filter = fc.tuple(name, operator, fc.boolean(), value)
  const parameter = fc.oneof(
    filter.map(
      ([column, op, negated, text]) =>
        `${encode(`${quoted(column)}${negated ? '.not' : ''}.${op}`)}=${encode(operand(op, text))}`,
    ),
    fc
      .tuple(fc.constantFrom('select', 'expand', 'sort', 'distinct'), value)
      .map(([key, text]) => `${key}=${encode(text)}`),
    fc.constantFrom('or=(a.eq.1,and(b.gt.2,c.is_null))', 'not.or=("x,y".eq.1)', 'limit=5', 'search=secret'),
  )
  const requests = fc.tuple(
    fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE'),
    name.filter(text => text !== '.' && text !== '..'),
    fc.uniqueArray(parameter, { maxLength: 6, selector: text => text.split('=')[0] ?? '' }),
  )
  fc.assert(
    fc.property(requests, ([method, table, parameters]) => {
      const route = parsePath(`/api/${encode(table)}`)
      if (route?.kind !== 'list') return
      const request = `${method} /api/${encode(table)}?${parameters.join('&')}`
      const own = line(request)
      expect(own).not.toMatch(/[\s#](?<!^[A-Z]+ )/u)
      expect(isApproved(own, request)).toBe(true)
      expect(parseRequestPattern(own).key).toBe(shape(request).key)
    }),
    { numRuns: 1_000 },
  )
})

test('requests of different shapes have different keys', () => {
  // Small sets of parts, so that requests often differ in one part only.
  const request = fc
    .tuple(fc.constantFrom('a', 'a.not', 'a.eq'), operator, fc.boolean())
    .map(([column, op, negated]) => ({ column, op: op === 'neq' ? 'ne' : op, negated }))
  fc.assert(
    fc.property(request, request, (a, b) => {
      const key = ({ column, op, negated }: typeof a) =>
        shape(
          `GET /api/t?${encode(`${quoted(column)}${negated ? '.not' : ''}.${op}`)}=` +
            `${OPERAND_OF[op as Operator] === 'flag' ? 'true' : 1}`,
        ).key
      expect(key(a) === key(b)).toBe(a.column === b.column && a.op === b.op && a.negated === b.negated)
    }),
  )
})

test('any text is a valid line or causes PARSE_ERROR', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (path, query) => {
      try {
        parseRequestPattern(`GET /api/${path}?${query}`)
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError)
      }
    }),
  )
})
