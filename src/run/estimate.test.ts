import { describe, expect, test } from 'vitest'
import { readEstimate } from './estimate.ts'

/** As PostgreSQL 18 writes it, shortened to what matters. */
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
  test('costs what its first node costs, and has the rows of its largest, below the limit', () => {
    expect(readEstimate(PAGE)).toEqual({ cost: 321.08, rows: 20_000 })
  })
  test('of one node', () => {
    const plan = '[{"Plan": {"Node Type": "Result", "Total Cost": 0.01, "Plan Rows": 1}}]'
    expect(readEstimate(plan)).toEqual({ cost: 0.01, rows: 1 })
  })
  test('may be as deep and as wide as PostgreSQL makes it', () => {
    let deep = '{"Plan Rows": 7}'
    for (let level = 0; level < 2_000; level++) deep = `{"Plan Rows": 1, "Plans": [${deep}]}`
    const wide = Array.from({ length: 200_000 }, () => '{"Plan Rows": 2}').join()
    expect(readEstimate(`[{"Plan": {"Total Cost": 3, "Plan Rows": 1, "Plans": [${deep}, ${wide}]}}]`)).toEqual({
      cost: 3,
      rows: 7,
    })
  })
})

// Seen of 240 joins without a condition; PostgreSQL has no check for it.
test.each(['NaN', 'Infinity', '-Infinity'])('%s, which is no JSON, is beyond every limit', figure => {
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

test('a figure that is missing is beyond every limit too', () => {
  expect(readEstimate('[{"Plan": {}}]')).toMatchObject({ cost: Number.MAX_VALUE, rows: Number.MAX_VALUE })
})

test('what is no plan is an error', () => {
  expect(() => readEstimate('[]')).toThrow('plan')
  expect(() => readEstimate('{')).toThrow()
})
