import { expect, test } from 'vitest'
import { compileRead } from '../../test/support/compiled.ts'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { EVERYTHING } from '../access/rights.ts'

const columns = { id: 'int8', code: 'text', status: 'text', region: 'text', number: 'int8', tags: '_text' }
const catalog = catalogOf(
  {
    ...tableOf('orders', columns),
    primaryKey: ['id'],
    unique: [['code'], ['region', 'number'], ['tags']],
  },
  { ...tableOf('customers', { id: 'int8', order_id: 'int8', region: 'text' }), primaryKey: ['id'] },
)
const context = { catalog, rights: EVERYTHING, searchLanguage: 'english' }
const listsOf = (text: string) => {
  const { keyLists, parameters } = compileRead(text, context)
  return keyLists.map(index => {
    const parameter = parameters[index]
    return parameter !== undefined && 'key' in parameter ? parameter.key : parameter
  })
}

test.each([
  ['get orders where id in :ids', ['ids']],
  ['get orders where code in :codes', ['codes']],
  ['get orders where status = :status and id in :ids order by number limit 3', ['ids']],
  ['get orders where status in :statuses and id in :ids', ['ids']],
  ['get customers where exists (get orders where id in :ids)', ['ids']],
  ["get orders where region = 'north' and number in :numbers", ['numbers']],
  ['get orders where number in :numbers and :region = region', ['numbers']],
  ['get customers as c join orders as o on o.id = c.order_id where c.id in :ids', ['ids']],
  ['get customers as c left join orders as o on o.region = c.region and o.number = 7 where c.id in :ids', ['ids']],
])('a list of values of a unique column is a list of keys: %s', (text, keys) => {
  expect(listsOf(text)).toEqual(keys)
})

test.each([
  'get orders where status in :statuses',
  'get orders where number in :numbers',
  'get orders where id not in :ids',
  'get orders where not id in :ids',
  "get orders where id in :ids or status = 'paid'",
  'get orders where id + 1 in :ids',
  'get orders where id in (1, 2, 3)',
  'get orders where id = :id',
  'get orders as o join customers as c on c.order_id = o.id where o.id in :ids',
  'get customers as c join orders as o on o.region = c.region where c.id in :ids',
  'get customers as c join orders as o on o.id = c.order_id or o.id = c.id where c.id in :ids',
  'get customers as c join orders as o on o.id > c.order_id where c.id in :ids',
  'get customers as c cross join orders as o where c.id in :ids and o.id = c.order_id',
  'get customers as c full join orders as o on o.id = c.order_id where c.id in :ids',
  'get orders where number in :numbers and region = status',
  'get orders where number in :numbers and region <> :region',
  "get orders where number in :numbers and (region = 'north' or region = 'south')",
  'get orders where number in :numbers and exists (get orders as o where o.region = :region)',
])('other lists are not: %s', text => {
  expect(listsOf(text)).toEqual([])
})
