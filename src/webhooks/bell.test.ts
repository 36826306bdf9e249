import { expect, test } from 'vitest'
import { createBell } from './bell.ts'

test('it wakes who waits, and who would have waited; once', async () => {
  const bell = createBell()
  const waiting = bell.wait(3_600_000)
  bell.ring()
  await waiting
  bell.ring()
  bell.ring()
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
