import { expect, test } from 'vitest'
import { shorten } from './shorten.ts'

test('short text is shown whole, long text by its beginning', () => {
  expect(shorten('a'.repeat(80))).toBe('a'.repeat(80))
  expect(shorten('a'.repeat(81))).toBe(`${'a'.repeat(80)}…`)
})

test('no character is cut in two', () => {
  expect(shorten(`${'a'.repeat(79)}\u{1f600}b`)).toBe(`${'a'.repeat(79)}…`)
  expect(shorten(`${'a'.repeat(78)}\u{1f600}b`)).toBe(`${'a'.repeat(78)}\u{1f600}…`)
})
