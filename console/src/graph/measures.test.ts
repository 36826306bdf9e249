import { expect, test } from 'vitest'
import { labelOf, pathThrough, short, sizeOf } from './measures.ts'

const KEY = { id: 'k', from: 'a', to: 'b', columns: ['x', 'y'], references: ['p', 'q'] }

test('the label of a key has its columns and its cardinality', () => {
  expect(labelOf({ ...KEY, cardinality: 'many', isOptional: false })).toBe('x, y → p, q  n : 1')
  expect(labelOf({ ...KEY, cardinality: 'one', isOptional: true })).toBe('x, y → p, q  1 : 0..1')
})

test('a long name is cut, between characters', () => {
  expect(short('orders')).toBe('orders')
  expect(short('😀'.repeat(30))).toBe(`${'😀'.repeat(27)}…`)
  const node = { name: 'n'.repeat(500), keys: [], more: 0 }
  expect(sizeOf(node).width).toBeLessThan(300)
})

test('a path goes through the first and the last point', () => {
  const points = [0, 10, 20, 30].map(x => ({ x, y: x }))
  expect(pathThrough(points)).toBe('M0,0Q10,10 15,15Q20,20 30,30')
  expect(pathThrough(points.slice(0, 2))).toBe('M0,0L10,10')
  expect(pathThrough([])).toBe('')
})
