import { expect, test } from 'vitest'
import { createChanges } from './changes.ts'

test('what was read before a change is out of date, and what is read after it is not', () => {
  const changes = createChanges()
  const orders = changes.of(1)
  const before = changes.now()
  expect(changes.areQuietSince(before, [orders])).toBe(true)
  changes.begin([1])()
  expect(changes.areQuietSince(before, [orders])).toBe(false)
  expect(changes.areQuietSince(changes.now(), [orders])).toBe(true)
})

test('while it is under way nothing is good, whenever it was read; until the last of several is over', () => {
  const changes = createChanges()
  const orders = changes.of(1)
  const [first, second] = [changes.begin([1]), changes.begin([1])]
  expect(changes.areQuietSince(changes.now(), [orders])).toBe(false)
  first()
  const between = changes.now()
  expect(changes.areQuietSince(between, [orders])).toBe(false)
  first()
  second()
  expect(changes.areQuietSince(between, [orders])).toBe(false)
  expect(changes.areQuietSince(changes.now(), [orders])).toBe(true)
})

test('other relations do not notice, but for whoever depends on any', () => {
  const changes = createChanges()
  const [orders, any] = [changes.of(1), changes.any]
  const end = changes.begin([2])
  expect(changes.areQuietSince(changes.now(), [orders])).toBe(true)
  expect(changes.areQuietSince(changes.now(), [any])).toBe(false)
  end()
  expect(changes.areQuietSince(changes.now(), [orders, any])).toBe(true)
})

test('a change of what cannot be told concerns everybody', () => {
  const changes = createChanges()
  const before = changes.now()
  const end = changes.begin(null)
  expect(changes.areQuietSince(changes.now(), [])).toBe(false)
  end()
  expect(changes.areQuietSince(before, [changes.of(1)])).toBe(false)
  expect(changes.areQuietSince(changes.now(), [changes.of(1)])).toBe(true)
})

test('a relation that is being changed is not forgotten', () => {
  const changes = createChanges()
  const quiet = changes.of(1)
  const end = changes.begin([2])
  changes.forget()
  expect(changes.of(1)).not.toBe(quiet)
  expect(changes.areQuietSince(changes.now(), [changes.of(2)])).toBe(false)
  end()
  expect(changes.areQuietSince(changes.now(), [changes.of(2)])).toBe(true)
})
