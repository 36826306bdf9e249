/** What a comment declares for a column is text or JSON, by the column's type, and is not shown where it is neither. */
import { expect, test } from 'vitest'
import { arrayOf, baseType } from '../../test/support/model.ts'
import type { DataType } from '../catalog/model.ts'
import { EXAMPLE_CHARACTERS_MAX, readExample } from './declared.ts'
import { valueSchema } from './types.ts'

const MOOD: DataType = { ...baseType('mood'), schema: 'public', kind: 'enum', labels: ['sad', 'glad'] }

function read(text: string, type: DataType, typeText: string = type.name) {
  return readExample(text, { type, typeText }, valueSchema(type, typeText))
}

test.each([
  ['a "b"', baseType('text'), 'a "b"'],
  ['12', baseType('text'), '12'],
  ['', baseType('text'), ''],
  ['glad', MOOD, 'glad'],
  ['[1,5)', { ...baseType('int4range'), kind: 'range' }, '[1,5)'],
  ['12.50', baseType('numeric'), 12.5],
  ['-7', baseType('int8'), -7],
  ['true', baseType('bool'), true],
  ['null', baseType('jsonb'), null],
  ['{"__proto__": 1}', baseType('jsonb'), JSON.parse('{"__proto__": 1}')],
  ['["a", null]', arrayOf(baseType('text')), ['a', null]],
] satisfies readonly (readonly [string, DataType, unknown])[])('%j', (text, type, value) => {
  expect(read(text, type)).toEqual({ kind: 'value', value })
})

test.each([
  ['12,50', baseType('numeric'), '12,50 is no numeric as the API answers one, such as 1.5'],
  ['null', baseType('int4'), 'null is no int4 as the API answers one, such as 1'],
  ['40000', baseType('int2'), '40000 is no int2 as the API answers one, such as 1'],
  ['happy', MOOD, 'happy is no mood as the API answers one, such as sad'],
  ['{a,b}', arrayOf(baseType('text')), '{a,b} is no _text as the API answers one, such as ["text"]'],
  ['{a: 1}', baseType('jsonb'), '{a: 1} is no jsonb as the API answers one, such as {}'],
  [
    '2025-03-01 12:00:00+00',
    baseType('timestamptz'),
    '2025-03-01 12:00:00+00 is no timestamptz as the API answers one, such as 2025-03-01T12:00:00+00:00',
  ],
] satisfies readonly (readonly [string, DataType, string])[])('%j does not fit', (text, type, why) => {
  expect(read(text, type)).toEqual({ kind: 'misfit', why })
})

test('numbers that a reader would round are not shown, wherever they stand', () => {
  const why = expect.stringMatching(/ has more digits than the 15 that all readers of JSON keep$/)
  expect(read('1234567890123456789', baseType('int8'))).toEqual({ kind: 'misfit', why })
  expect(read('{"a": ["1234567890123456789", -0.1234567890123456]}', baseType('jsonb'))).toEqual({
    kind: 'misfit',
    why,
  })
  expect(read('1e999', baseType('numeric'))).toEqual({ kind: 'misfit', why })
  expect(read('{"a \\" 1234567890123456789": 120000000000000000000}', baseType('jsonb')).kind).toBe('value')
})

test('what is very long is not shown', () => {
  const longest = 'x'.repeat(EXAMPLE_CHARACTERS_MAX)
  expect(read(longest, baseType('text'))).toEqual({ kind: 'value', value: longest })
  const why = 'it has 4097 characters, more than 4096'
  expect(read(`${longest}x`, baseType('text'))).toEqual({ kind: 'misfit', why })
  expect(read(`"${longest}`, baseType('jsonb'))).toEqual({ kind: 'misfit', why })
})
