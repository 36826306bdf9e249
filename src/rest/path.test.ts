import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseId, parsePath, printId } from './path.ts'

test.each([
  ['/api/orders', { kind: 'list', table: 'orders' }],
  ['/api/orders/7', { kind: 'one', table: 'orders', id: '7' }],
  ['/api/orders/7/items', { kind: 'children', table: 'orders', id: '7', child: 'items' }],
  ['/api/_schema', { kind: 'schema' }],
  ['/api/Server%20Today/a%2Fb', { kind: 'one', table: 'Server Today', id: 'a/b' }],
  ['/api/%D8%AA%D8%B3%D8%AA', { kind: 'list', table: 'تست' }],
  ['/api/__proto__', { kind: 'list', table: '__proto__' }],
  ['/api/sales.orders', { kind: 'list', table: 'sales.orders' }],
])('a path is read as a route: %s', (path, route) => {
  expect(parsePath(path)).toEqual(route)
})

test.each(['/api', '/api/', '/api//7', '/api/orders/', '/api/orders/7/items/8', '/other/orders', '/'])(
  '%s is not a route',
  path => {
    expect(parsePath(path)).toBeNull()
  },
)

test.each(['/api/%', '/api/%FF', '/api/%C3', '/api/a%00b'])('%s is rejected', path => {
  expect(() => parsePath(path)).toThrow(expect.objectContaining({ code: 'PARSE_ERROR' }))
})

test('the id of a single-column key is used as a whole', () => {
  expect(parseId('a,b%2C', ['id'])).toEqual(['a,b%2C'])
})

test('a comma inside a value of a composite key is encoded twice', () => {
  // `/api/t/a%252Cb,c`, decoded once
  expect(parseId('a%2Cb,c', ['x', 'y'])).toEqual(['a,b', 'c'])
})

test.each(['a', 'a,b,c'])('%s has the wrong number of values for two columns', id => {
  expect(() => parseId(id, ['x', 'y'])).toThrow('write {x},{y}')
})

test('parsePath and parseId recover the values that printId printed', () => {
  const value = fc.string({
    unit: fc.constantFrom('a', ',', '%', '2', 'C', '/', '5', 'é', '?', '#', ' ', '+'),
    minLength: 1,
    maxLength: 8,
  })
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 3 }), values => {
      const route = parsePath(`/api/t/${printId(values)}`)
      expect(
        route?.kind === 'one' &&
          parseId(
            route.id,
            values.map((_, index) => `k${index}`),
          ),
      ).toEqual(values)
    }),
  )
})
