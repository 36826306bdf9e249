import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type IpAddress, parseIp, toAddress } from './address.ts'
import { createRateLimit, type LocalRateLimit } from './rate.ts'

function address(text: string): IpAddress {
  const ip = parseIp(text)
  if (ip === null) throw new Error(`${text} is not an address`)
  return toAddress(ip)
}

/** A limit with a clock that the test advances. */
function limit(rate: number, burst: number, sets = 16, startMs = 0) {
  let nowMs = startMs
  const created = createRateLimit({ rate, burst, now: () => nowMs, seed: 1, sets })
  if (created === null) throw new Error('it is switched off')
  return {
    ...created,
    pass(ms: number) {
      nowMs += ms
    },
  }
}

/** How many of `tries` requests pass. */
function passed(rate: LocalRateLimit, of: IpAddress, tries: number): number {
  let count = 0
  for (let i = 0; i < tries; i++) if (rate.take(of)) count++
  return count
}

const A = address('192.0.2.1')
const B = address('192.0.2.2')

describe('a bucket', () => {
  test('holds the burst and is refilled at the rate', () => {
    const rate = limit(10, 5)
    expect(passed(rate, A, 100)).toBe(5)
    rate.pass(99)
    expect(passed(rate, A, 100)).toBe(0)
    rate.pass(1)
    expect(passed(rate, A, 100)).toBe(1)
    rate.pass(350)
    expect(passed(rate, A, 100)).toBe(3)
    rate.pass(1_000_000)
    expect(passed(rate, A, 100)).toBe(5)
  })
  test('is not charged for rejected requests', () => {
    const rate = limit(1, 1)
    expect(passed(rate, A, 1_000)).toBe(1)
    rate.pass(1_000)
    expect(passed(rate, A, 1)).toBe(1)
  })
  test('is exact to the last token with the defaults, even after a month', () => {
    const rate = limit(500, 1_000, 16, 123_456.789)
    rate.pass(30 * 86_400_000 + 0.123)
    expect(passed(rate, A, 2_000)).toBe(1_000)
    rate.pass(1_000)
    expect(passed(rate, A, 2_000)).toBe(500)
  })
  test('can have a rate below one per second', () => {
    const rate = limit(0.5, 1)
    expect(passed(rate, A, 2)).toBe(1)
    rate.pass(1_999)
    expect(passed(rate, A, 1)).toBe(0)
    rate.pass(1)
    expect(passed(rate, A, 1)).toBe(1)
  })
  test.each([
    [0, 5],
    [5, 0],
    [0, 0],
  ])('is unlimited with a rate of %d and a burst of %d', (rate, burst) => {
    expect(createRateLimit({ rate, burst, now: () => 0, seed: 1 })).toBeNull()
  })
})

describe('an address', () => {
  test('has its own bucket', () => {
    const rate = limit(1, 3)
    expect([passed(rate, A, 9), passed(rate, B, 9), passed(rate, A, 9)]).toEqual([3, 3, 0])
  })
  test('of IPv6 is counted by its first 64 bits', () => {
    const rate = limit(1, 3)
    expect(passed(rate, address('2001:db8:0:1::1'), 2)).toBe(2)
    expect(passed(rate, address('2001:db8:0:1:ffff:ffff:ffff:ffff'), 2)).toBe(1)
    expect(passed(rate, address('2001:db8:0:2::1'), 9)).toBe(3)
    expect(passed(rate, address('2001:db9:0:1::1'), 9)).toBe(3)
  })
  test('of IPv4 has the same bucket in IPv6-mapped form, and a different one from any IPv6 address', () => {
    const rate = limit(1, 3)
    expect(passed(rate, address('1.2.3.4'), 9)).toBe(3)
    expect(passed(rate, address('::ffff:1.2.3.4'), 9)).toBe(0)
    expect(passed(rate, address('::1.2.3.4'), 9)).toBe(3)
    expect(passed(rate, address('0:0:0102:0304::'), 9)).toBe(3)
  })
})

