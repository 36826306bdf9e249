import { expect, test } from 'vitest'
import { toArrayLiteral } from './array-text.ts'

test('an array has quoted texts with any characters, and nulls', () => {
  expect(toArrayLiteral(['a', null, 'NULL', '', '"\\\t\n'])).toBe('{"a",NULL,"NULL","","\\"\\\\\t\n"}')
})
