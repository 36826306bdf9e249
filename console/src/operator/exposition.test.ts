import { expect, test } from 'vitest'
import { bucketsOf, parseExposition, quantileBetween, sumOf } from './exposition.ts'

const TEXT = `# HELP a_total Help.
# TYPE a_total counter
a_total{method="GET",route="/api/{table}"} 3
a_total{method="POST",route="say \\"x\\""} 4
b 1.5
c_bucket{le="0.1"} 2
c_bucket{le="1"} 6
c_bucket{le="+Inf"} 8
d NaN
`

test('samples have labels and values', () => {
  const samples = parseExposition(TEXT)
  expect(samples[1]).toEqual({ name: 'a_total', labels: { method: 'POST', route: 'say "x"' }, value: 4 })
  expect([sumOf(samples, 'a_total'), sumOf(samples, 'a_total', { method: 'GET' }), sumOf(samples, 'b')]).toEqual([
    7, 3, 1.5,
  ])
  expect(sumOf(samples, 'none')).toBe(0)
})

test('a quantile is estimated within its bucket, over the requests since the last reading', () => {
  const after = bucketsOf(parseExposition(TEXT), 'c')
  const before = new Map([...after.keys()].map(bound => [bound, 0]))
  expect(quantileBetween(before, after, 0.5)).toBeCloseTo(0.1 + 0.9 * (2 / 4))
  expect(quantileBetween(before, after, 0.25)).toBeCloseTo(0.1)
  // Above the last bound only the bound is known.
  expect(quantileBetween(before, after, 0.99)).toBe(1)
  expect(quantileBetween(after, after, 0.5)).toBeNull()
})
