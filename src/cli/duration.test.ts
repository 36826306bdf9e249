import { expect, test } from 'vitest'
import { parseDuration } from './duration.ts'

test.each([
  ['30s', 30],
  ['15m', 900],
  ['1h', 3_600],
  ['7d', 604_800],
  ['3650d', 315_360_000],
])('a duration is parsed to seconds: %s', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds)
})

test.each(['', '1', 'h', '0s', '-1h', '1.5h', '1 h', '1H', '1w', '3651d', '9999999999s', '1h30m'])(
  '%j is not a duration',
  text => {
    expect(parseDuration(text)).toBe(null)
  },
)
