import { expect, test } from 'vitest'
import { createLoad, LATE_PROBES, LOOP_DELAY_MS_MAX } from './load.ts'

/** A load that receives a delay of the event loop of so many milliseconds each time. */
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

test('the process is overloaded after enough late probes, and no longer after one in time', () => {
  const { load, probe } = watched()
  expect(load.isTooHigh()).toBe(false)
  for (let i = 1; i < LATE_PROBES; i++) expect(probe(LOOP_DELAY_MS_MAX + 1)).toBe(false)
  expect(probe(LOOP_DELAY_MS_MAX + 1)).toBe(true)
  expect(probe(LOOP_DELAY_MS_MAX + 1)).toBe(true)
  expect(probe(0)).toBe(false)
})

test('a single pause of any length is not overload', () => {
  const { probe } = watched()
  expect([60_000, 0, 60_000, 60_000, 60_000, 60_000, 1].map(probe)).not.toContain(true)
})

test('a delay equal to the limit is not late', () => {
  const { probe } = watched()
  for (let i = 0; i < 100; i++) expect(probe(LOOP_DELAY_MS_MAX)).toBe(false)
})
