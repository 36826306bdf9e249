import { expect, test } from 'vitest'
import { Digits } from '../json.ts'
import type { Column, Table } from '../schema.ts'
import { bodyOf, differencesOf, jsonOf, obstacleOf, patchOf, textOf } from './edit.ts'

const column = (type: string, more: Partial<Column> = {}): Column => ({
  ...{ name: 'a', type, nullable: true, default: null, generated: null, identity: null, comment: null },
  ...more,
})

test.each([
  ['text', '12', '"12"'],
  ['numeric(12,2)', '9007199254740993.10', '9007199254740993.10'],
  ['numeric', 'NaN', '"NaN"'],
  ['boolean', 'true', 'true'],
  ['jsonb', '{"a": [1.10]}', '{"a": [1.10]}'],
  ['integer[]', '[1, 2]', '[1, 2]'],
  ['timestamp with time zone', '2026-01-31', '"2026-01-31"'],
])('a value of type %s with the text %s is sent as %s', (type, text, json) => {
  expect(jsonOf(column(type), text)).toBe(json)
})

test('a value that is not JSON is not sent to a JSON column', () => {
  expect(jsonOf(column('jsonb'), '{a: 1}')).toBeNull()
})

test('a string and a JSON document that is a string are different values', () => {
  expect(textOf(column('jsonb'), 'a')).toBe('"a"')
  expect(textOf(column('text'), 'a')).toBe('a')
  expect(textOf(column('numeric'), new Digits('12.50'))).toBe('12.50')
})

test('column names are JSON strings in a body', () => {
  expect(JSON.parse(bodyOf([['a"b', '1']]))).toEqual({ 'a"b': 1 })
})

test('a patch tests every old value before it changes one, and leaves arrays to other requests', () => {
  const price = { column: column('numeric', { name: 'a/b~c' }), before: '12.50', after: '13.00' }
  const note = { column: column('text'), before: 'null', after: '"x"' }
  expect(patchOf([price, note])).toBe(
    '[{"op":"test","path":"/a~1b~0c","value":12.50},{"op":"test","path":"/a","value":null},' +
      '{"op":"replace","path":"/a~1b~0c","value":13.00},{"op":"replace","path":"/a","value":"x"}]',
  )
  expect(patchOf([note, { column: column('integer[]'), before: '[]', after: '[1]' }])).toBeNull()
})

const table = (key: readonly string[], columns: readonly Column[] = []): Table => ({
  ...{ schema: 'public', name: 't', kind: 'table', comment: null, primary_key: key, columns },
  ...{ foreign_keys: [], referenced_by: [], unique: [], relations: [] },
})

test.each([
  ['a column of the table', column('text'), ['id'], '1', null],
  ['a value without a column', undefined, ['id'], '1', 'foreign'],
  ['a column of the key', column('text', { name: 'id' }), ['id'], '1', 'key'],
  ['a generated column', column('text', { generated: 'stored' }), ['id'], '1', 'generated'],
  ['an identity column', column('bigint', { identity: 'always' }), ['id'], '1', 'identity'],
  ['a column without the right', column('text', { read_only: true }), ['id'], '1', 'noRight'],
  ['a table without a key', column('text'), [], null, 'noKey'],
  ['a row without its key', column('text'), ['id'], null, 'keyNotShown'],
] as const)('%s has the obstacle that its cell shows', (_title, of, key, id, obstacle) => {
  expect(obstacleOf(table(key), of, id)).toBe(obstacle)
})

test('the differences of two rows are those of columns that both have', () => {
  const [note, price, data] = [
    column('text', { name: 'note' }),
    column('numeric', { name: 'price' }),
    column('jsonb', { name: 'data' }),
  ]
  const before = { note: 'null', price: new Digits('12.50'), data: { a: [1] }, other: 1 }
  const after = { note: null, price: new Digits('12.50'), data: { a: [2] }, id: 1 }
  expect(differencesOf(table(['id'], [note, price, data]), before, after)).toEqual([
    { column: note, before: 'null', after: null },
    { column: data, before: { a: [1] }, after: { a: [2] } },
  ])
  expect(differencesOf(table([]), before, after)).toEqual([])
})
