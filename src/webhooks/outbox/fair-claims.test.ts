/** A claim asks for no more than an endpoint has free slots for, and no trigger is always last. */
import { expect, test } from 'vitest'
import type { Trigger } from '../trigger.ts'
import type { Claim, ClaimedRow } from './claim.ts'
import { createClaimScheduler, LEASE_MARGIN_MS } from './fair-claims.ts'

const trigger = (name: string, host = 'a.example'): Trigger => ({
  ...{ name, table: 't', operations: ['create'], url: new URL(`https://${host}/${name}`), retryCount: 1, headers: {} },
  ...{ enabled: true, columns: null, secrets: [], timeoutMs: 1_000, source: 'gateway', order: 'none' },
})

const nothing: Claim = { next: new Map(), parked: false, webhooks: [] }
const took = (name: string, next = ''): Claim => ({
  ...{ next: new Map([[name, next]]), parked: false },
  webhooks: [{ trigger: name } as ClaimedRow],
})

test('triggers share the slots of their endpoint, and nothing is claimed for an endpoint without a free slot', () => {
  const turns = createClaimScheduler(endpoint => (endpoint === 'https://full.example' ? 0 : 9))
  const active = [
    trigger('not asked'),
    trigger('one'),
    trigger('two'),
    trigger('other', 'b.example'),
    trigger('no', 'full.example'),
  ]
  const asked = turns.next(active, name => name !== 'not asked')
  expect(asked.map(({ trigger: name, slots: places }) => [name, places]).sort()).toEqual([
    ['one', 4],
    ['other', 9],
    ['two', 4],
  ])
  expect(asked[0]).toMatchObject({ from: '', leaseMs: 1_000 + LEASE_MARGIN_MS })
})

test('each of more triggers than slots gets its turn', () => {
  const turns = createClaimScheduler(() => 1)
  const all = ['a', 'b', 'c'].map(name => trigger(name))
  const asked = [1, 2, 3].flatMap(() => turns.next(all, () => true).map(({ trigger: name }) => name))
  expect(asked.sort()).toEqual(['a', 'b', 'c'])
})

test('a trigger has more webhooks until a complete visit has found none', () => {
  const turns = createClaimScheduler(() => 4)
  const all = [trigger('a')]
  const ask = (claim: Claim) => {
    const asked = turns.next(all, () => true)
    turns.record(asked, claim)
    return [asked[0]?.from, turns.hasMore('a')]
  }
  expect(ask(took('a', 'tenant 5'))).toEqual(['', true])
  expect(ask({ ...nothing, next: new Map([['a', '']]) })).toEqual(['tenant 5', true])
  expect(ask({ ...nothing, parked: true })).toEqual(['', true])
  expect(ask(nothing)).toEqual(['', false])
  expect(ask(took('a'))).toEqual(['', true])
  expect(turns.next([], () => true)).toEqual([])
  expect(turns.hasMore('a')).toBe(false)
})
