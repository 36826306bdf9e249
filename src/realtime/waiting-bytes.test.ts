import { expect, test } from 'vitest'
import { createResponseBytes } from '../http/response-bytes.ts'
import { createWaitingBytes } from './waiting-bytes.ts'

test('bytes count for the current holder, and not against its own client', () => {
  const { reading, results } = createResponseBytes({ maxUnsentBytes: 0, tenantMaxUnsentBytes: 10 })
  const one = createWaitingBytes(results)
  one.take(20)
  expect([reading.taken, reading.takenBy('a')]).toEqual([20, 0])
  one.assign('a')
  const other = createWaitingBytes(results, 'a')
  expect([reading.takenBy('a'), one.refusal(), other.refusal()?.code]).toEqual([20, null, 'UNAVAILABLE'])
  one.assign('b')
  expect([reading.takenBy('a'), reading.takenBy('b'), other.refusal()]).toEqual([0, 20, null])
  one.give(20)
  expect(reading.taken).toBe(0)
})
