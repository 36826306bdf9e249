import { beforeEach, expect, test, vi } from 'vitest'
import { GatewayError } from '../errors.ts'
import {
  BEHIND_MS_MAX,
  CLOSE_BYTES,
  CONFLATE_BYTES,
  createSendQueue,
  RESYNC_BYTES,
  type SendQueue,
} from './send-queue.ts'

/** A client whose reading is controlled by the test. */
const pipe = { sent: [] as string[], buffered: 0, send: (text: string) => void pipe.sent.push(text) }
const recipient = (name: string) => ({ resyncText: () => `resync ${name}`, markLost: () => void resyncs++ })
/** The budget of unread responses. */
let taken = 0
let refusal: GatewayError | null = null
const waiting = {
  refusal: () => refusal,
  take(bytes: number) {
    taken += bytes
  },
  give(bytes: number) {
    taken -= bytes
  },
}
let outbox: SendQueue
let tooSlow = 0
let resyncs = 0

beforeEach(() => {
  vi.useFakeTimers()
  Object.assign(pipe, { sent: [], buffered: 0 })
  tooSlow = 0
  resyncs = 0
  taken = 0
  refusal = null
  outbox = createSendQueue({
    ...{ pipe, waiting },
    now: () => performance.now(),
    onTooSlow: () => tooSlow++,
  })
})

test('a client that keeps up receives every message immediately', () => {
  const a = recipient('a')
  outbox.notify(a, 'k', 'one')
  outbox.notify(a, 'k', 'two')
  outbox.resync(a)
  expect(pipe.sent).toEqual(['one', 'two', 'resync a'])
})

test('a client that is behind receives the latest change of each row once there is room', () => {
  const [a, b] = [recipient('a'), recipient('b')]
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(a, 'k', 'k1')
  outbox.notify(a, 'l', 'l1')
  outbox.notify(b, 'k', 'other')
  outbox.notify(a, 'k', 'k2')
  expect(pipe.sent).toEqual([])
  pipe.buffered = 0
  // After the pending messages, not before them.
  outbox.notify(a, 'm', 'm1')
  vi.advanceTimersByTime(100)
  expect(pipe.sent).toEqual(['l1', 'k2', 'm1', 'other'])
  outbox.notify(a, 'k', 'k3')
  expect(pipe.sent.at(-1)).toBe('k3')
})

test('a client that is far behind is asked to resync once and receives nothing else until then', () => {
  const a = recipient('a')
  pipe.buffered = CONFLATE_BYTES
  const text = 'x'.repeat(RESYNC_BYTES / 8)
  for (let n = 0; n < 100; n++) outbox.notify(a, `k${n}`, text)
  expect([resyncs, pipe.sent]).toEqual([1, []])
  pipe.buffered = 0
  vi.advanceTimersByTime(100)
  expect(pipe.sent).toEqual(['resync a'])
  outbox.notify(a, 'k', 'fresh')
  expect(pipe.sent).toEqual(['resync a', 'fresh'])
})

test('a subscription that has ended receives nothing more', () => {
  const a = recipient('a')
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(a, 'k', 'k1')
  outbox.forget(a)
  pipe.buffered = 0
  vi.advanceTimersByTime(100)
  expect(pipe.sent).toEqual([])
})

test('the connection is closed for a client that stays behind or does not read its responses', () => {
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(recipient('a'), 'k', 'k1')
  vi.advanceTimersByTime(BEHIND_MS_MAX - 1_000)
  expect(tooSlow).toBe(0)
  vi.advanceTimersByTime(2_000)
  expect(tooSlow).toBe(1)
  vi.advanceTimersByTime(BEHIND_MS_MAX)
  expect(tooSlow).toBe(1)

  outbox = createSendQueue({ pipe, waiting, now: () => performance.now(), onTooSlow: () => tooSlow++ })
  pipe.buffered = CLOSE_BYTES + 1
  outbox.send('pong')
  expect(tooSlow).toBe(2)
})

test('pending changes count as unread until they are sent, replaced or dropped', () => {
  const [a, b] = [recipient('a'), recipient('b')]
  outbox.notify(a, 'k', 'sent')
  expect(taken).toBe(0)
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(a, 'k', 'four')
  outbox.notify(a, 'k', 'fives')
  outbox.notify(b, 'k', 'four')
  expect(taken).toBe(9)
  outbox.forget(b)
  expect(taken).toBe(5)
  pipe.buffered = 0
  vi.advanceTimersByTime(100)
  expect(taken).toBe(0)
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(a, 'k', 'four')
  outbox.close()
  expect(taken).toBe(0)
})

test('beyond the limit on unread responses, a client that is behind is asked to resync', () => {
  const a = recipient('a')
  refusal = new GatewayError('UNAVAILABLE', 'too much')
  outbox.notify(a, 'k', 'in time')
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(a, 'k', 'late')
  expect([resyncs, taken]).toEqual([1, 0])
  pipe.buffered = 0
  vi.advanceTimersByTime(100)
  expect(pipe.sent).toEqual(['in time', 'resync a'])
})
