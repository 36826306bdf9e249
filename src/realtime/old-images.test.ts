import { expect, test, vi } from 'vitest'
import { createOldImageStore, OLD_IMAGES_CHARACTERS_MAX } from './old-images.ts'

const rows = (text: string) => new Map([['{"id": 1}', text]])

test('the result of a write and its notification are matched, whichever arrives first', async () => {
  const store = createOldImageStore(() => true)
  store.store('7', 'orders', rows('a'))
  expect(await store.of('7', 'orders')).toEqual(rows('a'))
  const waiting = store.of('8', 'orders')
  store.store('8', 'items', rows('other'))
  store.store('8', 'orders', rows('b'))
  expect(await waiting).toEqual(rows('b'))
})

test('a write that changed no row leaves nothing behind', async () => {
  const store = createOldImageStore(() => true)
  store.store('1', 'orders', new Map())
  // If it had been stored, it would be found immediately; so this waits until the end.
  const found = store.of('1', 'orders')
  store.close()
  expect(await found).toBeNull()
})

test('waiting for images ends after a limit', async () => {
  vi.useFakeTimers()
  const store = createOldImageStore(() => true)
  const never = store.of('9', 'orders')
  await vi.advanceTimersByTimeAsync(6_000)
  expect(await never).toBeNull()
  const closing = store.of('10', 'orders')
  store.close()
  expect(await closing).toBeNull()
})

test('the oldest images are dropped when there are too many', async () => {
  vi.useFakeTimers()
  const store = createOldImageStore(() => true)
  store.store('1', 'orders', rows('x'.repeat(OLD_IMAGES_CHARACTERS_MAX / 2)))
  store.store('2', 'orders', rows('y'.repeat(OLD_IMAGES_CHARACTERS_MAX / 2)))
  const first = store.of('1', 'orders')
  await vi.advanceTimersByTimeAsync(6_000)
  expect(await first).toBeNull()
  expect(await store.of('2', 'orders')).not.toBeNull()
})
