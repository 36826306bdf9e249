/** The time that the server takes for each request, from responses that arrive together and are read late. */
import { expect, test } from 'vitest'
import { type Measured, ServiceTimes } from './service-times.ts'

function request(latencyKey: string, expectedMs = 1) {
  return { latencyKey, expectedMs }
}

/** The responses of one chunk, which arrived at `now`. */
function read(times: ServiceTimes, now: number, keys: readonly string[], isIdle: boolean): readonly Measured[] {
  for (const key of keys) times.finished(request(key), now)
  return times.chunkRead(isIdle)
}

function started(): ServiceTimes {
  const times = new ServiceTimes()
  times.begin(100)
  return times
}

test('a single request takes from its sending to its response', () => {
  expect(read(started(), 100.5, ['a'], true)).toEqual([{ latencyKey: 'a', ms: 0.5 }])
})

test('requests that are answered together share the time', () => {
  const measured = read(started(), 103, ['a', 'a', 'a'], true)
  expect(measured).toEqual(Array(3).fill({ latencyKey: 'a', ms: 1 }))
})

test('they share it in proportion to what was expected', () => {
  const times = started()
  times.finished(request('fast', 0.1), 101)
  times.finished(request('slow', 0.9), 101)
  expect(times.chunkRead(true)).toEqual([
    { latencyKey: 'fast', ms: expect.closeTo(0.1) },
    { latencyKey: 'slow', ms: expect.closeTo(0.9) },
  ])
})

test('responses that had waited to be read do not make their requests look fast', () => {
  const times = started()
  // The reader was late: both chunks had arrived when it read the first.
  expect(read(times, 101.9, ['a', 'a'], false)).toEqual([])
  expect(read(times, 102.1, ['a', 'a', 'a', 'a', 'a'], false)).toEqual(
    Array(7).fill({ latencyKey: 'a', ms: expect.closeTo(0.3) }),
  )
  expect(read(times, 102.2, ['a', 'a', 'a'], true)).toEqual([])
})

test('a window of a busy server that is too short gives no estimate', () => {
  const times = started()
  expect(read(times, 102, ['a'], false)).toHaveLength(1)
  expect(read(times, 102.1, ['b', 'b', 'b'], true)).toEqual([])
})

test('a response that is clearly late is slow itself, not those before and after it', () => {
  const times = started()
  expect(read(times, 100.5, ['a'], false)).toEqual([])
  expect(read(times, 121, ['slow', 'a'], false)).toEqual([
    { latencyKey: 'a', ms: 0.5 },
    { latencyKey: 'slow', ms: 20.5 },
  ])
  expect(read(times, 123, ['a'], true)).toEqual([
    { latencyKey: 'a', ms: 1 },
    { latencyKey: 'a', ms: 1 },
  ])
})

test('the time in which the server had nothing to do does not count', () => {
  const times = started()
  read(times, 101, ['a'], true)
  times.begin(150)
  expect(read(times, 150.2, ['a'], true)).toEqual([{ latencyKey: 'a', ms: expect.closeTo(0.2) }])
})

test('a response that is read at the pace of its reader is not measured', () => {
  const times = started()
  times.discard(900)
  expect(times.chunkRead(false)).toEqual([])
  expect(read(times, 903, ['a', 'a'], true)).toEqual(Array(2).fill({ latencyKey: 'a', ms: 1.5 }))
})

test('requests without an estimate share the time equally', () => {
  const times = started()
  for (const key of ['a', 'b']) times.finished(request(key, 0), 102)
  expect(times.chunkRead(true).map(({ ms }) => ms)).toEqual([1, 1])
})
