import { expect, test } from 'vitest'
import { Digits, parseJson, printJson } from './json.ts'

// Node 20 does not pass the source of a number to a reviver; browsers do.
const keepsSource = JSON.parse('1', (_name, _value, ...[context]: { source?: string }[]) => context?.source) === '1'

test.skipIf(!keepsSource)('numbers keep every digit', () => {
  const text = '{"id":9007199254740993,"price":12.50,"tags":["a",1],"big":1e400}'
  const parsed = parseJson(text)
  expect(parsed).toMatchObject({ price: new Digits('12.50'), tags: ['a', 1] })
  expect(printJson(parsed)).toBe(text)
})

test('numbers that JavaScript represents exactly stay numbers, and strings stay strings', () => {
  expect(parseJson('[1, -2.5, "12.50", true, null]')).toEqual([1, -2.5, '12.50', true, null])
})

test('a text that looks like a number with digits is printed as a text', () => {
  expect(printJson(['12.50', 'digits:1', new Digits('12.50')])).toBe('["12.50","digits:1",12.50]')
})
