import { expect, test } from 'vitest'
import { type Link, place, type Size } from './layout.ts'

const node = (id: string): Size => ({ id, width: 120, height: 60 })
const link = (from: string, to: string, id = `${from} ${to}`): Link => ({ id, from, to, width: 0, height: 0 })

/** Pairs of nodes that cover each other. */
function overlaps(nodes: readonly Size[], placed: ReturnType<typeof place>): readonly string[] {
  return nodes.flatMap((a, at) =>
    nodes.slice(at + 1).flatMap(b => {
      const [p, q] = [placed.nodes.get(a.id), placed.nodes.get(b.id)]
      if (p === undefined || q === undefined) return [`${a.id} or ${b.id} has no place`]
      const isApart =
        Math.abs(p.x - q.x) >= (a.width + b.width) / 2 - 0.01 || Math.abs(p.y - q.y) >= (a.height + b.height) / 2 - 0.01
      return isApart ? [] : [`${a.id} covers ${b.id}`]
    }),
  )
}

test('a table is left of the one that it refers to, and no table covers another', () => {
  const nodes = ['orders', 'users', 'items', 'alone', 'other', 'one'].map(node)
  const links = [link('orders', 'users'), link('items', 'orders'), link('other', 'one')]
  const placed = place({ nodes, links })
  const x = (name: string) => placed.nodes.get(name)?.x ?? 0
  expect(x('items')).toBeLessThan(x('orders'))
  expect(x('orders')).toBeLessThan(x('users'))
  expect(overlaps(nodes, placed)).toEqual([])
  for (const { x: left, y: top } of placed.nodes.values()) {
    expect(left).toBeLessThanOrEqual(placed.width - 60)
    expect(top).toBeLessThanOrEqual(placed.height - 30)
  }
})

test('several keys between two tables and a reference of a table to itself have their own points', () => {
  const links = [link('a', 'b', 'first'), link('a', 'b', 'second'), link('a', 'a', 'self')]
  const placed = place({ nodes: ['a', 'b'].map(node), links })
  const points = links.map(({ id }) => JSON.stringify(placed.links.get(id)))
  expect(new Set(points).size).toBe(3)
  for (const { id } of links) expect(placed.links.get(id)?.length).toBeGreaterThan(1)
})

test('names that are members of objects are names like any other', () => {
  const names = ['__proto__', 'constructor', 'hasOwnProperty', '\u0000', 'a\u0001b']
  const links = names.map((name, at) => link(name, names[(at + 1) % names.length] ?? ''))
  const placed = place({ nodes: names.map(node), links })
  expect([...placed.nodes.keys()].sort()).toEqual(names.toSorted())
  expect(overlaps(names.map(node), placed)).toEqual([])
})

test('cycles, and a graph of no tables', () => {
  const placed = place({ nodes: ['a', 'b'].map(node), links: [link('a', 'b'), link('b', 'a')] })
  expect(placed.nodes.size).toBe(2)
  expect(place({ nodes: [], links: [] })).toMatchObject({ width: 0, height: 0 })
})
