/** JSON inside a query ends where JSON.parse ends, and is valid if JSON.parse accepts it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scanJson } from './scan.ts'

const DEPTH_MAX = 64

/** Objects and arrays without what jsonb rejects: NUL and unpaired surrogates. */
const values = fc
  .jsonValue()
  .filter(value => typeof value === 'object' && value !== null && !/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(value)))

test('finds the end of every value, whatever follows', () => {
  fc.assert(
    fc.property(
      values,
      fc.constantFrom('', ' ', ')', ', 1', ']', 'x'),
      fc.constantFrom(undefined, 1),
      (value, tail, indent) => {
        const text = JSON.stringify(value, null, indent)
        expect(scanJson(`a = ${text}${tail}`, 4, DEPTH_MAX)).toMatchObject({ end: 4 + text.length })
      },
    ),
  )
})

test('accepts and rejects the same texts as JSON.parse', () => {
  const edited = fc
    .tuple(values, fc.nat(), fc.constantFrom('', ',', '"', '\\', '{', ']', '0', ' ', 'e', 'tru'))
    .map(([value, at, put]) => {
      const text = JSON.stringify(value)
      const start = at % text.length
      return `${text.slice(0, start)}${put}${text.slice(start + 1)}`
    })
  fc.assert(
    fc.property(
      edited.filter(text => /^[[{]/.test(text)),
      text => {
        const { end, failedAt } = scanJson(text, 0, DEPTH_MAX)
        if (end === null) {
          expect(failedAt).toBeLessThanOrEqual(text.length)
          expect(() => JSON.parse(text)).toThrow()
        } else JSON.parse(text.slice(0, end))
      },
    ),
    { numRuns: 1000 },
  )
})

describe('texts that jsonb rejects', () => {
  test.each([
    String.raw`{"a": "\u0000"}`,
    String.raw`["\ud800"]`,
    String.raw`["\udc00\ud800"]`,
    '["\n"]',
    '["\ud800"]',
  ])('%j', text => {
    expect(scanJson(text, 0, DEPTH_MAX).end).toBeNull()
  })

  test('a complete surrogate pair is accepted', () => {
    expect(scanJson(String.raw`["\ud83d\ude42", "🙂"]`, 0, DEPTH_MAX).end).toBe(22)
  })
})

test('nesting is accepted up to the limit', () => {
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
  expect(scanJson(nested(DEPTH_MAX), 0, DEPTH_MAX).end).toBe(2 * DEPTH_MAX)
  expect(scanJson(nested(DEPTH_MAX + 1), 0, DEPTH_MAX)).toMatchObject({ end: null, failedAt: DEPTH_MAX })
})

test('reports the brackets that are open where it stops', () => {
  expect(scanJson('[1, [2], [3, x]]', 0, DEPTH_MAX)).toMatchObject({ end: null, failedAt: 13, unclosed: [0, 9] })
  expect(scanJson('[1, {"a": 1}]', 0, DEPTH_MAX)).toMatchObject({ end: 13, hasObject: true })
})
