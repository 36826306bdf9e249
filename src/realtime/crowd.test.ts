import { expect, test } from 'vitest'
import { createCrowd } from './crowd.ts'

test('many busy groups of one owner slow down its own looks alone', () => {
  const crowd = createCrowd()
  let interval = 0
  for (let group = 0; group < 2_000; group++) interval = crowd.enter('a')
  expect(interval).toBe(2_000)
  expect(crowd.enter('b')).toBe(25)
  // Both have half of the looks.
  expect(crowd.enter('a')).toBe(4_002)
  for (let group = 0; group < 2_001; group++) crowd.leave('a')
  expect(crowd.enter('a')).toBe(25)
})

test('one busy group each of many owners share the looks', () => {
  const crowd = createCrowd()
  const intervals = Array.from({ length: 200 }, (_, owner) => crowd.enter(String(owner)))
  expect(intervals.at(-1)).toBe(200)
})
