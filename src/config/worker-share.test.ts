import { expect, test } from 'vitest'
import { loadConfig } from './load.ts'
import { shareOf, tooManyWorkers, workerCount } from './worker-share.ts'

const { config } = loadConfig({ environment: {}, workingDirectory: '/' })

test('the pool is divided, and the first workers get the remainder', () => {
  const pools = [1, 2, 3, 4].map(number => shareOf(config, { number, count: 4 }).gateway.maxConnections)
  expect(pools).toEqual([3, 3, 2, 2])
})

test('a share is at least 1, and 0 still means no limit', () => {
  const gateway = { ...config.gateway, maxSockets: 3, maxUnsentBytes: 0, feedMaxConnections: 2 }
  const last = shareOf({ ...config, gateway }, { number: 4, count: 4 }).gateway
  expect([last.maxSockets, last.maxUnsentBytes, last.feedMaxConnections]).toEqual([1, 0, 1])
})

test('limits that the primary process counts are not divided', () => {
  const { gateway } = shareOf(config, { number: 1, count: 4 })
  expect(gateway.rateLimitBurst).toBe(config.gateway.rateLimitBurst)
  expect(gateway.tenantMaxConcurrent).toBe(config.gateway.tenantMaxConcurrent)
  expect(gateway.maxClientConnections).toBe(config.gateway.maxClientConnections)
  expect([gateway.maxImports, gateway.tenantMaxImports]).toEqual([4, 2])
})

test('auto starts at most one worker for each connection', () => {
  expect(workerCount({ workers: 'auto', maxConnections: 1 })).toBe(1)
  expect(workerCount({ workers: 3, maxConnections: 10 })).toBe(3)
  expect(tooManyWorkers({ workers: 'auto', maxConnections: 1 })).toBeNull()
  expect(tooManyWorkers({ workers: 3, maxConnections: 2 })).toContain('max_connections of 3 or more')
})

test('the configuration can be sent to another process', () => {
  expect(structuredClone(config)).toEqual(config)
})
