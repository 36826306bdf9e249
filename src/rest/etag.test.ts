/** Tags of rows. Conditional requests: test/features/preconditions.pg.test.ts. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tableOf } from '../../test/support/model.ts'
import { ROW_VERSION } from '../access/scope.ts'
import { parseIfMatch, rowTag, versionOfTransaction, versionsOf } from './etag.ts'

const orders = tableOf('orders', { id: 'text' })
const version = { column: ROW_VERSION, text: '734' }

function versionsIn(tag: string | null, table = orders, key = ['7']): readonly string[] {
  const tags = parseIfMatch(tag ?? '')
  return tags === '*' ? [] : versionsOf(tags, table, key, ROW_VERSION)
}

test.each([
  ['an integer', ['7']],
  ['a UUID', ['0b1f1c1e-3c7e-4a55-9a3e-1f6d3f0c9d11']],
  ['a key with a dot and quotes', ['a."b"']],
  ['a long key', ['x'.repeat(400)]],
  ['an empty key', ['']],
  ['a key of two columns', ['7', '8']],
])('a tag names the version of its row only: %s', (_, key) => {
  const tag = rowTag(orders, key, version, 'columns1')
  expect(versionsIn(tag, orders, key)).toEqual(['734'])
  expect(versionsIn(tag, orders, [...key.slice(1), 'other'])).toEqual([])
  expect(versionsIn(tag, tableOf('items', { id: 'text' }), key)).toEqual([])
})

test('a key that looks like the digest of another key does not share its tag', () => {
  const digest = rowTag(orders, ['a.b'], version, 'columns1')?.split('.')[1] ?? ''
  const plain = rowTag(orders, [digest], version, 'columns1')
  expect(versionsIn(plain, orders, ['a.b'])).toEqual([])
})

test('the version of a transaction is the lower half of its number', () => {
  fc.assert(
    fc.property(fc.oneof(fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(10n ** 15n - 9n, 10n ** 15n + 9n)), txid => {
      expect(versionOfTransaction(String(txid))).toBe(String(txid % 2n ** 32n))
    }),
  )
})
