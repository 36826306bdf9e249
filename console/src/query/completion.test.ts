import { expect, test } from 'vitest'
import type { Schema, Table } from '../schema.ts'
import { suggest } from './completion.ts'

const table = (name: string, ...columns: string[]): Table => ({
  ...{ schema: 'public', name, kind: 'table', comment: null, primary_key: [], foreign_keys: [], referenced_by: [] },
  ...{ unique: [], relations: [] },
  columns: columns.map(column => ({
    ...{ name: column, type: 'text', nullable: true, default: null, generated: null, identity: null, comment: null },
  })),
})
const schema: Schema = new Map([
  ['customers', table('customers', 'id', 'name')],
  ['orders', table('orders', 'id', 'total', 'Ship To')],
])
const labels = (text: string) => suggest(text, text.length, schema).options.map(({ label }) => label)

test('a statement begins with a verb', () => {
  expect(labels('')).toEqual(expect.arrayContaining(['get', 'count', 'add', 'set', 'del']))
})

test('after "get" come the tables, and nothing that the caller cannot see', () => {
  expect(labels('get ')).toEqual(['customers', 'orders'])
  expect(suggest('get ord', 7, schema).from).toBe(4)
})

test('a condition suggests the columns of the tables in the text', () => {
  expect(labels('get orders where ')).toEqual(['id', 'total', 'Ship To'])
  expect(suggest('get orders where ', 17, schema).options.at(-1)?.text).toBe('`Ship To`')
})

test('columns after a dot are those of the table or the alias', () => {
  expect(labels('get orders where orders.')).toEqual(['id', 'total', 'Ship To'])
  expect(labels('get orders o join customers c on c.')).toEqual(['id', 'name'])
  expect(labels('get orders o where unknown.')).toEqual([])
})

test('after a condition come the clauses that can follow it', () => {
  expect(labels('get orders where id = 1 ')).toEqual(expect.arrayContaining(['group by', 'order by', 'limit']))
  expect(labels('get orders where id = 1 ')).not.toContain('fields')
})

test('after an error nothing is suggested', () => {
  expect(labels('get get get where ( ')).toEqual([])
})
