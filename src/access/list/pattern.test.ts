/** What a list compares: keys, and in each line the places that it fills. */
import { expect, test } from 'vitest'
import { createPatternSet } from './pattern.ts'

const set = (...patterns: readonly (readonly [key: string, ...values: (string | null)[]])[]) => {
  const made = createPatternSet()
  for (const [key, ...values] of patterns) made.add({ key, values })
  return made
}

test('an open place takes anything, a filled one only its value', () => {
  const patterns = set(['a', null, 'x'])
  expect(patterns.has({ key: 'a', values: ['1', 'x'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: [null, 'x'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['1', 'y'] })).toBe(false)
  expect(patterns.has({ key: 'a', values: ['1', null] })).toBe(false)
  expect(patterns.has({ key: 'b', values: ['1', 'x'] })).toBe(false)
})

test('one of several lines is enough, each judged alone', () => {
  const patterns = set(['a', 'x', null], ['a', null, 'y'], ['a', 'z', 'z'])
  expect(patterns.has({ key: 'a', values: ['x', '1'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['1', 'y'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['z', 'z'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['z', 'x'] })).toBe(false)
})

test('values do not run into each other', () => {
  const patterns = set(['a', 'x","y', 'z'])
  expect(patterns.has({ key: 'a', values: ['x', 'y","z'] })).toBe(false)
  expect(patterns.has({ key: 'a', values: ['x","y', 'z'] })).toBe(true)
})

test('the same line twice is one', () => {
  expect(set(['a', null], ['a', null], ['a', 'x'], ['b']).size).toBe(3)
})
