import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTenantLimit, type TenantLimit } from './tenant-limit.ts'

const caller = (tenantId: string, userId = '') => ({ tenantId, userId })

function gateOf(permits: number): TenantLimit {
  const gate = createTenantLimit(permits)
  if (gate === null) throw new Error('the limit is disabled')
  return gate
}

test('each tenant has its own permits', () => {
  const gate = gateOf(2)
  expect([1, 2, 3].map(() => gate.enter(caller('t1')))).toEqual([true, true, false])
  expect([1, 2, 3].map(() => gate.enter(caller('t2')))).toEqual([true, true, false])
  gate.leave(caller('t1'))
  expect([1, 2].map(() => gate.enter(caller('t1')))).toEqual([true, false])
})

test('the users of a tenant share its permits', () => {
  const gate = gateOf(1)
  expect(gate.enter(caller('t1', 'ann'))).toBe(true)
  expect(gate.enter(caller('t1', 'bob'))).toBe(false)
})

test('users without a tenant do not share permits with each other or with a tenant of that name', () => {
  const gate = gateOf(1)
  expect(['ann', 'bob', '', ''].map(user => gate.enter(caller('', user)))).toEqual([true, true, true, false])
  expect(gate.enter(caller('ann'))).toBe(true)
})

test('names of object members are ordinary names', () => {
  const gate = gateOf(1)
  expect(['__proto__', 'constructor'].map(name => gate.enter(caller(name)))).toEqual([true, true])
})

test('0 disables the limit', () => {
  expect(createTenantLimit(0)).toBeNull()
})

test('the count is correct for any order of acquiring and releasing', () => {
  const step = fc.record({ tenant: fc.constantFrom('', 'a', 'b'), user: fc.constantFrom('', 'a'), goes: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (permits, steps) => {
      const gate = gateOf(permits)
      const inside = new Map<string, number>()
      for (const { tenant, user, goes } of steps) {
        const key = tenant === '' ? `user ${user}` : `tenant ${tenant}`
        const count = inside.get(key) ?? 0
        if (!goes) {
          expect(gate.enter(caller(tenant, user))).toBe(count < permits)
          if (count < permits) inside.set(key, count + 1)
        } else if (count > 0) {
          gate.leave(caller(tenant, user))
          inside.set(key, count - 1)
        }
      }
    }),
  )
})
