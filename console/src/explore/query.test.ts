import { expect, test } from 'vitest'
import { Digits } from '../json.ts'
import {
  directionOf,
  expansionsOf,
  filtersOf,
  queryOfRow,
  withCursor,
  withExpansion,
  withFilter,
  withoutFilter,
  withSort,
} from './query.ts'

const query = (text: string) => new URLSearchParams(text)

test('every parameter that is not reserved is a filter, and each can be removed alone', () => {
  const both = query('total.gt=1&total.gt=2&sort=id&limit=5&cursor=x')
  expect(filtersOf(both)).toEqual([
    { name: 'total.gt', value: '1' },
    { name: 'total.gt', value: '2' },
  ])
  expect(withoutFilter(both, { name: 'total.gt', value: '1' }).toString()).toBe('total.gt=2&sort=id&limit=5')
})

test('adding a filter returns to the first page', () => {
  expect(withFilter(query('cursor=x&limit=5'), { name: 'a.eq', value: '1,2' }).toString()).toBe('limit=5&a.eq=1%2C2')
})

test('a header sorts ascending, descending, and not at all', () => {
  const first = withSort(query(''), '"a,b"')
  expect([first.get('sort'), directionOf(first, '"a,b"')]).toEqual(['"a,b"', 'ascending'])
  const second = withSort(first, '"a,b"')
  expect([second.get('sort'), directionOf(second, '"a,b"')]).toEqual(['-"a,b"', 'descending'])
  expect(withSort(second, '"a,b"').has('sort')).toBe(false)
})

test('a relation is added and removed, and commas in parentheses separate nothing', () => {
  const one = query('expand=customer(id,name)')
  expect(expansionsOf(one)).toEqual(['customer(id,name)'])
  const two = withExpansion(one, 'nested:order_items')
  expect(two.get('expand')).toBe('customer(id,name),nested:order_items')
  expect(withExpansion(two, 'nested:order_items').get('expand')).toBe('customer(id,name)')
})

test('a cursor replaces the cursor before', () => {
  expect(withCursor(query('cursor=a&sort=id'), 'b').toString()).toBe('sort=id&cursor=b')
  expect(withCursor(query('cursor=a&sort=id'), null).toString()).toBe('sort=id')
})

test('one row of a page is read with the columns, related rows and filters of the page', () => {
  const query = new URLSearchParams('status=paid&select=id,total&expand=customer&sort=-id&limit=3&cursor=abc')
  const row = queryOfRow(query, { primary_key: ['id', 'a.b'] }, { id: new Digits('9007199254740993'), 'a.b': 'x,y' })
  expect([...(row ?? [])]).toEqual([
    ...[
      ['status', 'paid'],
      ['select', 'id,total'],
      ['expand', 'customer'],
      ['id.eq', '9007199254740993'],
    ],
    ['"a.b".eq', 'x,y'],
  ])
  expect(queryOfRow(query, { primary_key: ['id'] }, { total: 1 })).toBeNull()
  expect(queryOfRow(query, { primary_key: [] }, { total: 1 })).toBeNull()
})
