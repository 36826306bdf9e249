import { expect, test } from 'vitest'
import { createLoad, DELAY_MS_MAX, LATE_PROBES } from './load.ts'

/** A load that is told of an event loop that comes so many milliseconds late each time. */
function watched() {
  const load = createLoad()
  return {
    load,
    probe(lateMs: number) {
      load.report(lateMs)
      return load.isTooHigh()
    },
  }
}

test('it is too high once the event loop was late so often, and not when it is in time again', () => {
  const { load, probe } = watched()
  expect(load.isTooHigh()).toBe(false)
  for (let i = 1; i < LATE_PROBES; i++) expect(probe(DELAY_MS_MAX + 1)).toBe(false)
  expect(probe(DELAY_MS_MAX + 1)).toBe(true)
  expect(probe(DELAY_MS_MAX + 1)).toBe(true)
  expect(probe(0)).toBe(false)
})

test('a pause, however long, is no load', () => {
  const { probe } = watched()
  expect([60_000, 0, 60_000, 60_000, 60_000, 60_000, 1].map(probe)).not.toContain(true)
})

test('a delay of the limit itself is bearable', () => {
  const { probe } = watched()
  for (let i = 0; i < 100; i++) expect(probe(DELAY_MS_MAX)).toBe(false)
})
