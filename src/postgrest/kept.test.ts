/** docs/reference/limits.md#requests-in-postgrests-dialect: cached results of parsing. */
import { expect, test } from 'vitest'
import { createKept, KEPT_CHARACTERS_MAX, KEPT_MAX, keptByText } from './kept.ts'

test('the result of a text is made once', () => {
  const keep = createKept<{ readonly of: string }>()
  const made = keep('a', () => ({ of: 'first' }))
  expect(keep('a', () => ({ of: 'second' }))).toBe(made)
  expect(keep('b', () => ({ of: 'other' }))).toEqual({ of: 'other' })
})

test('a failure is not kept', () => {
  const keep = createKept<{ readonly of: string }>()
  expect(() => keep('a', fail)).toThrow('invalid')
  expect(keep('a', () => ({ of: 'valid' }))).toEqual({ of: 'valid' })
})

test('the least recently used result is discarded above the limit', () => {
  const made: string[] = []
  const of = keptByText(text => ({ text, n: made.push(text) }))
  for (let n = 0; n < KEPT_MAX; n++) of(`text ${n}`)
  of('text 0')
  of('one more')
  expect(made).toHaveLength(KEPT_MAX + 1)
  of('text 0')
  expect(made).toHaveLength(KEPT_MAX + 1)
  of('text 1')
  expect(made).toHaveLength(KEPT_MAX + 2)
})

test('the result of a long text is not kept', () => {
  const made: string[] = []
  const of = keptByText(text => ({ text, n: made.push(text) }))
  const longest = 'x'.repeat(KEPT_CHARACTERS_MAX)
  for (const text of [longest, longest, `${longest}x`, `${longest}x`]) of(text)
  expect(made.map(text => text.length)).toEqual([KEPT_CHARACTERS_MAX, KEPT_CHARACTERS_MAX + 1, KEPT_CHARACTERS_MAX + 1])
})

function fail(): never {
  throw new Error('invalid')
}
