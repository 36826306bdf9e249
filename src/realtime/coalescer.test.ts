import { expect, test, vi } from 'vitest'
import { createCoalescer } from './coalescer.ts'

function record(intervalMs: number) {
  const made: string[] = []
  let merged = 0
  const calls = createCoalescer<string>(intervalMs, {
    now: () => performance.now(),
    run: value => made.push(value),
    runPostponed: value => made.push(`late ${value}`),
    onPostpone: () => merged++,
  })
  return { calls, made, merged: () => merged }
}

test('the first call runs immediately, and those within the interval become one call with the last value', () => {
  vi.useFakeTimers()
  try {
    const { calls, made, merged } = record(1_000)
    for (const value of ['a', 'b', 'c']) calls.call(value)
    expect(made).toEqual(['a'])
    expect(calls.postponed).toBe('c')
    vi.advanceTimersByTime(999)
    expect(made).toEqual(['a'])
    vi.advanceTimersByTime(1)
    expect(made).toEqual(['a', 'late c'])
    expect(calls.postponed).toBeNull()
    expect(merged()).toBe(2)
    calls.call('d')
    vi.advanceTimersByTime(1_000)
    expect(made).toEqual(['a', 'late c', 'late d'])
    vi.advanceTimersByTime(5_000)
    calls.call('e')
    expect(made.at(-1)).toBe('e')
    calls.call('f')
    calls.close()
    vi.advanceTimersByTime(5_000)
    expect(made.at(-1)).toBe('e')
  } finally {
    vi.useRealTimers()
  }
})

test('an interval of 0 coalesces nothing', () => {
  const { calls, made, merged } = record(0)
  for (const value of ['a', 'b']) calls.call(value)
  expect([made, merged()]).toEqual([['a', 'b'], 0])
})