test('any sequence of requests and pauses is limited as by a token bucket', () => {
  const step = fc.record({ pauseMs: fc.nat(20).map(n => n * 125), client: fc.nat(3), requests: fc.nat(6) })
  const options = fc.record({ rate: fc.integer({ min: 1, max: 16 }), burst: fc.integer({ min: 1, max: 12 }) })
  fc.assert(
    fc.property(options, fc.array(step, { maxLength: 50 }), ({ rate, burst }, steps) => {
      const real = limit(rate, burst)
      // Eighths of a token, so that every number of the model is whole.
      const model = Array.from({ length: 4 }, () => burst * 8)
      for (const { pauseMs, client, requests } of steps) {
        real.pass(pauseMs)
        for (let i = 0; i < 4; i++) model[i] = Math.min(burst * 8, (model[i] ?? 0) + (pauseMs / 125) * rate)
        for (let i = 0; i < requests; i++) {
          const has = (model[client] ?? 0) >= 8
          if (has) model[client] = (model[client] ?? 0) - 8
          expect(real.take(address(`10.0.0.${client}`))).toBe(has)
        }
      }
    }),
  )
})

describe('with more addresses than entries', () => {
  const others = (count: number) => Array.from({ length: count }, (_, i) => address(`10.1.${i >> 8}.${i & 255}`))

  test('the emptiest bucket is evicted last', () => {
    const rate = limit(1, 100, 1)
    expect(passed(rate, A, 1_000)).toBe(100)
    for (const other of others(10_000)) expect(rate.take(other)).toBe(true)
    expect(passed(rate, A, 1_000)).toBe(0)
  })
  test('a refilled bucket is evicted first', () => {
    const rate = limit(1, 100, 1)
    expect(passed(rate, B, 1)).toBe(1)
    rate.pass(1_000)
    for (const other of others(15)) passed(rate, other, 50)
    expect(passed(rate, A, 50)).toBe(50)
    for (const other of others(15)) expect(passed(rate, other, 100)).toBe(50)
  })
  test('an empty bucket is evicted only if fifteen others are emptier', () => {
    const rate = limit(1, 100, 1)
    passed(rate, A, 100)
    rate.pass(1_000)
    for (const other of others(14)) passed(rate, other, 100)
    for (const other of others(1_000).slice(15)) rate.take(other)
    expect(passed(rate, A, 100)).toBe(1)
  })
})

test('a million addresses take less than 100 MB, without collisions and with few evictions', () => {
  const before = process.memoryUsage()
  let nowMs = 0
  const rate = createRateLimit({ rate: 1, burst: 2, now: () => nowMs, seed: 0x12345678 })
  const of = new Uint32Array(4)
  const client = (i: number) => {
    of.fill(0)
    // Consecutive IPv4 addresses and consecutive IPv6 networks, as an attacker would have.
    if (i % 2 === 0) of.set([0, 0, 0xffff, 0x0a000000 + i])
    else of.set([0x20010db8, i, 7, 7])
    return of
  }
  for (let turn = 0; turn < 2; turn++) {
    for (let i = 0; i < 1_000_000; i++) if (rate?.take(client(i)) !== true) throw new Error(`client ${i} is refused`)
  }
  let forgotten = 0
  for (let i = 0; i < 1_000_000; i++) if (rate?.take(client(i)) === true) forgotten++
  const after = process.memoryUsage()
  expect(forgotten).toBeLessThan(5_000)
  expect(after.arrayBuffers - before.arrayBuffers).toBeGreaterThan(10_000_000)
  expect(after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed).toBeLessThan(100_000_000)
  // As good as new.
  nowMs += 2_000
  for (let i = 0; i < 1_000_000; i++) if (rate?.take(client(i)) !== true) throw new Error(`client ${i} is refused`)
})
