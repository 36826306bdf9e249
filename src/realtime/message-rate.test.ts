import { expect, test, vi } from 'vitest'
import { createMessageRate, MESSAGE_BURST, MESSAGE_RATE } from './message-rate.ts'

test('a burst is accepted and then a number of messages per second, and a pause for another reason persists', () => {
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
  const pace = createMessageRate(link, () => performance.now())
  for (let n = 0; n < MESSAGE_BURST; n++) pace.count()
  expect(reading).toBe(true)
  // Some were already in flight.
  for (let n = 0; n < MESSAGE_RATE; n++) pace.count()
  expect(reading).toBe(false)
  vi.advanceTimersByTime(900)
  expect(reading).toBe(false)
  vi.advanceTimersByTime(200)
  expect(reading).toBe(true)

  pace.pause()
  for (let n = 0; n < MESSAGE_BURST; n++) pace.count()
  vi.advanceTimersByTime(10_000)
  expect(reading).toBe(false)
  pace.resume()
  expect(reading).toBe(true)
})
