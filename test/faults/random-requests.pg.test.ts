/**
 * Random requests to the shop: each is answered 200, 400 or 404, with rows of the same tenant only. Earlier
 * requests do not change the responses: two gateways that receive the same requests in opposite orders, each
 * with one connection so that prepared statements are shared, answer the same.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shopDatabase } from '../features/shop.ts'
import { request } from '../fuzz/requests.ts'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'

const database = databaseFixture(shopDatabase)
const toml = 'max_connections = 1'
const gateways = [gatewayFixture(database, { toml }), gatewayFixture(database, { toml })]

/** Values that occur only in rows of tenant t2. */
const FOREIGN = /Zinc|Zoe|zinc\.io|"secret"|"hidden"|"foreign"|"other"|"tenant_id":"t2"/

test('random requests in two orders get the same responses', { timeout: 120_000 }, async () => {
  const paths = fc.sample(request, 800)
  const answers = await Promise.all(
    gateways.map(async (gateway, index) => {
      const authorization = `Bearer ${await gateway.token({ tenantId: 't1' })}`
      const waiting = index === 0 ? paths.toReversed() : [...paths]
      const answered = new Map<string, string>()
      const worker = async () => {
        for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
          const response = await fetch(gateway.url + path, { headers: { authorization } })
          const text = (await response.text()).replace(/"request_id":"[^"]*"/, '')
          answered.set(path, `${response.status} ${text}`)
        }
      }
      await Promise.all(Array.from({ length: 6 }, worker))
      return answered
    }),
  )
  const [first = new Map<string, string>(), second] = answers
  let found = 0
  for (const [path, answer] of first) {
    expect(answer, path).toMatch(/^(200|400|404) /)
    expect(answer, path).not.toMatch(FOREIGN)
    expect(second?.get(path), path).toBe(answer)
    if (answer.startsWith('200')) found += 1
  }
  expect(found).toBeGreaterThan(150)
})
