/** The invariants of `npm run bench -- simulate`, with fewer gateways. */
import { afterEach, expect, test } from 'vitest'
import { simulateLeases } from '../../bench/simulate/leases.ts'
import { simulateLogReading } from '../../bench/simulate/log-reading.ts'
import { simulateReconnects } from '../../bench/simulate/reconnects.ts'

const GATEWAYS = 50
const timers = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }

afterEach(() => {
  expect({ setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }).toEqual(timers)
})

const reading = {
  ...{ gateways: GATEWAYS, cores: 8, changesPerSecond: 20 },
  ...{ secondsBefore: 3, secondsAway: 2, secondsAfter: 2, seed: 1 },
}

test('every gateway receives every change once, over an outage too, with a bounded number of reads', async () => {
  const result = await simulateLogReading(reading)
  expect(result.wrong).toBe(0)
  // At most one read in 25 ms for each gateway.
  expect(result.readsPerSecond).toBeGreaterThan(GATEWAYS * 20)
  expect(result.readsPerSecond).toBeLessThanOrEqual(GATEWAYS * 40)
  expect(result.delayMsP99).toBeLessThan(60)
  expect(await simulateLogReading(reading)).toEqual(result)
})

test('gateways that lost the database do not ask for the change log at the same moments', async () => {
  const { attemptsPerGateway, attemptsAtOnce } = await simulateLogReading(reading)
  expect(attemptsPerGateway).toBeGreaterThan(2)
  expect(attemptsPerGateway).toBeLessThan(6)
  expect(attemptsAtOnce).toBeLessThan(0.4)
})

test('gateways that lost the database reconnect in turns, and soon', async () => {
  const result = await simulateReconnects({
    ...{ gateways: GATEWAYS, connectionsEach: 10, cores: 4, connectMs: 5, secondsAway: 8, secondsAfter: 30, seed: 1 },
  })
  expect(result.attemptsPerGateway).toBeLessThan(2.5)
  expect(result.attemptsAtOnce).toBeLessThan(0.4)
  // The longest pause is 1.5 s; the connections themselves take 0.6 s.
  expect(result.secondsToAll).toBeLessThan(3)
})

test.each([
  [GATEWAYS, 0.85],
  [4 * GATEWAYS, 0.9],
])('%i permits at many gateways are never exceeded, nearly all used, and evenly', async (permits, least) => {
  const result = await simulateLeases({
    ...{
      gateways: GATEWAYS,
      permits,
      requestsPerSecond: permits * 40,
      holdMs: 50,
      roundTripMs: 1,
      seconds: 4,
      seed: 1,
    },
  })
  expect(result.mostUsed).toBeLessThanOrEqual(1)
  expect(result.used).toBeGreaterThan(least)
  expect(result.unevenness).toBeLessThan(0.2)
  expect(result.messagesPerSecond).toBeLessThan(permits * 40 * 3)
})
