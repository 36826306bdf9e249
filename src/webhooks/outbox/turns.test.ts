/** An endpoint is asked for as much as it has places for, and nobody's turn is always the last. */
import { expect, test } from 'vitest'
import type { Trigger } from '../trigger.ts'
import type { Claim, ClaimedRow } from './claim.ts'
import { createTurns, LEASE_MARGIN_MS } from './turns.ts'

const trigger = (name: string, host = 'a.example'): Trigger => ({
  ...{ name, table: 't', operations: ['create'], url: new URL(`https://${host}/${name}`), retryCount: 1, headers: {} },
  ...{ enabled: true, columns: null, secrets: [], timeoutMs: 1_000, source: 'gateway', order: 'none' },
})

const nothing: Claim = { next: new Map(), parked: false, webhooks: [] }
const took = (name: string, next = ''): Claim => ({
  ...{ next: new Map([[name, next]]), parked: false },
  webhooks: [{ trigger: name } as ClaimedRow],
})

test('triggers share the places of their endpoint; an endpoint without a place is not asked for', () => {
  const turns = createTurns(endpoint => (endpoint === 'https://full.example' ? 0 : 9))
  const active = [
    trigger('not asked'),
    trigger('one'),
    trigger('two'),
    trigger('other', 'b.example'),
    trigger('no', 'full.example'),
  ]
  const asked = turns.next(active, name => name !== 'not asked')
  expect(asked.map(({ trigger: name, places }) => [name, places]).sort()).toEqual([
    ['one', 4],
    ['other', 9],
    ['two', 4],
  ])
  expect(asked[0]).toMatchObject({ from: '', leaseMs: 1_000 + LEASE_MARGIN_MS })
})

test('of more triggers than places each has its turn', () => {
  const turns = createTurns(() => 1)
  const all = ['a', 'b', 'c'].map(name => trigger(name))
  const asked = [1, 2, 3].flatMap(() => turns.next(all, () => true).map(({ trigger: name }) => name))
  expect(asked.sort()).toEqual(['a', 'b', 'c'])
})

test('there is more until a visit from the beginning to the end has found nothing', () => {
  const turns = createTurns(() => 4)
  const all = [trigger('a')]
  const ask = (claim: Claim) => {
    const asked = turns.next(all, () => true)
    turns.learn(asked, claim)
    return [asked[0]?.from, turns.wants('a')]
  }
  expect(ask(took('a', 'tenant 5'))).toEqual(['', true])
  expect(ask({ ...nothing, next: new Map([['a', '']]) })).toEqual(['tenant 5', true])
  expect(ask({ ...nothing, parked: true })).toEqual(['', true])
  expect(ask(nothing)).toEqual(['', false])
  expect(ask(took('a'))).toEqual(['', true])
  expect(turns.next([], () => true)).toEqual([])
  expect(turns.wants('a')).toBe(false)
})
