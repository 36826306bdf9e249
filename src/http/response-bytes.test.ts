import { expect, test } from 'vitest'
import { createResponseBytes } from './response-bytes.ts'

const bytes = () => createResponseBytes({ maxUnsentBytes: 100, tenantMaxUnsentBytes: 50 })

test('results being read and unsent responses share the budget of a tenant', () => {
  const { unsent, results } = bytes()
  unsent.take('tenant a', 30)
  results.take('tenant a', 20)
  expect(results.beforeStart('tenant a', true)?.message).toContain('tenant_max_unsent_bytes (50)')
  expect(results.whileReading('tenant a', 0)?.message).toContain('tenant_max_unsent_bytes (50)')
  expect([results.beforeStart('tenant b', false), results.whileReading('tenant b', 0)]).toEqual([null, null])
  results.give('tenant a', 1)
  expect([results.beforeStart('tenant a', false), results.whileReading('tenant a', 0)]).toEqual([null, null])
  expect(unsent.refusals).toEqual({ share: 2, total: 0 })
})

test('above the budget of the process, writes are not started and results stay small', () => {
  const { results } = bytes()
  for (const flow of ['tenant a', 'tenant b', '']) results.take(flow, 40)
  expect(results.beforeStart('tenant c', true)).toBe(null)
  expect(results.beforeStart('tenant c', false)?.message).toContain('max_unsent_bytes (100)')
  expect(results.whileReading('tenant c', 0)).toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringContaining('max_unsent_bytes (100)'),
    headers: { 'Retry-After': '1' },
  })
})

test('a result does not count against itself', () => {
  const { results } = bytes()
  results.take('tenant a', 1_000)
  expect(results.whileReading('tenant a', 1_000)).toBe(null)
  results.take('tenant a', 49)
  expect(results.whileReading('tenant a', 1_000)).toBe(null)
  results.take('tenant a', 1)
  expect(results.whileReading('tenant a', 1_000)).not.toBe(null)
})
