import { expect, test } from 'vitest'
import { createChangeClock } from './change-clock.ts'

test('a result read before a change is stale, and one read after it is current', () => {
  const changes = createChangeClock()
  const orders = changes.of(1)
  const before = changes.now()
  expect(changes.areUnchangedSince(before, [orders])).toBe(true)
  changes.begin([1])()
  expect(changes.areUnchangedSince(before, [orders])).toBe(false)
  expect(changes.areUnchangedSince(changes.now(), [orders])).toBe(true)
})

test('every result is stale while a change is in progress, until the last of several has ended', () => {
  const changes = createChangeClock()
  const orders = changes.of(1)
  const [first, second] = [changes.begin([1]), changes.begin([1])]
  expect(changes.areUnchangedSince(changes.now(), [orders])).toBe(false)
  first()
  const between = changes.now()
  expect(changes.areUnchangedSince(between, [orders])).toBe(false)
  first()
  second()
  expect(changes.areUnchangedSince(between, [orders])).toBe(false)
  expect(changes.areUnchangedSince(changes.now(), [orders])).toBe(true)
})

test('a change affects other relations only through results that depend on unknown tables', () => {
  const changes = createChangeClock()
  const [orders, any] = [changes.of(1), changes.any]
  const end = changes.begin([2])
  expect(changes.areUnchangedSince(changes.now(), [orders])).toBe(true)
  expect(changes.areUnchangedSince(changes.now(), [any])).toBe(false)
  end()
  expect(changes.areUnchangedSince(changes.now(), [orders, any])).toBe(true)
})

test('a change of unknown relations affects every result', () => {
  const changes = createChangeClock()
  const before = changes.now()
  const end = changes.begin(null)
  expect(changes.areUnchangedSince(changes.now(), [])).toBe(false)
  end()
  expect(changes.areUnchangedSince(before, [changes.of(1)])).toBe(false)
  expect(changes.areUnchangedSince(changes.now(), [changes.of(1)])).toBe(true)
})

test('a relation that is being changed is not dropped', () => {
  const changes = createChangeClock()
  const quiet = changes.of(1)
  const end = changes.begin([2])
  changes.forget()
  expect(changes.of(1)).not.toBe(quiet)
  expect(changes.areUnchangedSince(changes.now(), [changes.of(2)])).toBe(false)
  end()
  expect(changes.areUnchangedSince(changes.now(), [changes.of(2)])).toBe(true)
})
