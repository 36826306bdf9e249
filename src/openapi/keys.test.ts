import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NameReader } from '../rest/parameters/name-reader.ts'
import { componentKey, distinctBy, distinctKeys, identifierOf, pairKey, quoteIfNeeded } from './keys.ts'

test('a plain name is its own key; other characters are replaced by their code points', () => {
  expect(['orders', 'sales.orders', 'Server Today', 'a/b', '__proto__', 'été', '😀'].map(componentKey)).toEqual([
    ...['orders', 'sales.orders', 'Server-20-Today', 'a-2f-b', '-5f-_proto__', '-e9-t-e9-', '-1f600-'],
  ])
})

const NAME = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
/** Names that look like escapes and separators. */
const TRICKY = fc.string({ unit: fc.constantFrom('-', '2', '0', 'd', 't', 'o', ' ', '_'), minLength: 1, maxLength: 8 })
const ANY = fc.oneof(NAME, TRICKY)

test('keys are valid in OpenAPI, and different names and pairs have different keys', () => {
  fc.assert(
    fc.property(ANY, ANY, ANY, ANY, (a, b, c, d) => {
      expect(componentKey(a)).toMatch(/^[a-zA-Z0-9._-]+$/)
      if (a !== b) expect(componentKey(a)).not.toBe(componentKey(b))
      if (a !== c || b !== d) expect(pairKey(a, b)).not.toBe(pairKey(c, d))
    }),
    { numRuns: 2_000 },
  )
})

test('a quoted name is read as that name wherever names are read', () => {
  fc.assert(
    fc.property(ANY, name => {
      const reader = new NameReader(quoteIfNeeded(name), 'select')
      expect(reader.name([',', ':', '.', '!', '->'])).toBe(name)
      expect(reader.done).toBe(true)
    }),
  )
})

test('identifiers ignore case and punctuation', () => {
  expect(['order_id', 'orderId', 'Order ID', '"order-id"'].map(identifierOf)).toEqual(Array(4).fill('orderid'))
  expect(['Größe', '->', '', 'имя'].map(identifierOf)).toEqual(['größe', '->', '', 'имя'])
})

test('if names have the same identifier, the unquoted one keeps it, at its position', () => {
  const same = (name: string) => name
  expect(distinctBy(['Name', 'id', 'name', 'NAME'], same)).toEqual(['id', 'name'])
  expect(distinctBy(['orderId', 'Order ID'], same)).toEqual(['orderId'])
  expect(distinctBy(['limit', 'Limit', 'id'], same, new Set(['limit']))).toEqual(['id'])
})

test('keys of similar names have a hash, in any order of the names', () => {
  const roles = ['', 'create']
  const names = ['Orders', 'create_orders', 'orders', 'svc_page']
  const keys = distinctKeys(names, roles, ['svc-page'])
  expect(Object.fromEntries(keys)).toEqual({
    orders: 'orders',
    Orders: expect.stringMatching(/^Orders-[0-9a-f]{8}$/),
    create_orders: expect.stringMatching(/^create_orders-[0-9a-f]{8}$/),
    svc_page: expect.stringMatching(/^svc_page-[0-9a-f]{8}$/),
  })
  expect(distinctKeys(names.toReversed(), roles, ['svc-page'])).toEqual(keys)
})
