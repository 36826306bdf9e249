/**
 * The example that a comment declares for a column is text or JSON, according to the column's type, and is
 * omitted if it is neither.
 */
import { expect, test } from 'vitest'
import { arrayOf, baseType } from '../../test/support/model.ts'
import type { DataType } from '../catalog/model.ts'
import { EXAMPLE_CHARACTERS_MAX, readExample } from './declared-examples.ts'
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
  ['12,50', baseType('numeric'), '12,50 is not a numeric as the API returns it, such as 1.5'],
  ['null', baseType('int4'), 'null is not a int4 as the API returns it, such as 1'],
  ['40000', baseType('int2'), '40000 is not a int2 as the API returns it, such as 1'],
  ['happy', MOOD, 'happy is not a mood as the API returns it, such as sad'],
  ['{a,b}', arrayOf(baseType('text')), '{a,b} is not a _text as the API returns it, such as ["text"]'],
  ['{a: 1}', baseType('jsonb'), '{a: 1} is not a jsonb as the API returns it, such as {}'],
  [
    '2025-03-01 12:00:00+00',
    baseType('timestamptz'),
    '2025-03-01 12:00:00+00 is not a timestamptz as the API returns it, such as 2025-03-01T12:00:00+00:00',
  ],
] satisfies readonly (readonly [string, DataType, string])[])('%j does not fit', (text, type, why) => {
  expect(read(text, type)).toEqual({ kind: 'invalid', why })
})

test('numbers that a JSON parser would round are rejected at any depth', () => {
  const why = expect.stringMatching(/ has more than 15 digits, which JSON parsers may not preserve$/)
  expect(read('1234567890123456789', baseType('int8'))).toEqual({ kind: 'invalid', why })
  expect(read('{"a": ["1234567890123456789", -0.1234567890123456]}', baseType('jsonb'))).toEqual({
    kind: 'invalid',
    why,
  })
  expect(read('1e999', baseType('numeric'))).toEqual({ kind: 'invalid', why })
  expect(read('{"a \\" 1234567890123456789": 120000000000000000000}', baseType('jsonb')).kind).toBe('value')
})

test('a very long example is rejected', () => {
  const longest = 'x'.repeat(EXAMPLE_CHARACTERS_MAX)
  expect(read(longest, baseType('text'))).toEqual({ kind: 'value', value: longest })
  const why = 'it has 4097 characters; the limit is 4096'
  expect(read(`${longest}x`, baseType('text'))).toEqual({ kind: 'invalid', why })
  expect(read(`"${longest}`, baseType('jsonb'))).toEqual({ kind: 'invalid', why })
})
