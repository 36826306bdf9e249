import { expect, test } from 'vitest'
import type { Column, Schema, Table } from '../schema.ts'
import { graphOf, neighbourhoodOf, neighboursOf } from './model.ts'

interface Facts {
  readonly columns: readonly string[]
  readonly key?: readonly string[]
  readonly unique?: readonly (readonly string[])[]
  /** By name: the columns, the table and its columns. */
  readonly keys?: Readonly<Record<string, readonly [readonly string[], string, readonly string[]]>>
}

/** A column whose name ends in `?` is nullable. */
function table({ columns, key = ['id'], unique = [], keys = {} }: Facts): Table {
  const facts = { type: 'int', default: null, generated: null, identity: null, comment: null } as const
  return {
    ...{ schema: 'public', name: '', kind: 'table', comment: null, primary_key: key, unique },
    ...{ referenced_by: [], relations: [] },
    columns: columns.map((name): Column => ({ ...facts, name: name.replace('?', ''), nullable: name.endsWith('?') })),
    foreign_keys: Object.entries(keys).map(([name, [own, target, theirs]]) => ({
      ...{ name, columns: own, references: { table: target, columns: theirs } },
    })),
  }
}

const SCHEMA: Schema = new Map([
  ['users', table({ columns: ['id', 'boss_id?'], keys: { boss: [['boss_id'], 'users', ['id']] } })],
  [
    'orders',
    table({
      columns: ['note', 'author_id', 'id', 'approver_id?'],
      keys: { author: [['author_id'], 'users', ['id']], approver: [['approver_id'], 'users', ['id']] },
    }),
  ],
  [
    'invoices',
    table({ columns: ['id', 'order_id'], unique: [['order_id']], keys: { o: [['order_id'], 'orders', ['id']] } }),
  ],
  ['<b>', table({ columns: ['id'] })],
  ['lost', table({ columns: ['id', 'gone_id'], keys: { gone: [['gone_id'], 'hidden', ['id']] } })],
])

test('foreign keys have a cardinality, and all that connect the same tables are kept', () => {
  const { edges } = graphOf(SCHEMA)
  expect(
    edges.map(({ from, to, columns, cardinality, isOptional }) => [from, to, ...columns, cardinality, isOptional]),
  ).toEqual([
    ['users', 'users', 'boss_id', 'many', true],
    ['orders', 'users', 'author_id', 'many', false],
    ['orders', 'users', 'approver_id', 'many', true],
    ['invoices', 'orders', 'order_id', 'one', false],
  ])
  expect(new Set(edges.map(({ id }) => id)).size).toBe(4)
})

test('a table has the columns of its keys, the primary key first', () => {
  const orders = graphOf(SCHEMA).nodes.find(({ name }) => name === 'orders')
  expect(orders?.keys.map(({ name, isPrimary, isForeign }) => [name, isPrimary, isForeign])).toEqual([
    ['id', true, false],
    ['author_id', false, true],
    ['approver_id', false, true],
  ])
  const names = Array.from({ length: 9 }, (_, at) => `part_${at}`)
  const wide = graphOf(new Map([['wide', table({ columns: names, key: names })]])).nodes[0]
  expect([wide?.keys.length, wide?.more]).toEqual([6, 3])
})

test('a neighbourhood has the neighbours, the keys between them, and at most as many as requested', () => {
  const graph = graphOf(SCHEMA)
  expect([...neighboursOf(graph, 'users')]).toEqual(['orders'])
  expect([...neighboursOf(graph, 'orders')]).toEqual(['users', 'invoices'])
  const { nodes, edges } = neighbourhoodOf(graph, 'orders', 10)
  expect(nodes.map(({ name }) => name)).toEqual(['users', 'orders', 'invoices'])
  expect(edges.length).toBe(4)
  expect(neighbourhoodOf(graph, 'orders', 1).nodes.map(({ name }) => name)).toEqual(['users', 'orders'])
  expect(neighbourhoodOf(graph, '<b>', 10)).toMatchObject({ nodes: [{ name: '<b>' }], edges: [] })
})
