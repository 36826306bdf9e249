import { afterEach, describe, expect, test } from 'vitest'
import { fixture } from '../../test/support/fixtures.ts'
import { REDIS_MISSING, redisServer } from '../../test/support/redis.ts'
import { relayTo } from '../../test/support/relay.ts'
import { openSharedState, type SharedState, type SharedStateOptions } from './shared-state.ts'

let opened: SharedState[] = []
let prefixes = 0
let prefix = ''
afterEach(async () => {
  await Promise.all(opened.map(state => state.close()))
  opened = []
  prefix = ''
})

// The title names the missing program.
describe.skipIf(REDIS_MISSING !== null)(`shared state (${REDIS_MISSING ?? 'with a server'})`, () => {
  const redis = fixture(redisServer)

  async function open(of: Partial<SharedStateOptions> = {}): Promise<SharedState> {
    prefix ||= `unit-${process.pid}-${++prefixes}`
    const state = openSharedState({
      ...{ url: redis.url, prefix, timeoutMs: 2_000, rateLimitRate: 0.001, rateLimitBurst: 8, tenantMaxConcurrent: 3 },
      ...{ emit: () => {}, now: () => performance.now() },
      ...of,
    })
    opened.push(state)
    await expect.poll(() => state.stats().isConnected, { timeout: 10_000 }).toBe(true)
    return state
  }

  test('permits are never lent twice, and can be lent again after they are given back', async () => {
    const [one, other] = [(await open()).storeOf('tenants'), (await open()).storeOf('tenants')]
    expect(await one.lease('a', 2)).toBe(2)
    expect(await other.lease('a', 2)).toBe(1)
    expect(await other.lease('a', 1)).toBe(0)
    expect(await other.lease('b', 1)).toBe(1)
    one.give('a', 1)
    await expect.poll(() => other.lease('a', 1)).toBe(1)
  })

  test('concurrent requests of many gateways share the permits of a holder', async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, async () => (await open()).storeOf('tenants')))
    const leased = await Promise.all(stores.flatMap(store => Array.from({ length: 10 }, () => store.lease('a', 1))))
    expect(leased.reduce((sum, units) => sum + units, 0)).toBe(3)
  })

  test('permits taken beyond the limit are counted until they are given back', async () => {
    const [one, other] = [(await open()).storeOf('tenants'), (await open()).storeOf('tenants')]
    expect(await one.lease('a', 3)).toBe(3)
    one.exceed('a', 2)
    one.give('a', 3)
    await expect.poll(() => other.lease('a', 3)).toBe(1)
    one.give('a', 2)
    await expect.poll(() => other.lease('a', 2)).toBe(2)
  })

  test('the permits of a gateway without a sign of life are free', async () => {
    const relay = await relayTo(redis.port)
    try {
      const lost = await open({ lifeMs: 400, url: `redis://127.0.0.1:${relay.port}` })
      const store = (await open()).storeOf('tenants')
      expect(await lost.storeOf('tenants').lease('a', 3)).toBe(3)
      expect(await store.lease('a', 1)).toBe(0)
      relay.silence()
      await expect.poll(() => store.lease('a', 1), { timeout: 10_000 }).toBe(1)
    } finally {
      await relay.close()
    }
  })

  test('a bucket has its tokens once for all gateways, and takes unused ones back', async () => {
    const [one, other] = [(await open()).storeOf('requests'), (await open()).storeOf('requests')]
    const taken = (await one.lease('1 2', 1)) + (await other.lease('1 2', 8)) + (await one.lease('1 2', 8))
    expect(taken).toBe(8)
    expect(await one.lease('1 2', 1)).toBe(0)
    one.give('1 2', 2)
    await expect.poll(() => other.lease('1 2', 2)).toBe(2)
    expect(await other.lease('1 3', 1)).toBeGreaterThan(0)
  })

  test('a bucket is refilled at its rate', async () => {
    const store = (await open({ rateLimitRate: 50, rateLimitBurst: 1 })).storeOf('requests')
    expect(await store.lease('1 2', 1)).toBe(1)
    await expect.poll(() => store.lease('1 2', 1)).toBe(1)
  })

  test('a message reaches the other gateways, and not its sender', async () => {
    const [one, other] = [await open(), await open()]
    const received: unknown[] = []
    const handlers = (name: string) => ({
      changed: (relations: readonly number[] | null) => void received.push([name, relations]),
      revoked: () => void received.push([name, 'revoked']),
    })
    one.handle(handlers('one'))
    other.handle(handlers('other'))
    // A subscription that is not there yet receives everything as outdated when it is.
    await expect
      .poll(async () => {
        await one.changed([17])
        return received
      })
      .toContainEqual(['other', [17]])
    expect(received).not.toContainEqual(['one', [17]])
  })
})
