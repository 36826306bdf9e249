import { expect, test } from 'vitest'
import { ChannelClosed, WorkerChannel } from './channel.ts'
import { parseChannelFrame, parsePrimaryMessage, parseWorkerMessage } from './messages.ts'
import { CRASHES_MAX, NO_CRASHES, nextRestart } from './restarts.ts'

test('a message is accepted only with fields of its kind', () => {
  const lease = { kind: 'lease', limit: 'tenants', holder: 'tenant a', units: 1 }
  expect(parseWorkerMessage(lease)).toEqual(lease)
  for (const wrong of [
    ...[
      { ...lease, limit: 'other' },
      { ...lease, units: -1 },
      { ...lease, holder: 7 },
    ],
    ...[{ kind: 'constructor' }, { kind: 'changed', relations: ['1'] }, null, 'lease'],
  ])
    expect(parseWorkerMessage(wrong)).toBeNull()
  expect(parsePrimaryMessage({ kind: 'changed', relations: null })).not.toBeNull()
  expect(parsePrimaryMessage(lease)).toBeNull()
})

test('frames of other libraries are ignored', () => {
  expect(parseChannelFrame({ type: 'axm:reply' }, parsePrimaryMessage)).toBeNull()
  expect(parseChannelFrame({ frame: 'request', id: 1.5, message: { kind: 'stop' } }, parsePrimaryMessage)).toBeNull()
  expect(parseChannelFrame({ frame: 'notice', message: { kind: 'stop' } }, parsePrimaryMessage)).not.toBeNull()
})

test('a request is answered, or rejected when the other process has ended', async () => {
  const hear: ((frame: unknown) => void)[] = []
  const portTo = (other: number) => ({
    send: (frame: unknown) => void queueMicrotask(() => hear[other]?.(structuredClone(frame))),
    receive: (listener: (frame: unknown) => void) => void hear.push(listener),
  })
  const parse = (value: unknown) => value as string
  const primary = new WorkerChannel<string, string>({ port: portTo(1), parse, handle: message => `${message}!` })
  const worker = new WorkerChannel<string, string>({ port: portTo(0), parse, handle: () => new Promise(() => {}) })
  expect(await worker.request('hello')).toBe('hello!')
  const unanswered = primary.request('anyone')
  primary.close()
  await expect(unanswered).rejects.toThrow(ChannelClosed)
  await expect(primary.request('again')).rejects.toThrow(ChannelClosed)
})

test('restarts pause for longer each time, until they stop', () => {
  let crashes = NO_CRASHES
  const delays = Array.from({ length: CRASHES_MAX }, () => {
    const next = nextRestart(crashes, 50)
    crashes = next.crashes
    return next.delayMs
  })
  expect(delays).toEqual([0, 100, 200, 400, 800, null])
})

test('a worker that had served for a while is started again at once', () => {
  expect(nextRestart({ inARow: CRASHES_MAX - 1 }, 60_000)).toEqual({ crashes: NO_CRASHES, delayMs: 0 })
})
