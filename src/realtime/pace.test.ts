import { expect, test, vi } from 'vitest'
import { BURST, createPace, RATE } from './pace.ts'

test('a burst is taken, then as many as come in a second; what is paused for another reason stays so', () => {
  vi.useFakeTimers()
  let reading = true
  const link = {
    pause: () => {
      reading = false
    },
    resume: () => {
      reading = true
    },
  }
  const pace = createPace(link, () => performance.now())
  for (let n = 0; n < BURST; n++) pace.took()
  expect(reading).toBe(true)
  // Some were on their way already.
  for (let n = 0; n < RATE; n++) pace.took()
  expect(reading).toBe(false)
  vi.advanceTimersByTime(900)
  expect(reading).toBe(false)
  vi.advanceTimersByTime(200)
  expect(reading).toBe(true)

  pace.pause()
  for (let n = 0; n < BURST; n++) pace.took()
  vi.advanceTimersByTime(10_000)
  expect(reading).toBe(false)
  pace.resume()
  expect(reading).toBe(true)
})
