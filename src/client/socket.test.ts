/** When the socket connects again: after pauses, not without a network or while the page is hidden. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type ClientSocket, pauseMs } from './platform.ts'
import { type ConnectionState, createSocket, type SharedSocket } from './socket.ts'

/** The pauses are half to all of these, in milliseconds. */
const PAUSES = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

test('pauses double with each failure up to a limit, and are random in their upper half', () => {
  const random = vi.spyOn(Math, 'random')
  const at = (value: number) => {
    random.mockReturnValue(value)
    return PAUSES.map((_, failures) => pauseMs(failures))
  }
  expect(at(0)).toEqual(PAUSES.map(ms => ms / 2))
  expect(at(0.5)).toEqual(PAUSES.map(ms => ms * 0.75))
  random.mockReturnValue(0.5)
  expect(pauseMs(1_000)).toBe(15_000 * 0.75)
})

describe('The socket', () => {
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' })
  const network = { onLine: true }
  /** The events of the window. */
  let events = new EventTarget()
  let opened: ClientSocket[] = []
  let states: ConnectionState[] = []
  let socket: SharedSocket

  class Opened implements ClientSocket {
    readonly readyState = 1
    onopen: (() => void) | null = null
    onclose: ((event: { readonly code?: number; readonly reason?: string }) => void) | null = null
    onerror: ((event: never) => void) | null = null
    onmessage: ((event: { readonly data: unknown }) => void) | null = null
    constructor() {
      opened.push(this)
    }
    send(): void {}
    close(): void {}
  }

  beforeEach(async () => {
    vi.useFakeTimers()
    events = new EventTarget()
    vi.stubGlobal('addEventListener', events.addEventListener.bind(events))
    vi.stubGlobal('removeEventListener', events.removeEventListener.bind(events))
    vi.stubGlobal('document', page)
    vi.stubGlobal('navigator', network)
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    Object.assign(page, { visibilityState: 'visible' })
    network.onLine = true
    opened = []
    states = []
    socket = createSocket({
      url: 'ws://gateway.example/ws',
      tokens: { get: async () => null, replace: async () => null },
      WebSocket: Opened,
      onState: state => void states.push(state),
      onError: () => {},
    })
    socket.add({ begin: () => ({ type: 'subscribe' }), end: 'unsubscribe', receive() {} })
    await vi.advanceTimersByTimeAsync(0)
    opened[0]?.onopen?.()
  })
  afterEach(() => socket.close())

  const lose = () => opened.at(-1)?.onclose?.({})

  test('connects again after a pause that grows with each failure', async () => {
    for (const [failures, ms] of PAUSES.entries()) {
      lose()
      await vi.advanceTimersByTimeAsync(ms * 0.75 - 1)
      expect(opened).toHaveLength(failures + 1)
      await vi.advanceTimersByTimeAsync(1)
      expect(opened).toHaveLength(failures + 2)
    }
  })

  test('begins with short pauses again once a subscription is confirmed, not when a connection opens', async () => {
    lose()
    await vi.advanceTimersByTimeAsync(375)
    opened[1]?.onopen?.()
    lose()
    await vi.advanceTimersByTimeAsync(749)
    expect(opened).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(1)
    opened[2]?.onmessage?.({ data: '{"type": "subscribed", "id": "c0"}' })
    lose()
    await vi.advanceTimersByTimeAsync(375)
    expect(opened).toHaveLength(4)
  })

  test.each([
    ['without a network', () => Object.assign(network, { onLine: false }), () => goOnline()],
    ['while the page is hidden', () => show('hidden'), () => show('visible')],
  ])('does not connect %s, and then does at a random time of 300 ms', async (_, leave, comeBack) => {
    leave()
    lose()
    await vi.advanceTimersByTimeAsync(600_000)
    expect([opened.length, states.at(-1)]).toEqual([1, 'waiting'])
    comeBack()
    await vi.advanceTimersByTimeAsync(149)
    expect(opened).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(opened).toHaveLength(2)
  })

  test('does not wait for the end of its pause when the network returns', async () => {
    for (const ms of PAUSES) {
      lose()
      await vi.advanceTimersByTimeAsync(ms)
    }
    lose()
    const before = opened.length
    goOnline()
    await vi.advanceTimersByTimeAsync(150)
    expect(opened).toHaveLength(before + 1)
  })

  test('connects once when the network returns and the page is shown again and again', async () => {
    lose()
    for (let n = 0; n < 5; n++) {
      goOnline()
      show('hidden')
      show('visible')
      await vi.advanceTimersByTimeAsync(20)
    }
    // Less than the time after which a silent connection is closed.
    await vi.advanceTimersByTimeAsync(30_000)
    expect(opened).toHaveLength(2)
  })

  test('listens for neither after it is closed', async () => {
    lose()
    socket.close()
    goOnline()
    show('visible')
    await vi.advanceTimersByTimeAsync(600_000)
    expect([opened.length, states.at(-1)]).toEqual([1, 'idle'])
  })

  function goOnline(): void {
    network.onLine = true
    events.dispatchEvent(new Event('online'))
  }

  function show(visibilityState: 'visible' | 'hidden'): void {
    page.visibilityState = visibilityState
    page.dispatchEvent(new Event('visibilitychange'))
  }
})
