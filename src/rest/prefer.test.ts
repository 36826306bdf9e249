/**
 * RFC 7240, 2: preferences are a list, possibly over several lines; names and values are case-insensitive,
 * and the first value of a name applies.
 */
import { describe, expect, test } from 'vitest'
import { preferencesOf } from './prefer.ts'

const returned = (prefer: string | string[]) => preferencesOf({ prefer } as { prefer: string }).returned

describe('return', () => {
  test.each([
    ['return=minimal', 'minimal'],
    ['return=representation', 'representation'],
    ['RETURN = "Minimal" ; a=b', 'minimal'],
    ['respond-async, return=minimal', 'minimal'],
    ['return=minimal, return=representation', 'minimal'],
    ['return=representation, return=minimal', 'representation'],
    ['return=representation;x=1,return="minimal"', 'representation'],
    ['wait=1, return=representation, count=exact, return=minimal', 'representation'],
    ['return', null],
    ['minimal', null],
    ['x-return=minimal', null],
    ['wait=return=minimal', null],
    ['', null],
  ])('the preference is parsed: %s', (prefer, expected) => {
    expect(returned(prefer)).toBe(expected)
  })
  test('two header lines form one list', () => {
    expect(returned(['return=representation', 'return=minimal'])).toBe('representation')
    expect(returned(['return=minimal', 'return=representation'])).toBe('minimal')
  })
  test('is null for both preferences without the header', () => {
    expect(preferencesOf({})).toEqual({ total: false, returned: null, continues: false, strong: false })
  })
})

test.each([
  ['count=exact', true],
  ['return=minimal, Count="Exact"', true],
  ['count=estimated', false],
  ['recount=exact', false],
  ['count', false],
])('the count preference is parsed: %s', (prefer, total) => {
  expect(preferencesOf({ prefer } as { prefer: string }).total).toBe(total)
})
