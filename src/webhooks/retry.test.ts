/**
 * docs/guides/webhooks.md#retries-and-order: 1 s · 2^(n−1), at most an hour, ± 20 %;
 * `Retry-After` is honored.
 */
import { expect, test } from 'vitest'
import { delayBefore, parseRetryAfter } from './retry.ts'

test('delays double, up to an hour', () => {
  const middle = (n: number) => delayBefore(n, 0.5, null)
  expect([1, 2, 3, 4, 5, 12, 13, 20].map(middle)).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 2_048_000, 3_600_000, 3_600_000,
  ])
})

test('jitter is at most a fifth, and the result never exceeds an hour', () => {
  expect([0, 0.25, 0.75, 1].map(random => delayBefore(1, random, null))).toEqual([800, 900, 1_100, 1_200])
  expect(delayBefore(20, 1, null)).toBe(3_600_000)
})

test('Retry-After can only lengthen the delay, up to an hour', () => {
  expect(delayBefore(1, 0.5, 30_000)).toBe(30_000)
  expect(delayBefore(6, 0.5, 1_000)).toBe(32_000)
  expect(delayBefore(1, 0.5, 1e12)).toBe(3_600_000)
})

test('Retry-After is a number of seconds or a date', () => {
  const now = Date.UTC(2026, 0, 1)
  expect(parseRetryAfter('120', now)).toBe(120_000)
  expect(parseRetryAfter(' 0 ', now)).toBe(0)
  expect(parseRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now)).toBe(60_000)
  expect(parseRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now)).toBe(0)
})

test.each([null, '', '-1', '1.5', 'soon', '99999999999', '2026-01-01', 'Thu, 99 Jan 2026 00:01:00 GMT'])(
  'Retry-After: %s is ignored',
  header => {
    expect(parseRetryAfter(header, 0)).toBeNull()
  },
)
