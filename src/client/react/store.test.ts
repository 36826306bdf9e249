/** Results that components share: one request, one subscription, and a limit on what is kept. */
import { expect, test, vi } from 'vitest'
import { createStore, type Readable } from './store.ts'

function readable(key: string, rows: () => Promise<readonly number[]> = async () => [1]) {
  const counts = { rows: 0, lives: 0, stops: 0 }
  let push: (rows: readonly number[]) => void = () => {}
  const read: Readable<number> = {
    key,
    rows() {
      counts.rows += 1
      return rows()
    },
    live(onRows) {
      counts.lives += 1
      push = onRows
      return () => {
        counts.stops += 1
      }
    },
  }
  return { read, counts, push: (now: readonly number[]) => push(now) }
}

test('reads with the same key share one request and one result', async () => {
  const store = createStore()
  const { read, counts } = readable('a')
  expect(store.get(read)).toEqual({ rows: undefined, error: null, isLoading: true })
  await Promise.all([store.load(read), store.load({ ...read })])
  await store.load(read)
  expect([counts.rows, store.get(read).rows]).toEqual([1, [1]])
  expect(store.get(read)).toBe(store.get({ ...read }))
  expect(store.dehydrate()).toEqual({ a: [1] })
})

test('a live read begins with the first component and ends with the last', () => {
  const store = createStore()
  const { read, counts, push } = readable('a')
  const seen: unknown[] = []
  const see = () => seen.push(store.get(read).rows)
  const ends = [store.observe(read, true, see), store.observe(read, true, see), store.observe(read, false, see)]
  push([2])
  expect([counts.lives, seen]).toEqual([1, [[2], [2], [2]]])
  ends[0]?.()
  ends[0]?.()
  expect(counts.stops).toBe(0)
  ends[1]?.()
  expect(counts.stops).toBe(1)
  push([3])
  expect(seen.at(-1)).toEqual([3])
  ends[2]?.()
})

test('an error keeps the rows, and the next read removes it', async () => {
  const answers = [async () => [1], async () => Promise.reject(new Error('away')), async () => [2]]
  const store = createStore()
  const { read } = readable('a', () => (answers.shift() ?? (async () => []))())
  await store.load(read)
  await store.reload(read)
  expect(store.get(read)).toEqual({ rows: [1], error: new Error('away'), isLoading: false })
  await store.reload(read)
  expect(store.get(read)).toEqual({ rows: [2], error: null, isLoading: false })
})

test('results that no component shows are removed after a minute, or the oldest at 200', () => {
  vi.useFakeTimers()
  try {
    const store = createStore(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, [n]])))
    expect(Object.keys(store.dehydrate())).toHaveLength(200)
    const shown = store.observe(readable('k299').read, false, () => {})
    vi.advanceTimersByTime(60_000)
    expect(store.dehydrate()).toEqual({ k299: [299] })
    shown()
    vi.advanceTimersByTime(60_000)
    expect(store.dehydrate()).toEqual({})
  } finally {
    vi.useRealTimers()
  }
})
