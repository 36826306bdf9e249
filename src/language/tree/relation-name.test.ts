/** docs/reference/language.md#joins: without a catalog, the foreign key is `<source singular>_id`. */
import { expect, test } from 'vitest'
import { singular } from './relation-name.ts'

test.each([
  ['users', 'user'],
  ['order_items', 'order_item'],
  ['categories', 'category'],
  ['statuses', 'status'],
  ['addresses', 'address'],
  ['boxes', 'box'],
  ['branches', 'branch'],
  ['houses', 'house'],
  ['purchases', 'purchase'],
  ['movies_series', 'movies_series'],
  ['status', 'status'],
  ['analysis', 'analysis'],
  ['sales_people', 'sales_person'],
  ['staff', 'staff'],
])('the foreign key to %s is %s_id', (plural, word) => {
  expect(singular(plural)).toBe(word)
})
