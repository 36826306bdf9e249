import { beforeEach, expect, test, vi } from 'vitest'
import { BEHIND_MS_MAX, CLOSE_BYTES, CONFLATE_BYTES, createOutbox, type Outbox, RESYNC_BYTES } from './outbox.ts'

/** A reader of whom the test decides what it has taken. */
const pipe = { sent: [] as string[], buffered: 0, send: (text: string) => void pipe.sent.push(text) }
const recipient = (name: string) => ({ resyncText: () => `resync ${name}`, lose: () => void resyncs++ })
let outbox: Outbox
let tooSlow = 0
let resyncs = 0

beforeEach(() => {
  vi.useFakeTimers()
  Object.assign(pipe, { sent: [], buffered: 0 })
  tooSlow = 0
  resyncs = 0
  outbox = createOutbox({
    pipe,
    now: () => performance.now(),
    onTooSlow: () => tooSlow++,
  })
})

test('who keeps up is told everything at once', () => {
  const a = recipient('a')
  outbox.notify(a, 'k', 'one')
  outbox.notify(a, 'k', 'two')
  outbox.resync(a)
  expect(pipe.sent).toEqual(['one', 'two', 'resync a'])
})

test('who is behind is told the last news of each row when there is room', () => {
  const [a, b] = [recipient('a'), recipient('b')]
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(a, 'k', 'k1')
  outbox.notify(a, 'l', 'l1')
  outbox.notify(b, 'k', 'other')
  outbox.notify(a, 'k', 'k2')
  expect(pipe.sent).toEqual([])
  pipe.buffered = 0
  // Behind what waits, not in front of it.
  outbox.notify(a, 'm', 'm1')
  vi.advanceTimersByTime(100)
  expect(pipe.sent).toEqual(['l1', 'k2', 'm1', 'other'])
  outbox.notify(a, 'k', 'k3')
  expect(pipe.sent.at(-1)).toBe('k3')
})

test('who is far behind is told to read again, once, and nothing else until then', () => {
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

test('a subscription that has ended is told nothing more', () => {
  const a = recipient('a')
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(a, 'k', 'k1')
  outbox.forget(a)
  pipe.buffered = 0
  vi.advanceTimersByTime(100)
  expect(pipe.sent).toEqual([])
})

test('who stays behind is given up, and so is who lets answers pile up', () => {
  pipe.buffered = CONFLATE_BYTES
  outbox.notify(recipient('a'), 'k', 'k1')
  vi.advanceTimersByTime(BEHIND_MS_MAX - 1_000)
  expect(tooSlow).toBe(0)
  vi.advanceTimersByTime(2_000)
  expect(tooSlow).toBe(1)
  vi.advanceTimersByTime(BEHIND_MS_MAX)
  expect(tooSlow).toBe(1)

  outbox = createOutbox({ pipe, now: () => performance.now(), onTooSlow: () => tooSlow++ })
  pipe.buffered = CLOSE_BYTES + 1
  outbox.send('pong')
  expect(tooSlow).toBe(2)
})
