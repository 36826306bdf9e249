import { expect, test } from 'vitest'
import { EVERYTHING, type View } from '../../access/rights.ts'
import type { Catalog } from '../../catalog/model.ts'
import { createRemembered, forgetful, REQUEST_CHARACTERS_MAX } from './remembered.ts'

const catalog = {} as Catalog
const everybody: View = { catalog, rights: EVERYTHING }

/** How often it was worked out. */
function counting() {
  let times = 0
  return { make: () => ({ times: ++times }), times: () => times }
}

test('the same request of callers with the same rights is worked out once', () => {
  const remembered = createRemembered()
  const { make, times } = counting()
  expect(remembered.of(everybody, '/api/a?x=1', make)).toBe(remembered.of(everybody, '/api/a?x=1', make))
  remembered.of(everybody, '/api/a?x=2', make)
  remembered.of({ catalog, rights: { ...EVERYTHING, key: 'others' } }, '/api/a?x=1', make)
  remembered.of({ catalog: {} as Catalog, rights: EVERYTHING }, '/api/a?x=1', make)
  expect(times()).toBe(4)
})

test('what is refused is refused again', () => {
  const remembered = createRemembered()
  const refuse = () => {
    throw new Error('no')
  }
  expect(() => remembered.of(everybody, '/api/a', refuse)).toThrow('no')
  const { make, times } = counting()
  remembered.of(everybody, '/api/a', make)
  expect(times()).toBe(1)
})

test('there is an end to how many, and to how long', () => {
  const remembered = createRemembered()
  const { make, times } = counting()
  const long = 'x'.repeat(REQUEST_CHARACTERS_MAX + 1)
  for (let i = 0; i < 2; i++) remembered.of(everybody, long, make)
  expect(times()).toBe(2)
  for (let i = 0; i < 5_000; i++) remembered.of(everybody, `/api/a/${i}`, make)
  remembered.of(everybody, '/api/a/4999', make)
  expect(times()).toBe(5_002)
  remembered.of(everybody, '/api/a/0', make)
  expect(times()).toBe(5_003)
})

test('who does not remember works it out each time', () => {
  const { make, times } = counting()
  const forgets = forgetful()
  for (let i = 0; i < 3; i++) forgets.of(everybody, '/api/a', make)
  expect(times()).toBe(3)
})
