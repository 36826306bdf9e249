import { expect, test } from 'vitest'
import { createSlowRequests, SLOW_REQUEST_MS_MAX, SLOW_REQUESTS_MAX } from './slow-requests.ts'

test('the slowest shapes are listed, each with its slowest request', () => {
  const slow = createSlowRequests(() => 5)
  slow.note(10, 8, () => 'GET /api/a')
  slow.note(30, 20, () => 'GET /api/b')
  slow.note(20, 9, () => 'GET /api/a')
  slow.note(15, 1, () => 'GET /api/a')
  expect(slow.list()).toEqual([
    { request: 'GET /api/b', durationMs: 30, databaseMs: 20, at: 5 },
    { request: 'GET /api/a', durationMs: 20, databaseMs: 9, at: 5 },
  ])
})

test('a request that is faster than all of a full list is not printed', () => {
  const slow = createSlowRequests(() => 0)
  for (let index = 0; index < SLOW_REQUESTS_MAX + 5; index++) slow.note(100 + index, null, () => `GET /api/t${index}`)
  expect(slow.list()).toHaveLength(SLOW_REQUESTS_MAX)
  expect(slow.list().at(-1)?.durationMs).toBe(105)
  slow.note(50, null, () => {
    throw new Error('the shape of a fast request must not be printed')
  })
})

test('a request is removed after some minutes', () => {
  let now = 0
  const slow = createSlowRequests(() => now)
  slow.note(10, null, () => 'GET /api/a')
  now = SLOW_REQUEST_MS_MAX + 1
  expect(slow.list()).toEqual([])
})
