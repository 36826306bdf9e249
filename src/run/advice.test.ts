import { expect, test } from 'vitest'
import { compileRead } from '../../test/support/compiled.ts'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { EVERYTHING } from '../access/rights.ts'
import type { Mention } from '../compile/mentions.ts'
import { type ExpensiveRead, suggestionsFor } from './advice.ts'
import type { TableIndex } from './indexes.ts'

const columns = { id: 'int8', status: 'text', total: 'int4', shop_id: 'int8', meta: 'jsonb' }
const catalog = catalogOf(tableOf('orders', columns), tableOf('shops', { id: 'int8', name: 'text' }))

function mentionsOf(text: string): readonly string[] {
  const { mentions } = compileRead(text, { catalog, rights: EVERYTHING, searchLanguage: 'english' })
  return mentions.map(({ schema, table, column, use }) => `${use} ${schema}.${table}.${column}`)
}

test.each([
  ['get orders', []],
  [
    'get orders where status = "a" and (total > 5 or not shop_id in (1, 2)) order by total desc, id',
    [
      'filter public.orders.status',
      'filter public.orders.total',
      'filter public.orders.shop_id',
      'sort public.orders.total',
    ],
  ],
  ['get orders o where 5 < o.total', ['filter public.orders.total']],
  ['get orders where lower(status) = "a" and meta->>"a" = "b" order by lower(status)', []],
  [
    'get orders join shops on orders.shop_id = shops.id where shops.name like "a%"',
    ['filter public.orders.shop_id', 'filter public.shops.id', 'filter public.shops.name'],
  ],
  [
    'get orders where exists (get shops where shops.id = orders.shop_id)',
    ['filter public.shops.id', 'filter public.orders.shop_id'],
  ],
  ['with o as (get orders where total = 1) get o where o.status = "x"', ['filter public.orders.total']],
])('the columns that advice can name are found: %s', (text, mentions) => {
  expect([...mentionsOf(text)].sort()).toEqual([...mentions].sort())
})

const mention = (use: Mention['use'], column: string, schema = 'public'): Mention => ({
  schema,
  table: 'orders',
  column,
  use,
})
const index = (name: string, indexed: readonly (string | null)[], ordered = true): TableIndex => ({
  schema: 'public',
  table: 'orders',
  name,
  columns: indexed,
  ordered,
})
const advise = (more: Partial<ExpensiveRead>) => suggestionsFor({ extent: 'page', mentions: [], indexes: [], ...more })

test('a limit is suggested only for a read without one, and never for an aggregate', () => {
  expect(advise({})).toEqual(['add a filter: every row has to be read'])
  expect(advise({ extent: 'all' })).toEqual([
    'add a filter: every row has to be read',
    'add a limit: all rows are requested',
  ])
  expect(advise({ extent: 'aggregate' })).toEqual([
    'add a filter: every row has to be read',
    'an aggregate, a count or a distinct reads every row that matches the filters',
  ])
})

test.each([
  ['get orders', 'all'],
  ['get orders limit 5', 'page'],
  ['get orders order by total limit 5', 'page'],
  ['count orders', 'aggregate'],
  ['get orders fields sum(total) as total', 'aggregate'],
  ['get orders fields status group by status limit 5', 'aggregate'],
  ['get distinct orders fields status limit 5', 'aggregate'],
])('the extent of %s is %s', (text, extent) => {
  expect(compileRead(text, { catalog, rights: EVERYTHING, searchLanguage: 'english' }).extent).toBe(extent)
})

test('existing indexes are named and missing ones described', () => {
  const indexes = [
    index('orders_status', ['status', 'total', 'secret', null]),
    index('orders_secret', ['secret', 'status']),
    index('orders_id_hash', ['id'], false),
  ]
  expect(
    advise({ mentions: [mention('filter', 'status'), mention('filter', 'total'), mention('sort', 'id')], indexes }),
  ).toEqual([
    'narrow the filters, or add one, so that fewer rows have to be read',
    'the index orders_status on orders(status, total, …, …) exists: a narrower filter on status can use it',
    'an index on orders(total) would help to filter by this column',
    'an index on orders(id) would help to sort by this column',
  ])
})

test('names are quoted and include a schema other than the first', () => {
  expect(advise({ mentions: [mention('filter', 'Total', 'Sales')] })[1]).toBe(
    'an index on "Sales".orders("Total") would help to filter by this column',
  )
})
