import { expect, test } from 'vitest'
import { createAllowance } from './allowance.ts'

/** How many of the queries requested every `everyMs` may run within a second. */
function usedIn(second: number, perSecond: number, everyMs: number): number {
  let at = 0
  const allowance = createAllowance(perSecond, () => at)
  const used: number[] = []
  for (; at < 5_000; at += everyMs) used.push(at + allowance.take('a'))
  return used.filter(time => time >= second * 1_000 && time < (second + 1) * 1_000).length
}

test('one owner gets a fixed number of queries per second, however often it requests them', () => {
  expect(usedIn(0, 100, 1)).toBe(109)
  for (const second of [1, 2, 3]) expect(usedIn(second, 100, 1)).toBe(100)
})

test('an owner below the limit never waits', () => {
  let at = 0
  const allowance = createAllowance(100, () => at)
  for (; at < 1_000; at += 10) expect(allowance.take('a')).toBe(0)
})

test('owners do not affect each other, and 0 means no limit', () => {
  const allowance = createAllowance(10, () => 0)
  expect([1, 2, 3].map(() => allowance.take('a'))).toEqual([0, 100, 200])
  expect(allowance.take('b')).toBe(0)
  const none = createAllowance(0, () => 0)
  expect([1, 2, 3].map(() => none.take('a'))).toEqual([0, 0, 0])
})
