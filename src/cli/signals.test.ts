import { EventEmitter, once } from 'node:events'
import { expect, test } from 'vitest'
import { type Running, runUntilSignal, type SignalSource } from './signals.ts'

/** Replaces `process` and records exit requests instead of exiting. */
class Signals extends EventEmitter implements SignalSource {
  readonly exits: number[] = []

  exit(code: number): void {
    this.exits.push(code)
    this.emit('exited')
  }
}

/** Resolves when the service is asked to close; it stays open until `finish` is called. */
function service() {
  const events = new EventEmitter()
  const running: Running = {
    async close() {
      events.emit('closing')
      await once(events, 'finish')
    },
  }
  return { running, closing: once(events, 'closing'), finish: () => events.emit('finish') }
}

const nothing = (): void => {}
/** Resolves when all pending callbacks have run. */
const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

test.each(['SIGTERM', 'SIGINT'])('%s closes the service and ends the run', async signal => {
  const signals = new Signals()
  const { running, closing, finish } = service()
  const run = runUntilSignal(async () => running, signals, nothing)
  await settled()
  signals.emit(signal)
  await closing
  finish()
  await run
  expect(signals.exits).toEqual([])
  expect(signals.eventNames()).toEqual([])
})

test.each([
  ['SIGTERM', 'SIGINT', 130],
  ['SIGINT', 'SIGINT', 130],
  ['SIGINT', 'SIGTERM', 143],
])('%s followed by %s during the close exits at once with %i', async (first, second, code) => {
  const signals = new Signals()
  const { running, closing, finish } = service()
  const run = runUntilSignal(async () => running, signals, nothing)
  await settled()
  signals.emit(first)
  await closing
  expect(signals.exits).toEqual([])
  signals.emit(second)
  expect(signals.exits).toEqual([code])
  finish()
  await run
})

test('a service that ends by itself is a failure and is not closed', async () => {
  const signals = new Signals()
  const failed = Promise.reject(new Error('it has ended'))
  const close = () => Promise.reject(new Error('closed'))
  await expect(runUntilSignal(async () => ({ close, failed }), signals, nothing)).rejects.toThrow('it has ended')
  expect(signals.eventNames()).toEqual([])
})

test('a signal during startup exits at once', async () => {
  const signals = new Signals()
  void runUntilSignal(() => new Promise(() => {}), signals, nothing)
  signals.emit('SIGTERM')
  expect(signals.exits).toEqual([143])
})

test('SIGHUP reloads, one reload after another; a failure is reported and changes nothing', async () => {
  const signals = new Signals()
  const told: string[] = []
  let reloads = 0
  const running: Running = {
    close: async () => {},
    async reload() {
      reloads += 1
      if (reloads === 1) throw new Error('line 3 is broken')
    },
  }
  const run = runUntilSignal(
    async () => running,
    signals,
    line => told.push(line),
  )
  signals.emit('SIGHUP')
  await settled()
  expect(reloads).toBe(1)
  signals.emit('SIGHUP')
  signals.emit('SIGHUP')
  await settled()
  expect(reloads).toBe(3)
  expect(told).toEqual(['reload failed; the previous state stays in use: line 3 is broken'])
  signals.emit('SIGTERM')
  await run
})

test('SIGHUP without anything to reload does not end the process', async () => {
  const signals = new Signals()
  const run = runUntilSignal(async () => ({ close: async () => {} }), signals, nothing)
  await settled()
  expect(signals.listenerCount('SIGHUP')).toBe(1)
  signals.emit('SIGHUP')
  signals.emit('SIGINT')
  await run
})

test('errors at startup and shutdown are passed on, and the signal handlers are removed', async () => {
  const signals = new Signals()
  await expect(runUntilSignal(() => Promise.reject(new Error('no start')), signals, nothing)).rejects.toThrow(
    'no start',
  )
  const run = runUntilSignal(async () => ({ close: () => Promise.reject(new Error('no end')) }), signals, nothing)
  await settled()
  signals.emit('SIGTERM')
  await expect(run).rejects.toThrow('no end')
  expect(signals.eventNames()).toEqual([])
})
