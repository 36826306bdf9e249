/**
 * docs/reference/limits.md#streams: the minimum throughput of streams, 2 KB/s averaged over 60 s by default.
 */
import { expect, test } from 'vitest'
import { createStreamPaces } from './stream-pace.ts'

const LIMIT = { streamMinBytesPerSec: 2_048, streamMinRateWindowSecs: 60 }
const REQUIRED = 2_048 * 60

test('a client that reads enough within a window gets another window', () => {
  const paces = createStreamPaces(LIMIT)
  const pace = paces.start()
  pace.taken(REQUIRED - 1, 20_000)
  expect(pace.leftMs).toBe(40_000)
  expect(pace.judge(1)).toBeNull()
  expect(pace.leftMs).toBe(60_000)
  expect(paces.ended).toBe(0)
})

test('a client that reads less gets an error with the limit and its key', () => {
  const paces = createStreamPaces(LIMIT)
  const pace = paces.start()
  pace.taken(REQUIRED - 2, 60_000)
  expect(pace.judge(1)).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('stream_min_bytes_per_sec') })
  expect(paces.ended).toBe(1)
})

test('bytes of earlier windows do not count', () => {
  const pace = createStreamPaces(LIMIT).start()
  pace.taken(10 * REQUIRED, 1_000)
  expect(pace.judge(0)).toBeNull()
  expect(pace.judge(0)).not.toBeNull()
})

test('only time in which the gateway waits for the client counts', () => {
  const pace = createStreamPaces(LIMIT).start()
  for (let n = 0; n < 1_000; n++) pace.taken(10, 0)
  expect(pace.leftMs).toBe(60_000)
})

test('0 disables the limit', () => {
  expect(createStreamPaces({ ...LIMIT, streamMinBytesPerSec: 0 }).start().leftMs).toBeNull()
})

test.each([
  [2_048, 60, 30_720],
  [100_000, 60, 32_768],
  [2_048, 1, 1_024],
])('at %i bytes a second over %i s, slices have %i bytes', (streamMinBytesPerSec, streamMinRateWindowSecs, bytes) => {
  expect(createStreamPaces({ streamMinBytesPerSec, streamMinRateWindowSecs }).start().sliceBytes).toBe(bytes)
})
