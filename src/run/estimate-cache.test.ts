import { expect, test } from 'vitest'
import type { Estimate } from './estimate.ts'
import { createEstimateCache, ESTIMATE_TTL_MS } from './estimate-cache.ts'

const of = (cost: number, rows: number): Estimate => ({ cost, rows })

test('an estimate is cached for a minute by text and role', () => {
  let now = 5
  const estimates = createEstimateCache(() => now)
  estimates.keep('a', 'clerk', of(1, 2))
  expect(estimates.find('a', 'clerk')).toEqual(of(1, 2))
  expect(estimates.find('a', 'owner')).toBeUndefined()
  expect(estimates.find('b', 'clerk')).toBeUndefined()
  now += ESTIMATE_TTL_MS - 1
  expect(estimates.find('a', 'clerk')).toEqual(of(1, 2))
  now += 1
  expect(estimates.find('a', 'clerk')).toBeUndefined()
})

test('a second estimate keeps the larger numbers and does not extend the minute', () => {
  let now = 0
  const estimates = createEstimateCache(() => now)
  estimates.keep('a', 'clerk', of(10, 2))
  now += ESTIMATE_TTL_MS - 1
  estimates.keep('a', 'clerk', of(1, 3))
  expect(estimates.find('a', 'clerk')).toEqual(of(10, 3))
  now += 1
  expect(estimates.find('a', 'clerk')).toBeUndefined()
  estimates.keep('a', 'clerk', of(1, 1))
  expect(estimates.find('a', 'clerk')).toEqual(of(1, 1))
})

test('a role can have any name', () => {
  const estimates = createEstimateCache(() => 0)
  expect(estimates.find('a', '__proto__')).toBeUndefined()
  expect(estimates.find('a', 'constructor')).toBeUndefined()
  estimates.keep('a', '__proto__', of(1, 1))
  expect(estimates.find('a', '__proto__')).toEqual(of(1, 1))
  expect(estimates.find('a', 'constructor')).toBeUndefined()
})

test('the number and length of texts and roles are limited', () => {
  const estimates = createEstimateCache(() => 0)
  for (let n = 0; n <= 2_000; n++) estimates.keep(`text ${n}`, '', of(n, n))
  expect(estimates.find('text 0', '')).toBeUndefined()
  expect(estimates.find('text 1', '')).toEqual(of(1, 1))
  for (let n = 0; n <= 100; n++) estimates.keep('text 2', `role ${n}`, of(n, n))
  // The text's own first role is the oldest, then "role 0".
  expect(estimates.find('text 2', '')).toBeUndefined()
  expect(estimates.find('text 2', 'role 0')).toBeUndefined()
  expect(estimates.find('text 2', 'role 1')).toEqual(of(1, 1))
  estimates.keep('x'.repeat(128 * 1024), '', of(1, 1))
  expect(estimates.find('x'.repeat(128 * 1024), '')).toBeUndefined()
  estimates.keep('y', 'r'.repeat(257), of(1, 1))
  expect(estimates.find('y', 'r'.repeat(257))).toBeUndefined()
})
