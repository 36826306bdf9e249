import { expect, test } from 'vitest'
import { wholeXid } from './batch.ts'

test.each([
  [5, 9n, 5n],
  [12, 9n, 12n],
  [4_294_967_295, 2n ** 32n + 1n, 2n ** 32n - 1n],
  [3, 2n ** 32n - 2n, 2n ** 32n + 3n],
  [7, 3n * 2n ** 32n + 9n, 3n * 2n ** 32n + 7n],
])('the transaction that ends in %i next to %i is %i', (xid, near, whole) => {
  expect(wholeXid(xid, near)).toBe(whole)
})
