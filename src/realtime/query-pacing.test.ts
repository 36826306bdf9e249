import { expect, test } from 'vitest'
import { createQueryPacing } from './query-pacing.ts'

test("many busy groups of one owner slow down only that owner's queries", () => {
  const crowd = createQueryPacing()
  let interval = 0
  for (let group = 0; group < 2_000; group++) interval = crowd.enter('a')
  expect(interval).toBe(2_000)
  expect(crowd.enter('b')).toBe(25)
  // Each owner has half of the queries.
  expect(crowd.enter('a')).toBe(4_002)
  for (let group = 0; group < 2_001; group++) crowd.leave('a')
  expect(crowd.enter('a')).toBe(25)
})

test('owners with one busy group each share the queries equally', () => {
  const crowd = createQueryPacing()
  const intervals = Array.from({ length: 200 }, (_, owner) => crowd.enter(String(owner)))
  expect(intervals.at(-1)).toBe(200)
})
