import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DURATION_BOUNDS, Durations, QUANTILES } from './durations.ts'

const MINUTE = 60_000

/** The quantiles at `now`, in order. */
const recent = (durations: Durations, now: number) => [...durations.quantiles(now).quantiles.values()]

test('a duration falls in the bucket whose bound it does not exceed', () => {
  const durations = new Durations([1, 2])
  for (const seconds of [0, 1, 1.001, 2, 2.001, 1e9]) durations.record(seconds, 0)
  expect([...Array.from(durations.buckets().counts)]).toEqual([2, 2, 2])
  expect(durations.buckets().sum).toBeCloseTo(6.002 + 1e9)
})

describe('quantiles', () => {
  test('are NaN without measurements', () => {
    expect(recent(new Durations(), 0)).toEqual([Number.NaN, Number.NaN, Number.NaN])
  })
  test('are interpolated within a bucket as in PromQL', () => {
    const durations = new Durations([1, 2, 4])
    for (let n = 0; n < 50; n++) durations.record(0.5, 0)
    for (let n = 0; n < 50; n++) durations.record(3, 0)
    expect(recent(durations, 0)).toEqual([1, 2 + (2 * 45) / 50, 2 + (2 * 49) / 50])
  })
  test('are the highest bound for longer durations', () => {
    const durations = new Durations([1, 2])
    durations.record(100, 0)
    expect(recent(durations, 0)).toEqual([2, 2, 2])
  })
  test('cover the last minutes, while sum and count cover all time', () => {
    const durations = new Durations([1, 2, 4])
    durations.record(3, 0)
    expect(recent(durations, 5 * MINUTE - 1)[0]).toBe(3)
    durations.record(0.5, 5 * MINUTE)
    expect(recent(durations, 5 * MINUTE)[0]).toBe(0.5)
    expect(durations.quantiles(5 * MINUTE)).toMatchObject({ sum: 3.5, count: 2 })
    expect(recent(durations, 10 * MINUTE)[0]).toBeNaN()
  })
  test('quantiles are correct for a clock that starts late, pauses or stops', () => {
    const durations = new Durations([1, 2])
    durations.record(0.5, 1e9 * MINUTE)
    durations.record(1.5, 2e9 * MINUTE)
    durations.record(1.5, 2e9 * MINUTE)
    expect(recent(durations, 2e9 * MINUTE)[0]).toBe(1.5)
  })
})

test('for any sequence the buckets count all durations, and the quantiles only recent ones', () => {
  const measured = fc.record({
    seconds: fc.double({ min: 0, max: 100, noNaN: true }),
    afterMs: fc.integer({ min: 0, max: 3 * MINUTE }),
  })
  fc.assert(
    fc.property(fc.array(measured, { minLength: 1, maxLength: 60 }), list => {
      const durations = new Durations()
      let now = 0
      const all = list.map(({ seconds, afterMs }) => {
        now += afterMs
        durations.record(seconds, now)
        return { seconds, at: now }
      })
      const { counts } = durations.buckets()
      expect(Array.from(counts).reduce((sum, count) => sum + count, 0)).toBe(all.length)
      // The exact quantile is in the bucket of the estimate.
      const kept = all.filter(({ at }) => Math.floor(at / MINUTE) > Math.floor(now / MINUTE) - 5)
      const sorted = kept.map(({ seconds }) => seconds).sort((a, b) => a - b)
      for (const [index, quantile] of QUANTILES.entries()) {
        const exact = sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? 0
        const upper = DURATION_BOUNDS.find(bound => exact <= bound) ?? 30
        const lower = exact > 30 ? 30 : (DURATION_BOUNDS[DURATION_BOUNDS.indexOf(upper) - 1] ?? 0)
        const estimate = recent(durations, now)[index] ?? Number.NaN
        expect(estimate).toBeGreaterThanOrEqual(lower)
        expect(estimate).toBeLessThanOrEqual(upper)
      }
    }),
  )
})
