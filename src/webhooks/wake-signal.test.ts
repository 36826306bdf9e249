import { expect, test } from 'vitest'
import { createWakeSignal } from './wake-signal.ts'

test('a signal wakes one waiter, whether it waits already or only later', async () => {
  const bell = createWakeSignal()
  const waiting = bell.wait(3_600_000)
  bell.send()
  await waiting
  bell.send()
  bell.send()
  await bell.wait(3_600_000)
  let isOver = false
  void bell.wait(10).then(() => {
    isOver = true
  })
  await Promise.resolve()
  expect(isOver).toBe(false)
  await new Promise(resolve => setTimeout(resolve, 30))
  expect(isOver).toBe(true)
})
