/** Decisions 7: a read is refused above a limit, and what is told of it says so. */
import { expect, test } from 'vitest'
import { roundedBeside } from './figure.ts'

test.each([
  // value, limit, told
  [12_345, 100, 12_000],
  [1_004, 1_000, 1_100],
  [1_049, 1_045, 1_100],
  [9_980, 9_970, 10_000],
  [100.4, 100, 110],
  [1.02, 1, 1.1],
  [0.0104, 0.01, 0.011],
  // Not above: another figure is what it was refused for.
  [999, 999, 990],
  [1_010, 1_000, 1_100],
  [104, 104, 100],
  [96, 95.5, 96],
  [105, 106, 100],
  [0, 10, 0],
  [5, Number.POSITIVE_INFINITY, 5],
])('%d by a limit of %d is %d', (value, limit, told) => {
  expect(roundedBeside(value, limit)).toBe(told)
  expect(told > limit).toBe(value > limit)
})
