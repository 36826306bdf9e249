import { expect, test } from 'vitest'
import { callerKey, createBudget } from './budget.ts'

test('a holder can take more until its share is used up, without affecting others', () => {
  const budget = createBudget<string>({ max: 100, shareMax: 50 })
  budget.take('a', 49)
  expect(budget.exceeded('a')).toBe(null)
  budget.take('a', 1)
  expect(budget.exceeded('a')).toBe('share')
  expect(budget.exceeded('b')).toBe(null)
  budget.give('a', 1)
  expect(budget.exceeded('a')).toBe(null)
})

test('the total limits all holders together, including those without a share', () => {
  const budget = createBudget<number>({ max: 100, shareMax: 50 })
  budget.take(1, 40)
  budget.take(2, 40)
  budget.take(null, 20)
  expect([budget.exceeded(3), budget.exceeded(null), budget.taken]).toEqual(['total', 'total', 100])
  budget.give(null, 20)
  expect([budget.exceeded(3), budget.exceeded(null), budget.taken]).toEqual([null, null, 80])
})

test('0 disables a limit', () => {
  const unlimited = createBudget<string>({ max: 0, shareMax: 0 })
  unlimited.take('a', 1e12)
  expect(unlimited.exceeded('a')).toBe(null)
  const shared = createBudget<string>({ max: 0, shareMax: 1 })
  shared.take('a', 1e12)
  expect([shared.exceeded('a'), shared.exceeded('b')]).toEqual(['share', null])
})

test('amounts that are counted elsewhere are included', () => {
  const budget = createBudget<string>({ max: 100, shareMax: 50 })
  budget.take('a', 30)
  expect([budget.takenBy('a'), budget.takenBy('b'), budget.takenBy(null)]).toEqual([30, 0, 0])
  expect([budget.exceeded('a', 19, 69), budget.exceeded('a', 20, 20), budget.exceeded('a', 0, 70)]).toEqual([
    null,
    'share',
    'total',
  ])
})

test('rejections are counted by limit', () => {
  const budget = createBudget<string>({ max: 1, shareMax: 1 })
  budget.refuse('share')
  budget.refuse('share')
  budget.refuse('total')
  expect(budget.refusals).toEqual({ share: 2, total: 1 })
})

test('a user is not counted as the tenant with the same name', () => {
  const keys = [
    { tenantId: 'ann', userId: 'bob' },
    { tenantId: 'ann', userId: 'eve' },
    { tenantId: '', userId: 'ann' },
    { tenantId: '', userId: '' },
  ].map(callerKey)
  expect(keys[0]).toBe(keys[1])
  expect(new Set(keys).size).toBe(3)
})
