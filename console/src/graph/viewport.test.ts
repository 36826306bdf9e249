import { expect, test } from 'vitest'
import { around, fitted, initial, nodeInDirection, revealing, zoomed } from './viewport.ts'

const SIZE = { width: 800, height: 600 }

test('a small graph is centred at its natural size, and a large one is visible as a whole', () => {
  expect(fitted({ width: 200, height: 100 }, SIZE)).toEqual({ x: -300, y: -250, width: 800, height: 600 })
  const large = fitted({ width: 4_000, height: 100 }, SIZE)
  expect(large.x).toBeLessThan(0)
  expect(large.x + large.width).toBeGreaterThan(4_000)
})

test('the first view is readable: around the selected table, or from the start of the graph', () => {
  expect(initial({ width: 200, height: 100 }, SIZE, null)).toEqual(fitted({ width: 200, height: 100 }, SIZE))
  const graph = { width: 40_000, height: 100 }
  expect(initial(graph, SIZE, { x: 20_000, y: 50 })).toEqual(around({ x: 20_000, y: 50 }, SIZE, 0.75))
  expect(initial(graph, SIZE, null)).toMatchObject({ x: -16, y: -350, width: SIZE.width / 0.75 })
})

test('the point under the pointer keeps its place, and the scale has limits', () => {
  const view = { x: 0, y: 0, ...SIZE }
  expect(zoomed(view, 2, { x: 400, y: 150 }, SIZE)).toEqual({ x: 200, y: 75, width: 400, height: 300 })
  expect(zoomed(view, 1_000, { x: 0, y: 0 }, SIZE).width).toBeCloseTo(800 / 3)
  expect(zoomed(view, 0.000_1, { x: 0, y: 0 }, SIZE).width).toBeCloseTo(40_000)
})

test('a table that is visible does not move the view, and another one is brought into it', () => {
  const view = { x: 0, y: 0, ...SIZE }
  expect(revealing(view, { x: 10, y: 10, width: 100, height: 50 })).toEqual(view)
  expect(revealing(view, { x: 790, y: -50, width: 100, height: 50 })).toEqual({ ...view, x: 106, y: -66 })
})

test('an arrow key leads to the nearest table in its direction', () => {
  const nodes = new Map([
    ['here', { x: 0, y: 0 }],
    ['right', { x: 100, y: 20 }],
    ['farther', { x: 300, y: 0 }],
    ['below', { x: 10, y: 90 }],
  ])
  expect(nodeInDirection('ArrowRight', 'here', nodes)).toBe('right')
  expect(nodeInDirection('ArrowDown', 'here', nodes)).toBe('below')
  expect(nodeInDirection('ArrowLeft', 'here', nodes)).toBeNull()
  expect(nodeInDirection('ArrowLeft', 'farther', nodes)).toBe('right')
  expect(nodeInDirection('Enter', 'here', nodes)).toBeNull()
})
