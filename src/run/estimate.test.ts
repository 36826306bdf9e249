import { describe, expect, test } from 'vitest'
import { readEstimate } from './estimate.ts'

/** The output of PostgreSQL 18, reduced to the relevant parts. */
const PAGE = `[
  {
    "Plan": {
      "Node Type": "Subquery Scan",
      "Total Cost": 321.08,
      "Plan Rows": 5,
      "Plans": [
        {
          "Node Type": "Limit",
          "Total Cost": 321.02,
          "Plan Rows": 5,
          "Plans": [
            {
              "Node Type": "Sort",
              "Total Cost": 326.01,
              "Plan Rows": 2000,
              "Sort Key": ["big.t"],
              "Plans": [
                {
                  "Node Type": "Seq Scan",
                  "Relation Name": "big",
                  "Total Cost": 287.79,
                  "Plan Rows": 20000
                },
                {
                  "Node Type": "Index Scan",
                  "Parent Relationship": "SubPlan",
                  "Total Cost": 2000000,
                  "Plan Rows": 1
                }
              ]
            }
          ]
        }
      ]
    }
  }
]`

describe('a plan', () => {
  test('has the cost of its first node and the rows of its largest node', () => {
    expect(readEstimate(PAGE)).toEqual({ cost: 321.08, rows: 20_000 })
  })
  test('can have a single node', () => {
    const plan = '[{"Plan": {"Node Type": "Result", "Total Cost": 0.01, "Plan Rows": 1}}]'
    expect(readEstimate(plan)).toEqual({ cost: 0.01, rows: 1 })
  })
  test('can have any depth and width', () => {
    let deep = '{"Plan Rows": 7}'
    for (let level = 0; level < 2_000; level++) deep = `{"Plan Rows": 1, "Plans": [${deep}]}`
    const wide = Array.from({ length: 200_000 }, () => '{"Plan Rows": 2}').join()
    expect(readEstimate(`[{"Plan": {"Total Cost": 3, "Plan Rows": 1, "Plans": [${deep}, ${wide}]}}]`)).toEqual({
      cost: 3,
      rows: 7,
    })
  })
})

// Observed for 240 joins without a condition; PostgreSQL does not prevent it.
test.each(['NaN', 'Infinity', '-Infinity'])('%s, which is not valid JSON, exceeds every limit', figure => {
  const plan = `[
  {
    "Plan": {
      "Node Type": "Nested Loop",
      "Total Cost": ${figure},
      "Plan Rows": 5,
      "Filter": "(a = ': NaN'::text)"
    }
  }
]`
  expect(readEstimate(plan)).toEqual({ cost: Number.MAX_VALUE, rows: 5 })
})

test('a missing number exceeds every limit', () => {
  expect(readEstimate('[{"Plan": {}}]')).toMatchObject({ cost: Number.MAX_VALUE, rows: Number.MAX_VALUE })
})

test('text that is not a plan is an error', () => {
  expect(() => readEstimate('[]')).toThrow('plan')
  expect(() => readEstimate('{')).toThrow()
})
