/** Values of examples as a path or a query string holds them. */
import { expect, test } from 'vitest'
import { arrayOf, baseType } from '../../test/support/model.ts'
import type { DataType } from '../catalog/model.ts'
import { valueText } from './value-text.ts'

test.each([
  ['a,b', baseType('text'), 'a,b'],
  [1.5, baseType('numeric'), 1.5],
  [false, baseType('bool'), false],
  ['a', baseType('jsonb'), '"a"'],
  [{ a: 1 }, baseType('jsonb'), '{"a":1}'],
  [['a"b', null, 'NULL'], arrayOf(baseType('text')), '{"a\\"b",NULL,"NULL"}'],
  [[1, 2], arrayOf(baseType('int4')), '{"1","2"}'],
  [[], arrayOf(baseType('int4')), '{}'],
  [[{ a: 1 }], arrayOf(baseType('jsonb')), '{"{\\"a\\":1}"}'],
  [[[1]], arrayOf(baseType('jsonb')), '{"[1]"}'],
  [null, baseType('text'), undefined],
  [[[1], [2]], arrayOf(baseType('int4')), undefined],
  [{ a: 1 }, baseType('point'), undefined],
] satisfies readonly (readonly [unknown, DataType, unknown])[])('%j', (value, type, text) => {
  expect(valueText(value, type)).toBe(text)
})
