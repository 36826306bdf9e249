import { expect, test } from 'vitest'
import { PROBE_INTERVAL_MS, watchEventLoop } from './event-loop.ts'

test('each delay is measured from when the previous timer ran, and is never negative', async () => {
  // The timer runs half a second late, then on time, then after only one millisecond.
  const times = [0, PROBE_INTERVAL_MS + 500, 2 * PROBE_INTERVAL_MS + 500, 2 * PROBE_INTERVAL_MS + 501]
  const told: number[] = []
  await new Promise<void>(resolve => {
    const end = watchEventLoop(
      () => times.shift() ?? 0,
      delayMs => {
        told.push(delayMs)
        if (times.length > 0) return
        end()
        resolve()
      },
    )
    // The watch by itself keeps no process alive.
    const alive = setInterval(() => told.length === 3 && clearInterval(alive), 10)
  })
  expect(told).toEqual([500, 0, 0])
})
