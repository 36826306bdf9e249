/** The keys of a provider over time, with a simulated clock: docs/guides/authentication.md#keys. */
import { describe, expect, test } from 'vitest'
import { type TestKey, testKey } from '../../../test/support/issuer.ts'
import { type TestClock, testClock, turn } from '../../../test/support/test-clock.ts'
import { parseJwkSet } from './key-set.ts'
import type { FetchedKeys } from './provider.ts'
import { type KeysEvent, RemoteKeys } from './remote-keys.ts'

const [old, next] = [testKey('ES256', 'old'), testKey('ES256', 'next')]

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const MAX_AGE_MS = 5 * MINUTE_MS

interface Provider {
  readonly keys: RemoteKeys
  readonly clock: TestClock
  readonly events: KeysEvent[]
  /** The times of the requests, from the start. */
  readonly asked: number[]
  publish(...keys: readonly TestKey[]): void
  goDown(): void
  /** Holds responses back until the returned function is called. */
  hold(): () => void
  kids(): readonly (string | null)[] | null
}

function provider(...first: readonly TestKey[] | ['down']): Provider {
  const clock = testClock()
  const startMs = clock.now()
  const events: KeysEvent[] = []
  const asked: number[] = []
  const down = async () => {
    throw new Error('down')
  }
  let answer: () => Promise<FetchedKeys> = first[0] === 'down' ? down : async () => setOf(first as readonly TestKey[])
  const fetch = () => {
    asked.push(clock.now() - startMs)
    return answer()
  }
  const keys = new RemoteKeys({ fetch, clock, random: () => 0, onEvent: event => events.push(event) })
  return {
    ...{ keys, clock, events, asked },
    publish(...published) {
      answer = async () => setOf(published)
    },
    goDown() {
      answer = down
    },
    hold() {
      const before = answer
      let release = () => {}
      const held = new Promise<void>(resolve => {
        release = resolve
      })
      answer = () => held.then(before)
      return release
    },
    kids: () => keys.current()?.map(({ kid }) => kid) ?? null,
  }
}

function setOf(keys: readonly TestKey[]): FetchedKeys {
  return { ...parseJwkSet(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })), maxAgeMs: MAX_AGE_MS }
}

test('the constructor does not wait for a fetch, and keys are fetched again before they become stale', async () => {
  const { keys, clock, asked, kids, events } = provider(old)
  expect(kids()).toBeNull()
  await turn()
  expect(kids()).toEqual(['old'])
  await clock.advance(MAX_AGE_MS)
  expect(asked).toEqual([0, 0.8 * MAX_AGE_MS])
  // Unchanged keys cause no event.
  expect(events.map(({ kind }) => kind)).toEqual(['fetched'])
  keys.close()
  await clock.advance(HOUR_MS)
  expect(asked).toHaveLength(2)
})

test('a key that stays keeps its object, and a key that is removed is withdrawn', async () => {
  const { keys, clock, publish, events } = provider(old, next)
  await turn()
  const [first, second] = keys.current() ?? []
  publish(next)
  await clock.advance(MAX_AGE_MS)
  expect(keys.current()).toEqual([second])
  expect(keys.current()?.[0]).toBe(second)
  expect([first?.isWithdrawn, second?.isWithdrawn]).toEqual([true, false])
  expect(events.at(-1)).toMatchObject({ kind: 'fetched', keys: 1 })
})

describe('an unknown kid', () => {
  test('causes one fetch in 30 seconds, and the fetch at startup does not count', async () => {
    const { keys, clock, publish, kids, asked } = provider(old)
    await turn()
    publish(old, next)
    expect(await keys.lookAgain()).toBe('fetched')
    expect(kids()).toEqual(['old', 'next'])
    await keys.lookAgain()
    await clock.advance(29_999)
    await keys.lookAgain()
    expect(asked).toEqual([0, 0])
    await clock.advance(1)
    await keys.lookAgain()
    expect(asked).toEqual([0, 0, 30_000])
  })

  test('causes one fetch for concurrent requests', async () => {
    const { keys, publish, hold, asked } = provider(old)
    await turn()
    publish(next)
    const release = hold()
    const asking = Array.from({ length: 50 }, () => keys.lookAgain())
    release()
    expect(new Set(await Promise.all(asking))).toEqual(new Set(['fetched']))
    expect(asked).toHaveLength(2)
  })

  test('cannot be resolved while the provider is down', async () => {
    const { keys, goDown, kids, asked } = provider(old)
    await turn()
    goDown()
    expect(await keys.lookAgain()).toBe('failed')
    expect(await keys.lookAgain()).toBe('failed')
    expect(kids()).toEqual(['old'])
    expect(asked).toHaveLength(2)
  })
})

describe('an outage of the provider', () => {
  test('at startup leaves no keys until the provider answers', async () => {
    const { keys, clock, publish, asked, kids, events } = provider('down')
    await clock.advance(7_500)
    expect(asked).toEqual([0, 1_000, 3_000, 7_000])
    expect(kids()).toBeNull()
    expect(keys.retryAfterSeconds()).toBe(8)
    publish(old)
    await clock.advance(8_000)
    expect(kids()).toEqual(['old'])
    expect(events.map(({ kind }) => kind)).toEqual(['failed', 'fetched'])
    expect(events[0]).toMatchObject({ servedForMs: 0 })
  })

  test('leaves stale keys in use for a day', async () => {
    const { keys, clock, goDown, publish, kids, events, asked } = provider(old)
    await turn()
    const [key] = keys.current() ?? []
    goDown()
    await clock.advance(MAX_AGE_MS + 24 * HOUR_MS - MINUTE_MS)
    expect(kids()).toEqual(['old'])
    expect(keys.stats()).toMatchObject({ keys: 1, staleMs: 24 * HOUR_MS - MINUTE_MS, fetched: 1 })
    expect(events.map(({ kind }) => kind)).toEqual(['fetched', 'failed'])
    const waits = asked.map((at, index) => at - (asked[index - 1] ?? 0))
    expect(waits.slice(2, 9)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    await clock.advance(2 * MINUTE_MS)
    expect(kids()).toBeNull()
    expect(key?.isWithdrawn).toBe(true)
    expect(events.map(({ kind }) => kind)).toEqual(['fetched', 'failed', 'dropped'])
    expect(keys.retryAfterSeconds()).toBeGreaterThanOrEqual(1)
    expect(keys.retryAfterSeconds()).toBeLessThanOrEqual(30)
    publish(old)
    await clock.advance(MINUTE_MS)
    expect(kids()).toEqual(['old'])
    expect(keys.current()?.[0]?.isWithdrawn).toBe(false)
    expect(events.at(-1)).toMatchObject({ kind: 'fetched' })
  })

  test('is reported as over even if the keys are unchanged', async () => {
    const { clock, goDown, publish, events, keys } = provider(old)
    await turn()
    goDown()
    await clock.advance(MAX_AGE_MS)
    publish(old)
    await clock.advance(MINUTE_MS)
    expect(events.map(({ kind }) => kind)).toEqual(['fetched', 'failed', 'fetched'])
    expect(keys.stats()).toMatchObject({ staleMs: 0, keys: 1 })
  })
})
