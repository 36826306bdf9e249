import { expect, test } from 'vitest'
import { restPathOf } from './rest-path.ts'

const TABLES = new Set(['orders', 'sales.leads', 'odd name'])
const pathOf = (text: string, parameters: Parameters<typeof restPathOf>[1] = null) =>
  restPathOf(text, parameters, TABLES)

test.each([
  ['get orders limit 5', 'api/orders?limit=5'],
  ['get public.orders limit 5 offset 10', 'api/orders?limit=5&offset=10'],
  ['get sales.leads limit 5', 'api/sales.leads?limit=5'],
  ['get `odd name` limit 5', 'api/odd%20name?limit=5'],
  [
    "get orders as o fields o.id, total as sum where o.status = 'in.x' and total >= 2.5 order by total desc limit 5",
    'api/orders?select=id,sum:total&status.eq=in.x&total.gte=2.5&sort=-total&limit=5',
  ],
  ["get orders[status <> 'a&b'] where paid is null limit 1", 'api/orders?status.ne=a%26b&paid.is_null=true&limit=1'],
  ["get orders where status in ('paid', 'draft') limit 1", 'api/orders?status.in=paid,draft&limit=1'],
  [
    'get orders where paid is not null and id not in (1, 2) limit 1',
    'api/orders?paid.is_not_null=true&id.not_in=1,2&limit=1',
  ],
])('%s', (text, path) => {
  expect(pathOf(text)).toBe(path)
})

test('parameters are values of the request', () => {
  const text = 'get orders where total < :most and status = :status limit :count'
  const path = 'api/orders?total.lt=2.5&status.eq=x%3Dy&limit=3'
  expect(pathOf(text, { most: 2.5, status: 'x=y', count: 3 })).toBe(path)
  expect(pathOf('get orders where id = $1 limit $2', [7, 3])).toBe('api/orders?id.eq=7&limit=3')
  expect(pathOf(text, { most: 2.5 })).toBeNull()
  expect(pathOf('get orders where id = :constructor limit 1', {})).toBeNull()
})

test.each([
  ...['get orders', 'get nowhere limit 1', 'count orders', "set orders status = 'x' where id = 1", 'get orders limit'],
  ...[
    'get orders where a = 1 or b = 2 limit 1',
    'get orders where a = b limit 1',
    'get orders where not a = 1 limit 1',
  ],
  ...['get orders where status = null limit 1', "get orders where s in ('a,b') limit 1", 'get distinct orders limit 1'],
  ...[
    'get orders fields count(*) limit 1',
    'get orders order by lower(a) limit 1',
    'get orders order by a nulls last limit 1',
  ],
  ...['get orders nest order_items limit 1', 'get orders join customers limit 1', 'get orders limit 1 for update'],
])('%s is not a list', text => {
  expect(pathOf(text)).toBeNull()
})
