/** Patterns of a list: keys, and the values that each line requires. */
import { expect, test } from 'vitest'
import { createPatternSet } from './pattern.ts'

const set = (...patterns: readonly (readonly [key: string, ...values: (string | null)[]])[]) => {
  const made = createPatternSet()
  for (const [key, ...values] of patterns) made.add({ key, values })
  return made
}

test('an open position matches any value, a fixed one only its own', () => {
  const patterns = set(['a', null, 'x'])
  expect(patterns.has({ key: 'a', values: ['1', 'x'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: [null, 'x'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['1', 'y'] })).toBe(false)
  expect(patterns.has({ key: 'a', values: ['1', null] })).toBe(false)
  expect(patterns.has({ key: 'b', values: ['1', 'x'] })).toBe(false)
})

test('one matching line is enough, and lines are matched independently', () => {
  const patterns = set(['a', 'x', null], ['a', null, 'y'], ['a', 'z', 'z'])
  expect(patterns.has({ key: 'a', values: ['x', '1'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['1', 'y'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['z', 'z'] })).toBe(true)
  expect(patterns.has({ key: 'a', values: ['z', 'x'] })).toBe(false)
})

test('adjacent values are kept apart', () => {
  const patterns = set(['a', 'x","y', 'z'])
  expect(patterns.has({ key: 'a', values: ['x', 'y","z'] })).toBe(false)
  expect(patterns.has({ key: 'a', values: ['x","y', 'z'] })).toBe(true)
})

test('a duplicate line counts once', () => {
  expect(set(['a', null], ['a', null], ['a', 'x'], ['b']).size).toBe(3)
})
