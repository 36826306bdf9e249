import { expect, test } from 'vitest'
import { Digits } from '../json.ts'
import type { Column } from '../schema.ts'
import { bodyOf, jsonOf, patchOf, textOf } from './edit.ts'

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
