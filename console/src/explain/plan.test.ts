import { expect, test } from 'vitest'
import { figuresOf, mostRows, shareOfRows } from './plan.ts'

test('a node has its rows and time over all loops', () => {
  const node = {
    ...{ 'Node Type': 'Index Scan', 'Relation Name': 'orders', 'Index Name': 'orders_pkey', Filter: '(a > 1)' },
    ...{ 'Plan Rows': 1, 'Actual Rows': 2, 'Actual Loops': 3, 'Actual Total Time': 0.5, 'Rows Removed by Filter': 4 },
  }
  expect(figuresOf(node)).toEqual({
    title: 'Index Scan · orders · orders_pkey',
    conditions: [['Filter', '(a > 1)']],
    ...{ estimated: 3, actual: 6, removed: 12, ms: 1.5, isMisestimated: false },
  })
})

test.each([
  [100, 9, true],
  [9, 100, true],
  [1, 0, false],
  [50, 100, false],
])('an estimate of %i rows where there are %i', (estimated, actual, isMisestimated) => {
  expect(figuresOf({ 'Plan Rows': estimated, 'Actual Rows': actual, 'Actual Loops': 1 })).toMatchObject({
    isMisestimated,
  })
})

test('a plan that was not executed has estimates only', () => {
  expect(figuresOf({ 'Node Type': 'Seq Scan', 'Plan Rows': 5 })).toMatchObject({ estimated: 5, actual: null, ms: null })
})

test('the bars of a plan have one scale, on which a factor has the same length everywhere', () => {
  const leaf = { 'Plan Rows': 9, 'Actual Rows': 99, 'Actual Loops': 1 }
  expect(mostRows({ 'Plan Rows': 999, 'Actual Rows': 1, 'Actual Loops': 1, Plans: [leaf, leaf] })).toBe(999)
  expect(mostRows({})).toBe(0)
  expect([0, 9, 99, 999].map(rows => Number(shareOfRows(rows, 999).toFixed(6)))).toEqual([0, 0.333333, 0.666667, 1])
  expect(shareOfRows(0, 0)).toBe(0)
})
